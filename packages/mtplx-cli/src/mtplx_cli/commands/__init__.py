"""One module per command: its options and help. The work is imported when a command runs."""
