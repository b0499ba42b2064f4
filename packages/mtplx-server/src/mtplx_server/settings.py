"""What can be set about a server. Plain values, checked when they are made."""

import math
from dataclasses import dataclass

from mtplx_server.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How to serve.

    Attributes:
        host: Address to listen on; only loopback addresses are allowed.
        port: Port to listen on; 0 takes any free one.
        keepalive_s: A streamed answer that is silent for so long gets a comment, so that nobody
            on the way takes the connection for dead.
        stream_interval: Tokens in a frame of a streamed answer.
        stream_pacing: Whether the tokens of a round are sent one after the other over the time of
            a round, rather than at once.
        drain_s: When told to stop, running answers may go on for so long.
        strict_fields: Refuse request fields that would have no effect, instead of naming them in
            the reply.
        strict_model: Refuse requests that name another model than the served one.
        skip_hosted_tools: Leave out tools that only a vendor's servers can run, such as web search,
            instead of refusing requests that name them.
        max_body_bytes: Larger request bodies are refused.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    keepalive_s: float = 10.0
    stream_interval: int = 1
    stream_pacing: bool = True
    drain_s: float = 10.0
    strict_fields: bool = False
    strict_model: bool = False
    skip_hosted_tools: bool = False
    max_body_bytes: int = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidSetting(f"port must be in [0, 65535]; got {self.port}.")
        if not (math.isfinite(self.keepalive_s) and self.keepalive_s > 0):
            raise InvalidSetting(f"keepalive_s must be more than 0; got {self.keepalive_s}.")
        if not (math.isfinite(self.drain_s) and self.drain_s >= 0):
            raise InvalidSetting(f"drain_s must be 0 or more; got {self.drain_s}.")
        if self.stream_interval < 1:
            raise InvalidSetting(f"stream_interval must be 1 or more; got {self.stream_interval}.")
        if self.max_body_bytes < 1:
            raise InvalidSetting(f"max_body_bytes must be 1 or more; got {self.max_body_bytes}.")
