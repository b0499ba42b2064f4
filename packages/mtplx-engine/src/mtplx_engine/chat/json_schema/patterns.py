r"""From ECMAScript's regular expressions, which JSON schemas use, to those of Rust.

Most of the syntax is common, but some of that means different things: `\s`, `.`, `[a&&b]`, `\z`.
So a pattern is read in full and written anew, with classes and odd characters by their numbers.

Control characters that JSON escapes by number are taken out of classes: no grammar here writes
them, and a text must not lead to where only such a character could follow.
"""

import re

_SETS = {
    "d": "0-9",
    "w": "0-9A-Za-z_",
    "s": r"\x{9}-\x{D}\x{20}\x{A0}\x{1680}\x{2000}-\x{200A}"
    r"\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}",
}
_ANY = r"[^\x{A}\x{D}\x{2028}\x{2029}]"
CONTROL = re.compile("[\x00-\x07\x0b\x0e-\x1f\x7f]")
_WITHOUT_CONTROLS = r"--[\x{0}-\x{7}\x{B}\x{E}-\x{1F}\x{7F}]"
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_TOKEN = re.compile(
    r"(?P<repeat>(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??)"
    r"|(?P<look>\(\?<?[=!])"
    r"|(?P<open>\((?:\?:|\?<[A-Za-z_]\w*>)?)"
    r"|(?P<close>\))|(?P<bar>\|)|(?P<anchor>[\^$])|(?P<dot>\.)"
    r"|(?P<set>\[\^?)|(?P<escape>\\)|(?P<char>.)",
    re.DOTALL,
)
_PROPERTY = re.compile(r"\{[A-Za-z_]+(=[A-Za-z_]+)?\}")
_HEX = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}")


def translate(pattern: str) -> str:
    """The same pattern for Rust's `regex`: it finds matches in the same texts.

    Raises:
        ValueError: It is not a pattern, or has something that no grammar can follow.
    """
    return _Reader(pattern).read()


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def read(self) -> str:
        written: list[str] = []
        repeatable = False
        while self._at < len(self._pattern):
            token = _TOKEN.match(self._pattern, self._at)
            assert token is not None  # its last branch takes any character
            self._at = token.end()
            kind, text = str(token.lastgroup), token[0]
            if kind == "repeat" and not repeatable:
                raise ValueError(f"there is nothing that {text} could repeat")
            written.append(self._write(kind, text))
            repeatable = kind not in ("repeat", "open", "bar", "anchor")
        return "".join(written)

    def _write(self, kind: str, text: str) -> str:
        match kind:
            case "look":
                raise ValueError("look-around is not supported")
            case "open":
                if self._pattern.startswith("?", self._at) and text == "(":
                    raise ValueError("a group cannot begin with (?")
                return "(?:"
            case "repeat":
                # Lazy or not makes no difference to which texts match.
                return text[:-1] if len(text) > 1 and text.endswith("?") else text
            case "dot":
                return _class(_ANY)
            case "set":
                return _class(self._set(text))
            case "escape":
                escaped = self._escape(in_set=False)
                return _class(escaped) if isinstance(escaped, str) else _character(escaped)
            case "char":
                return _character(ord(text))
        return text

    def _set(self, opener: str) -> str:
        written = [opener]
        while (item := self._item()) is not None:
            last = None
            if self._pattern.startswith("-", self._at) and self._pattern[self._at + 1 :][:1] != "]":
                self._at += 1
                last = self._item()
            if isinstance(item, int) and isinstance(last, int):
                if item > last:
                    raise ValueError("a range in a class runs backwards")
                written.append(f"{_literal(item)}-{_literal(last)}")
            else:
                parts = (item,) if last is None else (item, ord("-"), last)
                written += [part if isinstance(part, str) else _literal(part) for part in parts]
        if len(written) == 1:
            raise ValueError("an empty class is not supported")
        return "".join(written) + "]"

    def _item(self) -> int | str | None:
        """What stands next in a class: a character, a class, or None for its end."""
        if self._at >= len(self._pattern):
            raise ValueError("a class is not closed")
        char = self._pattern[self._at]
        self._at += 1
        if char == "]":
            return None
        return self._escape(in_set=True) if char == "\\" else ord(char)

    def _escape(self, *, in_set: bool) -> int | str:
        """What stands behind a backslash: a character, or a class in brackets."""
        char = self._pattern[self._at : self._at + 1]
        self._at += 1
        if char.lower() in _SETS:
            body = _SETS[char.lower()]
            return f"[{body}]" if char.islower() else f"[^{body}]"
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in ("x", "u"):
            return self._hexadecimal()
        if char in ("p", "P"):
            return f"\\{char}{self._match(_PROPERTY)[0]}"
        if char == "c":
            return ord(self._match(re.compile("[A-Za-z]"))[0]) % 32
        if char == "0" and not self._pattern[self._at : self._at + 1].isdigit():
            return 0
        if char == "b" and in_set:
            return 8
        if not char or char.isalnum():
            raise ValueError(f"\\{char} is not supported")
        return ord(char)

    def _hexadecimal(self) -> int:
        self._at -= 1
        digits = self._match(_HEX)
        code = int(digits[digits.lastindex or 0], 16)
        if 0xD800 <= code < 0xDC00 and self._pattern.startswith("\\u", self._at):
            self._at += 1
            low = int(self._match(_HEX)[2] or "0", 16)
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            if not 0xDC00 <= low < 0xE000:
                raise ValueError("half of a surrogate pair is not a character")
        if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
            raise ValueError("half of a surrogate pair is not a character")
        return code

    def _match(self, wanted: re.Pattern[str]) -> re.Match[str]:
        found = wanted.match(self._pattern, self._at)
        if found is None:
            raise ValueError(f"an escape at character {self._at} is not complete")
        self._at = found.end()
        return found


def _class(brackets: str) -> str:
    return f"[{brackets}{_WITHOUT_CONTROLS}]"


def _character(code: int) -> str:
    if CONTROL.fullmatch(chr(code)):
        raise ValueError(f"the control character {code} is not supported")
    return _literal(code)


def _literal(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\x{{{code:X}}}"
