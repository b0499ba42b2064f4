"""Which calls of a conversation were made, and which have their results."""

from mtplx_server.errors import bad_request


class Calls:
    """Sees that each result belongs to a call. Ids count until they are used anew."""

    def __init__(self) -> None:
        self._made: set[str] = set()
        self._answered: set[str] = set()
        self._latest: set[str] = set()

    def begin(self) -> None:
        """A new turn of the assistant begins."""
        self._latest = set()

    def made(self, call_id: str, path: str) -> None:
        """A call was made.

        Raises:
            RequestRefused: Another of the same turn has that id.
        """
        if call_id in self._latest:
            text = f"{path} is {call_id[:200]!r}, as of another call in the same turn."
            raise bad_request(text, param=path)
        self._latest.add(call_id)
        self._made.add(call_id)
        self._answered.discard(call_id)

    def answered(self, call_id: str, path: str) -> None:
        """A result came.

        Raises:
            RequestRefused: No such call was made, or it has its result already.
        """
        if call_id not in self._made:
            text = f"{path} is {call_id[:200]!r}, but no call before it has that id."
            raise bad_request(text, param=path)
        if call_id in self._answered:
            text = f"{path} is {call_id[:200]!r}, a call that has its result already."
            raise bad_request(text, param=path)
        self._answered.add(call_id)
