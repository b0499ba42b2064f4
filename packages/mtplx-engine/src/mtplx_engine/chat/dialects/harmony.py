"""The messages of gpt-oss, which are framed whether they hold calls or not.

An answer is `<|channel|>final<|message|>Hello`, perhaps after other messages; after their `<|end|>`
comes `<|start|>assistant`. A call is a message to a function:
`<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Rome"}`, also
with the recipient before the channel. Thoughts are messages too; they were taken out before.

There is at most one call in an answer: the mark at its end ends the answer.
"""

from collections.abc import Sequence

from mtplx_engine.chat.dialects.base import Dialect, Mark, Numbering, Tools
from mtplx_engine.chat.dialects.json_object import call_rules, stream_arguments
from mtplx_engine.chat.marks import quoted
from mtplx_engine.chat.scanning import Malformed, Source, Steps
from mtplx_engine.events import TextDelta
from mtplx_engine.tools import Tool

_START, _CHANNEL, _TYPE, _MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>")
_TO, _FUNCTION = "to=", "functions."
_WORDS = ("assistant", "analysis", "commentary", "final", "json", "code", "text")
_HEADER = (_START, _CHANNEL, _TYPE, _MESSAGE, *_ENDS, _TO, *_WORDS)


def _read(source: Source, opener: str, calls: Numbering, tools: Tools) -> Steps[None]:
    mark, recipient = opener, ""
    while mark != _MESSAGE:
        if mark.startswith(_TO):
            recipient = yield from source.word("<")
        yield from source.skip_space()
        found = yield from source.at(_HEADER)
        if found is None and (recipient or not source.ended):
            raise Malformed("The header of a message has something strange in it.")
        if found is None:  # the text ends amid the header
            return
        mark = found
    if recipient:
        yield from source.skip_space()
        yield from stream_arguments(source, calls, recipient.removeprefix(_FUNCTION))
        yield from source.at(_ENDS)
    elif opener in _ENDS:
        yield TextDelta("\n\n")  # between this message and the one before


def _grammar(tools: Sequence[Tool], parallel: bool, mark: Mark) -> str:
    def write(name: str, arguments: str) -> str:
        recipient = quoted(f"{_TO}{_FUNCTION}{name} ")
        return f'{recipient} {mark(_TYPE)} "json" {mark(_MESSAGE)} {arguments}'

    begin = f'{mark(_CHANNEL)} "commentary "'
    return "\n".join([f"calls: {begin} call_one", *call_rules(tools, write)])


DIALECT = Dialect(
    name="harmony",
    signature=(_START, _CHANNEL, "<|call|>"),
    # A recipient without a mark before it begins an answer; `<|start|>` is in the prompt then.
    openers=(_CHANNEL, _START, *_ENDS, _TO + _FUNCTION),
    read=_read,
    grammar=_grammar,
    marks=(_TYPE, _MESSAGE),
    framed=True,
    lead=f"{_CHANNEL}final{_MESSAGE}",
    between=f"{_START}assistant",
)
