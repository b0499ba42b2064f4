"""The two base models: what a client sends, and what a server answers."""

from pydantic import BaseModel, ConfigDict


class WireRequest(BaseModel):
    """A request body. Types are exact (no `"1"` for 1); unknown fields are kept, not refused.

    The server decides what becomes of unknown fields. None means the same as an absent field.
    """

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        frozen=True,
        protected_namespaces=(),
        validate_by_name=True,
        validate_by_alias=True,
    )


class WireReply(BaseModel):
    """A reply body. The server sets each field that it sends; the client forgives what is new."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())

    def to_json(self) -> str:
        """The JSON text with the fields that were set, and only those."""
        return self.model_dump_json(exclude_unset=True)
