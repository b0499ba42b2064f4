"""`GET /v1/models` and `GET /v1/models/{id}`: what is being served."""

from mtplx_client.wire.error import ErrorReply
from mtplx_client.wire.models import ModelCard, ModelList
from mtplx_engine.info import ModelInfo
from mtplx_server.errors import unknown_model
from mtplx_server.protocols.base import ApiProtocol, Lookup, Snapshot
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


def _list(snapshot: Snapshot, _: str) -> tuple[int, ModelList]:
    return 200, ModelList(object="list", data=[_card(snapshot.model)])


def _get(snapshot: Snapshot, rest: str) -> tuple[int, ModelCard | ModelList]:
    # Ids hold slashes, so the route takes any path, and a closing slash comes with it.
    if not rest:
        return _list(snapshot, rest)
    model_id = rest.removesuffix("/")
    if model_id != snapshot.model.id:
        raise unknown_model(model_id, snapshot.model.id)
    return 200, _card(snapshot.model)


PROTOCOL = ApiProtocol(
    name="models",
    endpoints=(
        Lookup("/v1/models", "List what is served", _list, ModelList),
        Lookup("/v1/models/<model_id:path>", "Tell of one model", _get, ModelCard),
    ),
    error=error_reply,
    envelope=ErrorReply,
)
