"""Where things are written: status for people to stderr, data to stdout."""

from rich.console import Console


def status_console() -> Console:
    """For people: stderr, in colour where it is a terminal, never wrapped."""
    return Console(stderr=True, highlight=False, soft_wrap=True)
