"""What the command's exit status means."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit statuses of `mtplx`.

    Attributes:
        OK: Done.
        ERROR: It could not be done; one line on stderr says why.
        USAGE: The command line makes no sense.
        INTERRUPTED: Ctrl-C, as shells number it: 128 + SIGINT.
    """

    OK = 0
    ERROR = 1
    USAGE = 2
    INTERRUPTED = 130
