"""The tier of the session cache on disk. Host bytes only: this package knows no MLX."""
