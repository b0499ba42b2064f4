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


class AnthropicModelCard(WireReply):
    """One model, for clients that send `anthropic-version`.

    Attributes:
        type: Always `model`.
        id: The name to use in requests.
        display_name: The same, for people.
        created_at: When it was loaded, in RFC 3339.
        max_input_tokens: Tokens of prompt and answer together.
        max_tokens: The same number, as the most that an answer may have.
    """

    type: str = "model"
    id: str
    display_name: str = ""
    created_at: str = ""
    max_input_tokens: int | None = None
    max_tokens: int | None = None


class AnthropicModelList(WireReply):
    """All models that the server serves, on one page."""

    data: list[AnthropicModelCard] = Field(default_factory=list)
    has_more: bool = False
    first_id: str | None = None
    last_id: str | None = None
