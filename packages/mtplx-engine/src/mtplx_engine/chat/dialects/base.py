"""What a dialect is: where calls begin, how they are read, and the grammar of such calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mtplx_engine.chat.scanning import Source, Steps
from mtplx_engine.events import CallDelta, CallEnded, CallStarted
from mtplx_engine.tools import Tool


class Numbering:
    """Numbers the calls of one answer; at most one is open.

    Attributes:
        open: Number of the call that was started and not ended; None when there is none.
        count: Calls that were started.
    """

    def __init__(self) -> None:
        self.open: int | None = None
        self.count = 0

    def start(self, name: str) -> CallStarted:
        """A call begins; the first piece of its arguments must follow at once.

        So a call that breaks off never has empty arguments, which some clients take for none.
        """
        self.open, self.count = self.count, self.count + 1
        return CallStarted(self.open, name)

    def delta(self, text: str) -> CallDelta:
        """More JSON text of its arguments."""
        assert self.open is not None
        return CallDelta(self.open, text)

    def end(self) -> CallEnded:
        """Its arguments are complete."""
        assert self.open is not None
        index, self.open = self.open, None
        return CallEnded(index)


Tools = Mapping[str, Tool]
# Reads one section of calls, from behind its opener on. Calls `source.start_record` where a further
# call begins, so that the text of a broken one can be shown. When the text ends behind complete
# arguments, the call is complete. Raises `Malformed`.
ReadSection = Callable[[Source, str, Numbering, Tools], Steps[None]]


# Writes a mark of a dialect in Lark: as its token where the model has one, else as text.
Mark = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a family writes calls.

    Attributes:
        name: For people and statistics.
        signature: Texts that are in the chat template of every model that writes so.
        openers: Each begins a section of calls; what `grammar` derives begins with the first.
        read: Reads a section.
        grammar: Lark rules for (tools, parallel, mark): the rule `calls` and, with names that
            begin with `call_`, those it needs. It derives what `read` reads, opener included, with
            arguments that keep to the tools' schemas.
        bare: Openers count only where the answer begins.
        marks: Further texts that may be special tokens and must not be dropped from the text.
        framed: Plain answers are framed, too, so they are read even where nothing may be called.
        lead: Stands before a plain answer, where these are framed.
        between: Stands after thoughts, before what comes next, where that is framed.
    """

    name: str
    signature: tuple[str, ...]
    openers: tuple[str, ...]
    read: ReadSection
    grammar: Callable[[Sequence[Tool], bool, Mark], str]
    bare: bool = False
    marks: tuple[str, ...] = ()
    framed: bool = False
    lead: str = ""
    between: str = ""
