"""`GET /v1/models` and `GET /v1/models/{id}`."""

from pydantic import Field

from mtplx_client.wire.base import WireReply


class ModelCard(WireReply):
    """One model that the server serves.

    Attributes:
        id: The name to use in requests.
        object: Always `model`.
        created: Unix time at which it was loaded.
        owned_by: Always `mtplx`.
        context_length: Tokens of prompt and answer together.
        max_model_len: The same number under the name that other clients read.
        capabilities: What it can do, for example `chat`.
    """

    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = ""
    context_length: int | None = None
    max_model_len: int | None = None
    capabilities: list[str] = Field(default_factory=list)


class ModelList(WireReply):
    """All models that the server serves."""

    object: str = "list"
    data: list[ModelCard] = Field(default_factory=list)
