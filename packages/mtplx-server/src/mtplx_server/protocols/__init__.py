"""Translators between wire formats and the engine's vocabulary. They know no HTTP and no MLX."""
