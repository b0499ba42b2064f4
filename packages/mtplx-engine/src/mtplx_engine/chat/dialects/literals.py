"""Values in the notations of Python, JSON and Gemma, read while they are written.

What comes out is a prefix of valid JSON at every moment, and valid JSON at the end. A reader takes
all notations at once: models mix them. Gemma puts a mark of its own around strings, inside of which
every character stands for itself, and no quotes around keys.
"""

import json
import math
import re
from collections.abc import Callable
from typing import NamedTuple

from mtplx_engine.chat.scanning import Malformed, Parsed, Source, Steps, stream

SPACE = " \t\r\n"
# No key without quotes has these, nor what stands behind it.
KEY_STOPS = ",()[]{}\"'<>"

_DEEPEST = 200
_LONGEST_SCALAR = 400
_CHUNK = 256
_QUOTES = ('"""', "'''", '"', "'")
# Models forget to escape these, as in 'it's'; behind the end of a string there is no letter.
_FORGOTTEN = ('"', "'")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_SCALAR_TEXT = re.compile(r"[-+.0-9a-zA-Z_]*")
_JSON_SCALAR = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null")
_ESCAPED = {"a": "\a", "v": "\v", "\n": "", "'": "'", '"': '"', "\\": "\\", "/": "/"}
_ESCAPED |= {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BY_NUMBER = re.compile(
    r"\\(?:x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<octal>[0-7]{1,3}))"
)
_LENGTHS = {"x": 4, "u": 6, "U": 10, **dict.fromkeys("01234567", 4)}


class _Frame(NamedTuple):
    """What is open: how it is closed here and in JSON, and what stands behind its keys."""

    closer: str
    json: str
    colon: str


_CALL = _Frame(")", "}", "=")
_FRAMES = {"{": _Frame("}", "}", ":"), "[": _Frame("]", "]", ""), "(": _Frame(")", "]", "")}


def stream_literal(
    source: Source, wrap: Callable[[str], Parsed], delimiter: str = ""
) -> Steps[None]:
    """Take one value, yielding it as JSON as it arrives.

    Args:
        source: What to read from.
        wrap: Makes an event of a piece of JSON.
        delimiter: Stands around strings in which nothing is escaped, beside the usual quotes.

    Raises:
        Malformed: It is no value, or ends too early, or nests too deeply.
    """
    out: list[str] = []
    yield from stream(_value(source, out, delimiter, []), out, wrap)


def stream_keywords(source: Source, wrap: Callable[[str], Parsed]) -> Steps[None]:
    """As `stream_literal`, but of what is between the parentheses of a call in Python.

    The opening one was taken, the closing one is taken too. What comes out is an object.
    """
    out = ["{"]
    yield from stream(_value(source, out, "", [_CALL]), out, wrap)


def whole_literal(text: str) -> str | None:
    """The JSON of a text that is one value; None where it is none."""
    source, out, at = Source(), list[str](), 0
    try:
        for _ in _value(source, out, "", []):
            # In pieces, since a source moves all that it holds with each step.
            source.held += text[at : at + _CHUNK]
            source.ended = at >= len(text)
            at += _CHUNK
    except Malformed:
        return None
    return None if (source.held + text[at:]).strip(SPACE) else "".join(out)


def escaped(text: str) -> str:
    """A text as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _value(source: Source, out: list[str], delimiter: str, frames: list[_Frame]) -> Steps[None]:
    first = bool(frames)
    while True:  # once for each value, at any depth
        if not first:
            opened = yield from _begin_value(source, out, delimiter)
            frames += [opened] if opened else []
            first = opened is not None
            if len(frames) > _DEEPEST:
                raise Malformed("The value nests too deeply.")
        while frames and (yield from _closed(source, out, frames[-1], first)):
            frames.pop()
            first = False
        if not frames:
            return
        if frames[-1].colon:
            yield from _key(source, out, delimiter, frames[-1].colon)
        first = False


def _closed(source: Source, out: list[str], frame: _Frame, first: bool) -> Steps[bool]:
    """Take what follows a value: what closes the frame, or the comma before the next one."""
    yield from source.skip_space()
    comma = first or (yield from source.at((",",))) is not None
    yield from source.skip_space()
    if (yield from source.at((frame.closer,))) is not None:
        out.append(frame.json)
        return True
    if not comma:
        raise Malformed(f"A comma or {frame.closer} is missing.")
    if not first:
        out.append(", ")
    return False


def _begin_value(source: Source, out: list[str], delimiter: str) -> Steps[_Frame | None]:
    """Take a scalar or a string, or what opens a frame; return that."""
    yield from source.skip_space()
    quotes = (delimiter, *_QUOTES) if delimiter else _QUOTES
    mark = yield from source.at((*quotes, *_FRAMES))
    if mark is None:
        yield from _scalar(source, out)
    elif mark in quotes:
        yield from _string(source, out, mark, escapes=mark != delimiter)
    else:
        out.append("{" if mark == "{" else "[")
        return _FRAMES[mark]
    return None


def _key(source: Source, out: list[str], delimiter: str, colon: str) -> Steps[None]:
    """Take a key, in quotes or without, and what stands behind it."""
    yield from source.skip_space()
    quotes = (delimiter, *_QUOTES) if delimiter else _QUOTES
    quote = yield from source.at(quotes)
    if quote is not None:
        yield from _string(source, out, quote, escapes=quote != delimiter)
    else:
        word = yield from source.word(KEY_STOPS + colon)
        if not word:
            raise Malformed("A key is missing.")
        out.append(f'"{escaped(word)}"')
    yield from source.skip_space()
    yield from source.expect(colon)
    out.append(": ")


def _scalar(source: Source, out: list[str]) -> Steps[None]:
    while True:
        found = _SCALAR_TEXT.match(source.held)
        length = len(found[0]) if found else 0
        if length > _LONGEST_SCALAR:
            raise Malformed("The value holds an endless word.")
        if length < len(source.held) or not (yield from source.more()):
            break
    word = source.take(length)
    out.append(_WORDS.get(word) or (word if _JSON_SCALAR.fullmatch(word) else _number(word)))


def _number(word: str) -> str:
    """The JSON of a number as only Python writes it.

    Raises:
        Malformed: It is none.
    """
    try:
        return str(int(word, 0))
    except ValueError:
        pass
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise Malformed(f"{word[:20]!r} is not a value.")
    return repr(number)


def _string(source: Source, out: list[str], quote: str, *, escapes: bool) -> Steps[None]:
    """Take what is left of a string behind its opening quote."""
    plain = re.compile(rf"[^{re.escape(quote[0])}\\]+")
    out.append('"')
    while True:
        if found := plain.match(source.held):
            out.append(escaped(source.take(found.end())))
        mark = yield from source.peek()
        if not mark:
            raise Malformed("The text ends inside a string.")
        if mark == "\\" and escapes:
            out.append((yield from _escape(source)))
        elif (yield from source.at((quote,))) is not None:
            if quote not in _FORGOTTEN or not (yield from source.peek()).isalnum():
                out.append('"')
                return
            out.append(escaped(quote))
        else:
            if source.ended and quote.startswith(source.held):
                out.append(escaped(source.take(len(source.held))))
                raise Malformed("The text ends inside a string.")
            out.append(escaped(source.take(1)))


def _escape(source: Source) -> Steps[str]:
    """Take a backslash and what belongs to it; return what it stands for, inside JSON."""
    while len(source.held) < 2 or len(source.held) < _LENGTHS.get(source.held[1], 2):
        if not (yield from source.more()):
            break
    if number := _BY_NUMBER.match(source.held):
        source.take(number.end())
        # As it is: it may be one half of a pair that stands for a single character.
        return rf"\u{number['u']}" if number["u"] else _character(number)
    if source.held[1:2] in _ESCAPED:
        return escaped(_ESCAPED[source.take(2)[1]])
    return escaped(source.take(1))


def _character(number: re.Match[str]) -> str:
    code = int(number["octal"], 8) if number["octal"] else int(number["x"] or number["U"], 16)
    if code > 0x10FFFF:
        return escaped(number[0])
    return json.dumps(chr(code))[1:-1] if 0xD800 <= code < 0xE000 else escaped(chr(code))
