"""Fields that a model has, but that its kind has no use for."""

from collections.abc import Collection, Iterable

from mtplx_client.wire.base import WireRequest
from mtplx_server.protocols.fields import extra, says_something


def unread(model: WireRequest, read: Collection[str]) -> Iterable[str]:
    """Names of the fields that say something and are not among those that are read."""
    declared = {name: getattr(model, name) for name in type(model).model_fields}
    given = declared | extra(model)
    return (name for name, value in given.items() if name not in read and says_something(value))
