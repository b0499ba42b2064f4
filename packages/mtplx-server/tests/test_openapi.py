"""The OpenAPI document is true: whatever is sent, the answer is what the document says."""

import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from mtplx_engine import Engine, EngineOptions
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.interface import ChatEngine
from mtplx_engine.request import ChatRequest
from mtplx_engine.testing import Script, ScriptedEngine
from mtplx_engine.tiny import write_tiny_model
from mtplx_server.app import APIS
from mtplx_server.protocols.base import Action, Count, Generate
from mtplx_server.protocols.openapi import document
from mtplx_server.protocols.wire_docs import described
from mtplx_server.testing import serving

DOCUMENT = document(APIS).model_dump()
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
READERS = [each for api in APIS for each in api.endpoints if isinstance(each, Generate | Count)]
POSTS = [each.path for each in READERS]
ACTIONS = [each.path for api in APIS for each in api.endpoints if isinstance(each, Action)]
GETS = [path for path, operations in DOCUMENT["paths"].items() if "get" in operations]
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


STRING = {"type": "string", "minLength": 1}


def reals(low: float, high: float) -> dict[str, Any]:
    return {"type": "number", "minimum": low, "maximum": high}


TURNS = {
    "messages": {
        "type": "array",
        "items": {"$ref": "#/components/schemas/InputMessage"},
        "minItems": 1,
    },
    "tool_choice": {"$ref": "#/components/schemas/ToolChoice"},
}
# Values that are served, for the sake of answers: types alone would nearly always make a 400.
NEEDED: dict[str, dict[str, Any]] = {
    "ChatMessage": {
        "role": {"enum": ["system", "user", "assistant"]},
        "content": {"anyOf": [STRING, {"$ref": "#/components/schemas/Parts"}]},
    },
    "ContentPart": {"type": {"const": "text"}, "text": STRING},
    "MessageToolCall": {"type": {"const": "function"}, "id": {"enum": ["1", "2"]}},
    "ChatTool": {
        "type": {"const": "function"},
        "function": {"$ref": "#/components/schemas/FunctionDefinition"},
    },
    "FunctionDefinition": {"name": {"pattern": "^[a-z]{9}$"}, "parameters": {"const": {}}},
    "ResponseFormat": {"type": {"enum": ["text", "json_object"]}},
    "ChatCompletionRequest": {
        "messages": {
            "type": "array",
            "items": {"$ref": "#/components/schemas/ChatMessage"},
            "minItems": 1,
        },
    },
    "OllamaMessage": {"role": {"enum": ["system", "user", "assistant"]}, "content": STRING},
    "OllamaMessageCall": {"id": {"enum": ["1", "2"]}},
    "OllamaTool": {
        "type": {"const": "function"},
        "function": {"$ref": "#/components/schemas/OllamaFunction"},
    },
    "OllamaFunction": {"name": {"pattern": "^[a-z]{9}$"}, "parameters": {"const": {}}},
    "OllamaOptions": {"num_predict": {"enum": [1, 5]}, "repeat_last_n": {"enum": [-1, 0, 9]}},
    "OllamaChatRequest": {
        "options": {"$ref": "#/components/schemas/OllamaOptions"},
        "format": {"enum": ["", "json"]},
    },
    "OllamaGenerateRequest": {
        "options": {"$ref": "#/components/schemas/OllamaOptions"},
        "format": {"enum": ["", "json"]},
        "system": {"const": ""},
    },
    "OllamaModelRequest": {"model": {"type": "null"}, "name": {"type": "null"}},
    "InputMessage": {
        "role": {"enum": ["system", "user", "assistant"]},
        "content": {"anyOf": [STRING, {"$ref": "#/components/schemas/InputBlocks"}]},
    },
    "InputBlock": {"type": {"const": "text"}, "text": STRING},
    "InputText": {"type": {"const": "text"}, "text": STRING},
    "ClientTool": {
        "type": {"const": "custom"},
        "name": {"pattern": "^[a-z]{9}$"},
        "input_schema": {"const": {}},
    },
    "ToolChoice": {"type": {"enum": ["auto", "none"]}},
    "Thinking": {"type": {"enum": ["enabled", "disabled", "adaptive"]}},
    "OutputFormat": {"type": {"const": "json_schema"}, "schema": {"const": {}}},
    "OutputConfig": {"effort": {"enum": ["low", "max"]}},
    "CountTokensRequest": TURNS,
    "MessagesRequest": TURNS,
    "CompletionRequest": {
        "prompt": {
            "anyOf": [
                STRING,
                {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3},
                {"enum": [[0], [1, 2, 3], [[5], [6, 7]]]},
            ]
        },
    },
    "InputItem": {
        "type": {"const": "message"},
        "role": {"enum": ["user", "assistant", "system", "developer"]},
        "content": {"anyOf": [STRING, {"$ref": "#/components/schemas/InputParts"}]},
    },
    "InputPart": {"type": {"enum": ["input_text", "output_text"]}, "text": STRING},
    "ResponsesTool": {
        "type": {"const": "function"},
        "name": {"pattern": "^[a-z]{9}$"},
        "parameters": {"const": {}},
    },
    "TextFormat": {"type": {"enum": ["text", "json_object"]}},
    "ReasoningOptions": {"effort": {"enum": ["low", "none", "max"]}},
}
OPTIONS: dict[str, Any] = {
    "max_tokens": {"enum": [1, 5]},
    "max_completion_tokens": {"enum": [1, 5]},
    "max_output_tokens": {"enum": [1, 5]},
    "n": {"enum": [1, 2, 3]},
    "temperature": reals(0, 2),
    "top_p": reals(0.1, 1),
    "top_k": {"enum": [0, 1, 999]},
    "min_p": reals(0, 1),
    "top_n_sigma": reals(0, 9),
    "xtc_probability": reals(0, 1),
    "xtc_threshold": reals(0, 1),
    "presence_penalty": reals(-2, 2),
    "frequency_penalty": reals(-2, 2),
    "repetition_penalty": reals(0.1, 9),
    "penalty_window": {"enum": [1, 99]},
    "logit_bias": {"enum": [{}, {"7": -100}, {"1": 0.5, "2": 100}]},
    "seed": {"enum": [-1, 0, 2**64 - 1]},
    "stop": {"anyOf": [STRING, {"type": "array", "items": STRING, "maxItems": 16}]},
    "stop_sequences": {"type": "array", "items": STRING, "maxItems": 16},
    "stop_token_ids": {"enum": [[], [0, 255]]},
    "min_tokens": {"enum": [0, 1]},
    "depth": {"const": 1},
    "generation_mode": {"const": "mtp"},
    "acceptance": {"enum": ["auto", "coupled", "rejection"]},
    "kv_bits": {"enum": [-1, 0, 2, 4, 8]},
    "kv_group_size": {"enum": [32, 64, 128]},
    "reasoning_effort": {"enum": ["low", "none", "max"]},
    "repeat_penalty": reals(0.1, 9),
    "tool_choice": {"enum": ["auto", "none"]},
    "think": {"enum": [True, False, "low", "max"]},
    "top_logprobs": {"const": 0},
}
# Of these fields, one is always there: answers without a limit are long.
MOST = ("max_tokens", "max_output_tokens")


def narrowed() -> dict[str, Any]:
    """The document with values that are served, and without a word on other statuses."""
    narrow = deepcopy(DOCUMENT)
    schemas = narrow["components"]["schemas"]
    for name in {"OllamaOptions", *(each.wire.__name__ for each in READERS)}:
        schema = schemas[name]
        declared = schema["properties"]
        declared |= {name: value for name, value in OPTIONS.items() if name in declared}
        most = (name for name in MOST if name in declared)
        schema["required"] = [*schema.get("required", ()), *most]
    for model, fields in NEEDED.items():
        schema = schemas[model]
        schema["properties"] |= fields
        schema["required"] = sorted({*fields, *schema.get("required", ())})
    schemas["CompletionRequest"]["properties"]["logprobs"] = {"enum": [0, 9]}
    for operations in narrow["paths"].values():
        for operation in operations.values():
            del operation["responses"]["default"]
    return narrow


API = schemathesis.openapi.from_dict(narrowed())


def play(request: ChatRequest) -> Script:
    if (request.depth or 0) > 4:
        return Script(rejection=InvalidRequest("depth is too much.", "depth"))
    return Script(["<think>", "hm", "</think>", "Hello", " there"])


@pytest.fixture(scope="module", params=["script", "tiny"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    engine: ChatEngine = ScriptedEngine(play)
    if request.param == "tiny":
        folder = write_tiny_model(tmp_path_factory.mktemp("model") / "tiny")
        engine = Engine.open(EngineOptions(model=str(folder)))
    with serving(engine) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def statuses(method: str, path: str, mode: GenerationMode, client: httpx.Client) -> Counter[int]:
    """Send many requests, check each answer, and count the statuses."""
    count: Counter[int] = Counter()

    @settings(
        max_examples=15,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(API[path][method].as_strategy(generation_mode=mode))
    def send(case: Case) -> None:
        response = case.call(base_url=str(client.base_url))
        case.validate_response(response, checks=CHECKS)
        if "text/event-stream" in response.headers["content-type"][0]:
            check_events(response.text, path)
        if "ndjson" in response.headers["content-type"][0]:
            check_lines(response.text, path)
        count[response.status_code] += 1

    send()
    return count


def check_events(text: str, path: str) -> None:
    """Check the first events. Schemathesis reads no more, nor looks at the JSON inside."""
    content = DOCUMENT["paths"][path]["post"]["responses"]["200"]["content"]
    told = content["text/event-stream"]["schema"]["properties"]["data"]
    *done, message = told.get("anyOf", [told])
    schema = {**message["contentSchema"], "components": DOCUMENT["components"]}
    validator = Draft202012Validator(schema)
    for line in text.splitlines():
        kind, _, data = line.partition(": ")
        if kind == "data" and data not in [each["const"] for each in done]:
            validator.validate(json.loads(data))


def check_lines(text: str, path: str) -> None:
    """Check every line."""
    content = DOCUMENT["paths"][path]["post"]["responses"]["200"]["content"]
    schema = {
        **content["application/x-ndjson"]["schema"],
        "components": DOCUMENT["components"],
    }
    validator = Draft202012Validator(schema)
    assert text.endswith("\n")
    for line in text.split("\n")[:-1]:
        validator.validate(json.loads(line))


@pytest.mark.parametrize("path", POSTS)
def test_bodies_of_the_right_types(client, path):
    count = statuses("POST", path, GenerationMode.POSITIVE, client)
    assert count[200] > 5, count


@pytest.mark.parametrize("path", POSTS)
def test_bodies_with_something_wrong(client, path):
    count = statuses("POST", path, GenerationMode.NEGATIVE, client)
    assert count[400] > 5, count


@pytest.mark.parametrize("path", ACTIONS)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_actions(client, path, mode):
    assert statuses("POST", path, mode, client)


@pytest.mark.parametrize("path", GETS)
def test_lookups(client, path):
    assert statuses("GET", path, GenerationMode.POSITIVE, client)


def test_the_document_is_openapi_and_is_served(client):
    served = client.get("/openapi.json")
    assert served.headers["content-type"] == "application/json"
    validate(served.json())
    assert served.json() == DOCUMENT


@pytest.mark.parametrize("endpoint", READERS, ids=POSTS)
def test_each_field_of_a_body_has_its_words(endpoint):
    fields = SCHEMAS[endpoint.wire.__name__]["properties"]
    words = {name: field["description"] for name, field in fields.items()}
    assert words == described(endpoint.wire)
    assert all(words.values())


@pytest.mark.parametrize(
    ("model", "required"),
    [
        ("ChatCompletionRequest", ["messages"]),
        ("CompletionRequest", ["prompt"]),
        ("ChatCompletion", ["id", "created", "model", "choices"]),
        ("ChatMessage", ["role"]),
        ("ErrorReply", ["error"]),
    ],
)
def test_what_must_be_there_is_required(model, required):
    assert SCHEMAS[model]["required"] == required
