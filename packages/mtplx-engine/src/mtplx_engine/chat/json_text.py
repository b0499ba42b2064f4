"""JSON that is read while it is written.

What comes out is a prefix of valid JSON at every moment, and valid JSON at the end. Two habits of
models inside strings are put right: raw control characters, and backslashes before a character
that JSON does not escape. Everything else that is not JSON is refused.
"""

import json
import re
from collections.abc import Callable

from mtplx_engine.chat.scanning import Malformed, Parsed, Source, Steps, stream

# How grammars write JSON.
JSON_OPTIONS = {
    # Room for ten levels of four spaces. Without a bound, a model may write white space for ever.
    "whitespace_pattern": r"[ \n\r\t]{1,40}",
    # Those of JSON without `\u`, so that each text is written in one way. Otherwise the name `a`
    # could come again as `\u0061`, for which a schema's `additionalProperties` is asked.
    "json_allowed_escapes": r"nrbtf\"",
}

_SPACE = " \t\n\r"
_SCALAR = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null")
_SCALAR_TEXT = re.compile(r"[-+.0-9a-zA-Z]*")
_LONGEST_SCALAR = 400
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_DEEPEST = 200


def stream_json(source: Source, wrap: Callable[[str], Parsed]) -> Steps[None]:
    """Take one JSON value, yielding its text as it arrives.

    Raises:
        Malformed: It is not JSON, or ends too early, or nests too deeply.
    """
    pieces: list[str] = []
    yield from stream(_value(source, pieces), pieces, wrap)


def read_json(source: Source) -> Steps[str]:
    """Take one JSON value and return its text; see `stream_json`."""
    pieces: list[str] = []
    yield from _value(source, pieces)
    return "".join(pieces)


def whole_json(text: str) -> str:
    """The JSON value that a text consists of, put right where `stream_json` does.

    Raises:
        Malformed: It is no such text.
    """
    source, pieces = Source(), list[str]()
    source.held, source.ended = text, True
    for _ in _value(source, pieces):
        raise AssertionError("A text that has ended is never waited for.")
    if source.held.strip():
        raise Malformed("Something follows the JSON text.")
    return "".join(pieces)


def _value(source: Source, out: list[str]) -> Steps[None]:
    closers: list[str] = []
    while True:  # once for each value, at any depth
        opened = yield from _begin_value(source, out)
        if opened:
            closers.append(opened)
            if len(closers) > _DEEPEST:
                raise Malformed("The JSON text nests too deeply.")
            yield from _space(source, out)
            if (yield from source.peek()) == opened:
                out.append(source.take(1))
                closers.pop()
            else:
                yield from _key(source, out, closers)
                continue
        while closers:
            yield from _space(source, out)
            mark = yield from source.peek()
            if mark == closers[-1]:
                out.append(source.take(1))
                closers.pop()
            elif mark == ",":
                out.append(source.take(1))
                yield from _key(source, out, closers)
                break
            else:
                raise Malformed(f"The JSON text has {mark!r} where , or {closers[-1]} belongs.")
        if not closers:
            return


def _begin_value(source: Source, out: list[str]) -> Steps[str]:
    """Take a scalar, or the opening of a container; return what will close that."""
    yield from _space(source, out)
    match (yield from source.peek()):
        case "{":
            out.append(source.take(1))
            return "}"
        case "[":
            out.append(source.take(1))
            return "]"
        case '"':
            yield from _string(source, out)
        case _:
            yield from _scalar(source, out)
    return ""


def _key(source: Source, out: list[str], closers: list[str]) -> Steps[None]:
    """Take a key and its colon, if what is open is an object."""
    if closers[-1] == "]":
        return
    yield from _space(source, out)
    if (yield from source.peek()) != '"':
        raise Malformed("The JSON text lacks a key.")
    yield from _string(source, out)
    yield from _space(source, out)
    if (yield from source.peek()) != ":":
        raise Malformed("The JSON text lacks a colon.")
    out.append(source.take(1))


def _space(source: Source, out: list[str]) -> Steps[None]:
    while (mark := (yield from source.peek())) and mark in _SPACE:
        out.append(source.take(1))


def _scalar(source: Source, out: list[str]) -> Steps[None]:
    while True:
        found = _SCALAR_TEXT.match(source.held)
        length = len(found[0]) if found else 0
        if length > _LONGEST_SCALAR:
            raise Malformed("The JSON text holds an endless number.")
        if length < len(source.held) or not (yield from source.more()):
            break
    text = source.take(length)
    if not _SCALAR.fullmatch(text):
        raise Malformed(f"{text[:20]!r} is not a JSON value.")
    out.append(text)


def _string(source: Source, out: list[str]) -> Steps[None]:
    out.append(source.take(1))
    while True:
        if plain := _PLAIN.match(source.held):
            out.append(source.take(plain.end()))
        match (yield from source.peek()):
            case "":
                raise Malformed("The JSON text ends inside a string.")
            case '"':
                out.append(source.take(1))
                return
            case "\\":
                out.append((yield from _escape(source)))
            case mark if mark < " ":
                source.take(1)
                out.append(json.dumps(mark)[1:-1])


def _escape(source: Source) -> Steps[str]:
    """Take a backslash and what belongs to it."""
    while len(source.held) < 2:
        if not (yield from source.more()):
            raise Malformed("The JSON text ends inside a string.")
    mark = source.held[1]
    if mark in '"\\/bfnrt':
        return source.take(2)
    if mark == "'":
        source.take(1)
        return source.take(1)
    if mark == "u":
        while len(source.held) < 6:
            if not (yield from source.more()):
                break
        if _HEX.fullmatch(source.held[2:6]):
            return source.take(6)
    return "\\" + source.take(1)
