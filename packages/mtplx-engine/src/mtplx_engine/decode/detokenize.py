"""Token ids to text, piece by piece, without ever breaking a character.

Decoding ids one by one is wrong: a character may span tokens, and white space depends on the
neighbours. So a short window of ids is decoded again with each new one, and what differs from the
window before is new. A tail of U+FFFD may be a character that is not complete yet and is held
back; more than three of them in a row cannot be, since UTF-8 characters have at most four bytes.
"""

from collections.abc import Callable, Collection, Sequence

_REPLACEMENT = "\ufffd"
_MOST_INCOMPLETE = 3
_LONGEST_WINDOW = 64  # ids; decoding the whole answer again for each id would be quadratic
_KEPT_IDS = 8

Decode = Callable[[Sequence[int]], str]


class Detokenizer:
    """The text of one growing sequence of ids.

    The pieces joined equal the decoding of all ids at once. The one exception: decoders with byte
    fallback turn a whole run of byte tokens into U+FFFD when any of it is invalid, and here the
    characters that were complete before the invalid byte stand.
    """

    def __init__(self, decode: Decode, hidden: Collection[int] = ()) -> None:
        """Begin with no ids.

        Args:
            decode: Decodes ids, special tokens included.
            hidden: Ids without text.
        """
        self._decode = decode
        self._hidden = hidden
        self._ids: list[int] = []
        self._context = 0  # ids before this index are no longer decoded
        self._settled = 0  # all text of the ids before this index was returned
        self._returned = ""  # what of the window's text was returned

    def add(self, token: int) -> str:
        """Append an id and return the text that it settles, often empty."""
        if token in self._hidden:
            return ""
        self._ids.append(token)
        window = self._window()
        ready = max(len(window) - _incomplete(window), len(self._returned))
        piece = window[len(self._returned) : ready]
        self._returned = window[:ready]
        if ready == len(window) and piece:
            self._context, self._settled = self._settled, len(self._ids)
            self._returned = self._decode(self._ids[self._context :])
        elif len(self._ids) - self._context > _LONGEST_WINDOW:
            self._shorten()
        return piece

    def _shorten(self) -> None:
        """Cut a window that does not settle, such as a run of invalid bytes, to its last ids."""
        self._context = self._settled = len(self._ids) - _KEPT_IDS
        window = self._decode(self._ids[self._context :])
        self._returned = window[: len(window) - _incomplete(window)]

    def close(self) -> str:
        """Return what was held back: there will be no more ids."""
        window = self._window()
        piece = window[len(self._returned) :]
        self._returned = window
        return piece

    def _window(self) -> str:
        window = self._decode(self._ids[self._context :])
        if not window.startswith(self._returned):
            # New bytes made the decoder see the bytes before them in another way: without those.
            self._context, self._returned = self._settled, ""
            window = self._decode(self._ids[self._context :])
        return window


def _incomplete(text: str) -> int:
    """How many characters at the end may be part of one that is not complete yet."""
    run = len(text) - len(text.rstrip(_REPLACEMENT))
    return min(run, _MOST_INCOMPLETE)
