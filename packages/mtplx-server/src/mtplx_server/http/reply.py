"""The replies that the server sends."""

from collections.abc import Iterator, Mapping

from sanic import HTTPResponse

from mtplx_client.wire.base import WireReply


class Reply(HTTPResponse):
    """A reply without the empty `alt-svc` header that Sanic adds to each."""

    @property
    def processed_headers(self) -> Iterator[tuple[bytes, bytes]]:
        """The headers as they are sent."""
        self.headers.pop("alt-svc", None)
        return super().processed_headers


def json_reply(
    body: WireReply, status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    """A whole reply."""
    return Reply(body.to_json(), status, dict(headers or {}), "application/json")
