"""What becomes of each field of a chat request. The one table: code, tests and docs read it.

    honoured    has its effect
    harmless    cannot change the answer; accepted
    ignored     has no effect here; accepted, and named in the reply's `mtplx.ignored_fields`
    refused     a 400 that names it, except for values that ask for what is done anyway

A field that is not in the table is treated as `ignored`. `null` is the same as an absent field.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mtplx_server.errors import bad_request

Treatment = Literal["honoured", "harmless", "ignored", "refused"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field.

    Attributes:
        name: Its name in the body.
        treatment: What becomes of it.
        note: One sentence for the docs.
        neutral: Values that ask for what is done anyway; these are always accepted.
    """

    name: str
    treatment: Treatment
    note: str = ""
    neutral: tuple[Any, ...] = ()

    def is_neutral(self, value: Any) -> bool:
        """Whether a value asks for what is done anyway. True is not 1 here."""
        return any(
            value == each and isinstance(value, bool) == isinstance(each, bool)
            for each in self.neutral
        )


_HONOURED = (
    Field("messages", "honoured", "At least one; roles system, developer, user, assistant."),
    Field("model", "honoured", "Any name is answered by the served model; see strict_model."),
    Field("max_completion_tokens", "honoured", "1 or more, reasoning included."),
    Field("max_tokens", "honoured", "The older name; max_completion_tokens wins."),
    Field("temperature", "honoured", "0 to 2."),
    Field("top_p", "honoured", "Above 0, up to 1."),
    Field("top_k", "honoured", "0 keeps all tokens."),
    Field("min_p", "honoured", "0 to 1."),
    Field("seed", "honoured", "The same seed gives the same answer, at any depth."),
    Field("stop", "honoured", "A string or up to 16 of them."),
    Field("stream", "honoured"),
    Field("stream_options", "honoured", "include_usage."),
    Field("chat_template_kwargs", "honoured", "For example enable_thinking."),
    Field("depth", "honoured", "Extension: tokens drafted per round; 0 decodes plainly."),
    Field("generation_mode", "honoured", "Extension: `mtp` drafts, `ar` decodes plainly."),
    Field("acceptance", "honoured", "Extension: `auto`, `coupled` or `rejection`."),
)

_HARMLESS = (
    Field("metadata", "harmless", "Labels for somebody else's records."),
    Field("parallel_tool_calls", "harmless", "Has a meaning only with tools."),
    Field("prompt_cache_key", "harmless", "Nothing is kept between requests yet."),
    Field("prompt_cache_options", "harmless", "Nothing is kept between requests yet."),
    Field("prompt_cache_retention", "harmless", "Nothing is kept between requests yet."),
    Field("safety_identifier", "harmless", "Names an end user."),
    Field("service_tier", "harmless", "There is one tier."),
    Field("user", "harmless", "Names an end user."),
)

_IGNORED = (
    Field("reasoning_effort", "ignored", "The served models have no levels."),
    Field("store", "ignored", "Nothing is stored.", (False,)),
    Field("verbosity", "ignored", "The served models have no levels.", ("medium",)),
)

_REFUSED = (
    Field("n", "refused", "One answer per request.", (1,)),
    Field("tools", "refused", "Not supported yet.", ([],)),
    Field("tool_choice", "refused", "Not supported yet.", ("none", "auto")),
    Field("functions", "refused", "Not supported yet.", ([],)),
    Field("function_call", "refused", "Not supported yet.", ("none", "auto")),
    Field("response_format", "refused", "Not supported yet.", ({"type": "text"},)),
    Field("logprobs", "refused", "Not supported yet.", (False,)),
    Field("top_logprobs", "refused", "Not supported yet.", (0,)),
    Field("logit_bias", "refused", "Not supported yet.", ({},)),
    Field("presence_penalty", "refused", "Not supported yet.", (0,)),
    Field("frequency_penalty", "refused", "Not supported yet.", (0,)),
    Field("repetition_penalty", "refused", "Not supported yet.", (1,)),
    Field("modalities", "refused", "Text only.", (["text"],)),
    Field("audio", "refused", "Text only."),
    Field("prediction", "refused", "Not supported."),
    Field("web_search_options", "refused", "The server never searches."),
    Field("moderation", "refused", "Nothing is moderated."),
    Field("grammar", "refused", "Not supported yet."),
    Field("json_schema", "refused", "Not supported yet."),
    Field("guided_choice", "refused", "Not supported yet."),
    Field("guided_grammar", "refused", "Not supported yet."),
    Field("guided_json", "refused", "Not supported yet."),
    Field("guided_regex", "refused", "Not supported yet."),
    Field("structured_outputs", "refused", "Not supported yet."),
)

FIELDS = {field.name: field for field in (*_HONOURED, *_HARMLESS, *_IGNORED, *_REFUSED)}


def ignored_fields(body: Mapping[str, Any]) -> list[str]:
    """Names of the given fields that have no effect.

    Raises:
        RequestRefused: A field is refused, by the table.
    """
    ignored = []
    for name, value in body.items():
        field = FIELDS.get(name, Field(name, "ignored"))
        if value is None or field.is_neutral(value):
            continue
        if field.treatment == "refused":
            _refuse(field)
        if field.treatment == "ignored":
            ignored.append(name)
    return ignored


def _refuse(field: Field) -> None:
    if not field.neutral:
        message = f"{field.name} is not supported. {field.note}"
        raise bad_request(message, param=field.name, code="unsupported_parameter")
    values = " or ".join(json.dumps(value) for value in field.neutral)
    message = f"{field.name} may only be {values} so far."
    raise bad_request(message, param=field.name, code="unsupported_value")


def markdown_table() -> str:
    """The table as it stands in `docs/protocols/openai-chat.md`."""
    rows = ["| field | treatment | always accepted | note |", "|---|---|---|---|"]
    for field in FIELDS.values():
        values = ", ".join(f"`{json.dumps(value)}`" for value in field.neutral)
        rows.append(f"| `{field.name}` | {field.treatment} | {values} | {field.note} |")
    return "\n".join(rows) + "\n"
