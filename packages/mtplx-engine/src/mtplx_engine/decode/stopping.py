"""Stop strings, found exactly wherever the pieces of text are cut."""

from collections.abc import Sequence


class StopMatcher:
    """Watches text for stop strings and holds back what may be the start of one.

    Generation ends as soon as a stop string is complete. Of several that are complete at the same
    character the longest counts. So the result does not depend on how the text is cut, and equals
    that of looking after every single character.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.hit: str | None = None

    def feed(self, text: str) -> str:
        """Take more text and return what of it is surely before any stop string.

        When a stop string is complete, `hit` says which, and what is returned ends before it.
        """
        if not self._stops:
            return text
        self._held += text
        ends = [(at + len(s), -len(s), s) for s in self._stops if (at := self._held.find(s)) >= 0]
        if ends:
            end, _, self.hit = min(ends)
            released, self._held = self._held[: end - len(self.hit)], ""
            return released
        keep = self._longest_start()
        cut = len(self._held) - keep
        released, self._held = self._held[:cut], self._held[cut:]
        return released

    def close(self) -> str:
        """Return what was held back: the text has ended without a stop string."""
        released, self._held = self._held, ""
        return released

    def _longest_start(self) -> int:
        """Length of the longest tail of the held text that begins a stop string."""
        longest = min(len(self._held), max(map(len, self._stops)) - 1)
        for size in range(longest, 0, -1):
            tail = self._held[-size:]
            if any(stop.startswith(tail) for stop in self._stops):
                return size
        return 0
