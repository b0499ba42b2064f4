"""`GET /v1/models` and `GET /v1/models/{id}`: what is being served.

Two APIs have these paths. Clients of Anthropic's say so with the header `anthropic-version`.
"""

from datetime import UTC, datetime

from mtplx_client.wire.base import WireReply
from mtplx_client.wire.error import ErrorReply
from mtplx_client.wire.models import (
    AnthropicModelCard,
    AnthropicModelList,
    ModelCard,
    ModelList,
)
from mtplx_engine.info import ModelInfo
from mtplx_server.errors import unknown_model
from mtplx_server.protocols.base import ApiProtocol, Lookup, Snapshot, Visit
from mtplx_server.protocols.openai_error import error_reply


def _card(model: ModelInfo) -> ModelCard:
    return ModelCard(
        id=model.id,
        object="model",
        created=model.created,
        owned_by="mtplx",
        context_length=model.context_length,
        max_model_len=model.context_length,
        capabilities=["chat"],
    )


def _anthropic_card(model: ModelInfo) -> AnthropicModelCard:
    created = datetime.fromtimestamp(model.created, UTC)
    return AnthropicModelCard(
        type="model",
        id=model.id,
        display_name=model.id,
        created_at=created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        max_input_tokens=model.context_length,
        max_tokens=model.context_length,
    )


def _list(snapshot: Snapshot, visit: Visit) -> tuple[int, WireReply]:
    model = snapshot.model
    if not _is_anthropic(visit):
        return 200, ModelList(object="list", data=[_card(model)])
    cards = [_anthropic_card(model)]
    page = AnthropicModelList(data=cards, has_more=False, first_id=model.id, last_id=model.id)
    return 200, page


def _get(snapshot: Snapshot, visit: Visit) -> tuple[int, WireReply]:
    # Ids hold slashes, so the route takes any path, and a closing slash comes with it.
    if not visit.rest:
        return _list(snapshot, visit)
    model, model_id = snapshot.model, visit.rest.removesuffix("/")
    if model_id != model.id:
        raise unknown_model(model_id, model.id)
    return 200, _anthropic_card(model) if _is_anthropic(visit) else _card(model)


def _is_anthropic(visit: Visit) -> bool:
    return "anthropic-version" in visit.headers


PROTOCOL = ApiProtocol(
    name="models",
    endpoints=(
        Lookup("/v1/models", "List what is served", _list, (ModelList, AnthropicModelList)),
        Lookup(
            "/v1/models/<model_id:path>",
            "Tell of one model",
            _get,
            (ModelCard, AnthropicModelCard),
        ),
    ),
    error=error_reply,
    envelope=ErrorReply,
)
