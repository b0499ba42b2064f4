"""What becomes of functions whose schemas cannot be enforced."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from byte_grammars import byte_grammars
from tagged_calls import ALL, GEMMA, TAGGED

from mtplx_engine import (
    Calling,
    ChatRequest,
    ChatResult,
    Conversation,
    Engine,
    EngineOptions,
    Limits,
    Message,
    Sampling,
)
from mtplx_engine.chat.dialects import glm, json_object, pythonic, qwen_xml
from mtplx_engine.chat.dialects.base import Dialect
from mtplx_engine.chat.tool_schemas import enforceable
from mtplx_engine.constraint import Composed, JsonSchema
from mtplx_engine.errors import InvalidRequest
from mtplx_engine.tiny import write_tiny_model
from mtplx_engine.tools import Tool

WHERE = "tools[3].function.parameters"
every = pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
unquoted = pytest.mark.parametrize("dialect", [*TAGGED, *GEMMA], ids=lambda each: each.name)
HUGE = {"type": "string", "minLength": 60_000}
DEFS = {"P": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}}


def compiles(rules: str) -> None:
    byte_grammars()[0].make(Composed(f"start: calls\n{rules}", {}))


def fit(
    dialect: Dialect,
    schema: Any,
    *,
    strict: bool = False,
    check: Callable[[str], None] | None = None,
) -> Any:
    """The schema that is enforced."""
    tool = Tool("f", parameters=schema, strict=strict)
    found = enforceable(tool, WHERE, dialect, json.dumps, check)
    compiles(dialect.grammar([found], False, json.dumps))
    return found.parameters


def is_open(schema: Any) -> bool:
    return schema.get("additionalProperties", "properties" not in schema) is not False


@every
@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        {"properties": {}, "patternProperties": {"^x": {}}, "additionalProperties": False},
        {"required": ["a b<\n</arg_key>"]},
        {"properties": {'"a>\n': {}}, "required": ['"a>\n'], "additionalProperties": False},
        {"properties": 5},
        {"type": "string"},
        {"additionalProperties": {"type": "string", "pattern": "(?=x)"}},
        {"unknown": True},
    ],
)
def test_arguments_that_cannot_be_told_are_left_open(dialect: Dialect, schema: Any) -> None:
    assert is_open(fit(dialect, schema))


@every
def test_what_can_be_written_is_kept(dialect: Dialect) -> None:
    properties = {
        "kept": {"type": "integer", "maximum": 9},
        "odd": {"type": "string", "pattern": "(?=x)"},
        "list": {"$ref": "#/$defs/P"},
        "wide": {"enum": [1, 2**60], "type": "integer"},
        "a>\n<": {"type": "string"},
    }
    found = fit(dialect, {"properties": properties, "required": [*properties], "$defs": DEFS})
    assert found["required"] == ["kept", "odd", "list", "wide"]
    assert found["properties"] == {
        "kept": {"type": ["integer"], "maximum": 9},
        "odd": {"type": ["string"]},
        "list": {"type": ["array"], "items": {"type": ["integer"]}},
        "wide": {"type": ["integer"]},
    }
    assert is_open(found)


@every
def test_many_odd_parameters_are_made_looser_at_once(dialect: Dialect) -> None:
    odd = {"type": "string", "format": "no such"}
    found = fit(dialect, {"properties": {f"a{at}": odd for at in range(200)}})
    assert [*found["properties"].values()] == [{"type": ["string"]}] * 200


def test_keys_that_only_some_can_write() -> None:
    schema = {"properties": {"first name": {}, "a": {"type": "null"}}, "required": ["first name"]}
    assert fit(qwen_xml.DIALECT, schema)["required"] == ["first name"]
    found = fit(pythonic.LFM2, schema)
    assert found["properties"] == {"a": {"type": ["null"]}}
    assert is_open(found)
    with pytest.raises(InvalidRequest, match=r"'f' cannot be strict.*'first name'") as raised:
        fit(pythonic.LFM2, schema, strict=True)
    assert raised.value.param == WHERE


@unquoted
def test_what_does_not_compile_is_made_looser(dialect: Dialect) -> None:
    schema = {"properties": {"n": {"type": "integer", "maximum": 5}, "long": HUGE}}
    found = fit(dialect, schema, check=compiles)
    assert found["properties"]["long"] == {"type": ["string"]}
    assert found["properties"]["n"]["maximum"] == 5
    with pytest.raises(InvalidRequest, match=r"'f' cannot be strict.*'long'.* fuel") as raised:
        fit(dialect, schema, strict=True, check=compiles)
    assert raised.value.param == WHERE


def test_no_parameters_and_an_empty_schema_differ() -> None:
    for dialect in (json_object.DIALECT, glm.DIALECT):
        none, any_ = (
            dialect.grammar([Tool("f", parameters=each)], False, json.dumps) for each in (None, {})
        )
        assert none != any_


def test_an_object_may_have_a_thousand_optional_properties() -> None:
    grammars, tokens, _ = byte_grammars()
    schema = {f"property{at}": {"type": "null"} for at in range(1000)}
    constraint = grammars.make(JsonSchema({"properties": schema}))
    for byte in b'{"property0":null,"property999":null':
        constraint.advance(tokens[byte])
    with pytest.raises(InvalidRequest, match="more than 1000") as raised:
        grammars.make(JsonSchema({"properties": schema | {"one more": {}}}, "here"))
    assert raised.value.param == "here.properties"


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = write_tiny_model(tmp_path_factory.mktemp("models") / "tiny", "qwen3_5")
    path = Path(folder) / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    marks = " ".join(qwen_xml.DIALECT.signature)
    shown = f"{{# {marks} #}}{{% if tools %}}{{{{ tools | tojson }}}}{{% endif %}}"
    settings["chat_template"] = shown + settings["chat_template"]
    path.write_text(json.dumps(settings))
    with Engine.open(EngineOptions(model=str(folder))) as engine:
        assert engine.model.tool_dialect == "qwen_xml"
        yield engine


def ask(engine: Engine, *tools: Tool) -> ChatResult:
    return engine.submit(
        ChatRequest(
            Conversation((Message("user", "hi"),), tools=tools),
            Sampling(temperature=1.0, seed=1, logit_bias={258: -100.0}),
            Limits(600),
            calling=Calling("required", (tools[-1].name,), parallel=False),
        )
    ).result()


def test_a_function_that_does_not_compile_does_not_stop_a_request(speaker: Engine) -> None:
    parameters = {"properties": {"n": {"type": "integer", "maximum": 5}, "long": HUGE}}
    schema = parameters | {"required": ["n"], "type": "object"}
    (call,) = ask(speaker, Tool("f", parameters=schema)).calls
    assert call.name == "f"
    with pytest.raises(InvalidRequest, match=r"'f' cannot be strict.*'long'") as raised:
        ask(speaker, Tool("g"), Tool("f", parameters=schema, strict=True))
    assert raised.value.param == "tools[1].function.parameters"
    with pytest.raises(InvalidRequest) as raised:
        ask(speaker, Tool("f", parameters=schema, strict=True, where="input[0].tools[0]"))
    assert raised.value.param == "input[0].tools[0]"
