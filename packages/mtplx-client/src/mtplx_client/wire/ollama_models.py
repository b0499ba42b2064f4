"""`/api/tags`, `/api/ps`, `/api/show` and `/api/version`: what is served, as Ollama tells it."""

from typing import Any

from pydantic import Field

from mtplx_client.wire.base import WireReply


class OllamaDetails(WireReply):
    """What a model is.

    Attributes:
        parent_model: Always empty.
        format: Always `mlx`.
        family: Its architecture.
        families: The same, in a list.
        parameter_size: For people, for example `8.0B`.
        quantization_level: How its weights are stored.
    """

    parent_model: str = ""
    format: str = ""
    family: str = ""
    families: list[str] = Field(default_factory=list)
    parameter_size: str = ""
    quantization_level: str = ""


class OllamaCard(WireReply):
    """One model.

    Attributes:
        name: The name to use in requests.
        model: The same.
        modified_at: When it was loaded, in RFC 3339.
        size: Always 0: what it takes on disk is not known.
        digest: Stays the same for the same model at the same place.
        details: What it is.
    """

    name: str
    model: str
    modified_at: str = ""
    size: int = 0
    digest: str = ""
    details: OllamaDetails | None = None


class OllamaCards(WireReply):
    """All models that the server serves."""

    models: list[OllamaCard] = Field(default_factory=list)


class OllamaLoadedCard(WireReply):
    """One model in memory.

    Attributes:
        name: The name to use in requests.
        model: The same.
        size: Always 0: what it takes is not known.
        digest: Stays the same for the same model at the same place.
        details: What it is.
        expires_at: Far away, as it is never unloaded.
        size_vram: Always 0.
        context_length: Tokens of prompt and answer together.
    """

    name: str
    model: str
    size: int = 0
    digest: str = ""
    details: OllamaDetails | None = None
    expires_at: str = ""
    size_vram: int = 0
    context_length: int | None = None


class OllamaLoadedCards(WireReply):
    """All models in memory."""

    models: list[OllamaLoadedCard] = Field(default_factory=list)


class OllamaModel(WireReply):
    """What is known of a model.

    Attributes:
        modelfile: Always empty, and so are the next two: the model brings its own.
        parameters: Defaults of options.
        template: The prompt's form.
        details: What it is.
        model_info: Architecture, number of parameters and context length, by Ollama's names.
        capabilities: `completion`; `tools` if its chat template shows them; `thinking` if it is
            known to think.
        modified_at: When it was loaded, in RFC 3339.
    """

    modelfile: str = ""
    parameters: str = ""
    template: str = ""
    details: OllamaDetails | None = None
    model_info: dict[str, Any] = Field(default_factory=dict)
    capabilities: list[str] = Field(default_factory=list)
    modified_at: str = ""


class OllamaVersion(WireReply):
    """Versions.

    Attributes:
        version: Of Ollama's API, as clients ask for it.
        mtplx: Of this server.
    """

    version: str
    mtplx: str = ""
