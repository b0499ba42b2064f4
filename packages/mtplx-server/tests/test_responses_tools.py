"""Tools of Responses: functions, custom tools and namespaces, there and back."""

import json
from typing import Any

import pytest
from responses_reading import SKIPS, asked, ignored, problem, prompt, tools

from mtplx_engine.testing import Script, ScriptedEngine
from mtplx_engine.tools import Calling, Tool

TIME = {"type": "function", "name": "time", "parameters": {"type": "object"}}
PATCH = {"type": "custom", "name": "patch", "description": "Patches."}
AGENTS = {
    "type": "namespace",
    "name": "agents",
    "description": "Some agents.",
    "tools": [{"type": "function", "name": "close"}, {"type": "custom", "name": "tell"}],
}
SEARCH = {"type": "web_search", "external_web_access": False}
ONE_TEXT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


def custom(syntax: str, definition: str) -> dict[str, Any]:
    form = {"type": "grammar", "syntax": syntax, "definition": definition}
    return {**PATCH, "format": form}


def test_all_kinds_become_functions():
    assert tools(tools=[TIME, PATCH, AGENTS]) == (
        Tool("time", parameters={"type": "object"}),
        Tool("patch", "Patches.", ONE_TEXT),
        Tool("agents__close"),
        Tool("agents__tell", None, ONE_TEXT),
    )


def test_tools_may_come_as_items():
    item = {"type": "additional_tools", "role": "developer", "tools": [AGENTS]}
    hi = {"role": "user", "content": "hi"}
    assert tools(tools=[TIME], input=[item, hi]) == tools(tools=[TIME, AGENTS])
    assert ignored(input=[item, hi]) == []
    assert len(prompt(input=[item]).messages) == 1


@pytest.mark.parametrize(
    ("regex", "pattern"),
    [
        ("[a-c]{3}", "^(?:[a-c]{3})$"),
        ("^[a-c]{3}$", "^(?:[a-c]{3})$"),
        ("a|bc", "^(?:a|bc)$"),
        (r"price\$", r"^(?:price\$)$"),
    ],
)
def test_a_regular_form_is_enforced(regex, pattern):
    (tool,) = tools(tools=[custom("regex", regex)])
    assert tool.strict
    assert tool.parameters is not None
    assert tool.parameters["properties"]["input"]["pattern"] == pattern
    assert ignored(tools=[custom("regex", regex)]) == []


@pytest.mark.parametrize(("syntax", "form"), [("lark", 'start: "a"'), ("regex", "^a$|b")])
def test_a_form_that_is_not_enforced_is_told_to_the_model_and_named(syntax, form):
    (tool,) = tools(tools=[custom(syntax, form)])
    assert (tool.parameters, tool.strict) == (ONE_TEXT, False)
    assert tool.description is not None
    assert tool.description.startswith("Patches.")
    assert tool.description.endswith(form)
    assert ignored(tools=[custom(syntax, form)]) == ["tools[].format"]


WRONG_TOOLS = {
    "no name": ({"type": "function"}, "tools[0].name"),
    "bad name": ({"type": "function", "name": "a b"}, "tools[0].name"),
    "twice": (TIME, "tools[1].name"),
    "no name of a namespace": ({"type": "namespace", "tools": []}, "tools[0].name"),
    "bad name in a namespace": (
        {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "é"}]},
        "tools[0].tools[0].name",
    ),
    "namespace in a namespace": (
        {"type": "namespace", "name": "ns", "tools": [AGENTS]},
        "tools[0].tools[0].type",
    ),
    "no definition": (
        {**PATCH, "format": {"type": "grammar", "syntax": "lark"}},
        "tools[0].format.definition",
    ),
    "no syntax": (
        {**PATCH, "format": {"type": "grammar", "definition": "x"}},
        "tools[0].format.syntax",
    ),
    "unknown form": ({**PATCH, "format": {"type": "xml"}}, "tools[0].format.type"),
}


@pytest.mark.parametrize(("tool", "path"), WRONG_TOOLS.values(), ids=WRONG_TOOLS.keys())
def test_wrong_tools_are_refused_by_path(tool, path):
    param, message = problem(tools=[tool, TIME] if tool is not TIME else [TIME, TIME])
    assert param == path
    assert path in message


def test_a_joined_name_that_exists_is_refused():
    clash = {"type": "function", "name": "agents__close"}
    assert problem(tools=[AGENTS, clash])[0] == "tools[1].name"


@pytest.mark.parametrize("kind", ["web_search", "file_search", "mcp", "tool_search", "shell"])
def test_tools_of_a_vendor_are_refused_or_left_out(kind):
    given = [TIME, {"type": kind, "description": "x"}]
    param, message = problem(tools=given)
    assert param == "tools[1].type"
    assert kind in message
    assert "--skip-hosted-tools" in message
    assert tools(SKIPS, tools=given) == tools(tools=[TIME])
    assert ignored(SKIPS, tools=given) == [f"tools[] of type {kind}"]


ALL = [TIME, PATCH, AGENTS]
CHOICES: list[tuple[Any, Calling]] = [
    (None, Calling()),
    ("auto", Calling()),
    ("none", Calling("none")),
    ("required", Calling("required")),
    ({"type": "function", "name": "time"}, Calling("required", ("time",), parallel=False)),
    ({"type": "custom", "name": "patch"}, Calling("required", ("patch",), parallel=False)),
    (
        {"type": "function", "name": "close"},
        Calling("required", ("agents__close",), parallel=False),
    ),
    (
        {"type": "function", "name": "close", "namespace": "agents"},
        Calling("required", ("agents__close",), parallel=False),
    ),
    (
        {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "time"}, {"type": "custom", "name": "tell"}],
        },
        Calling("auto", ("time", "agents__tell")),
    ),
]


@pytest.mark.parametrize(("choice", "calling"), CHOICES)
def test_what_may_be_called(choice, calling):
    assert asked(tools=ALL, tool_choice=choice).calling == calling


WRONG_CHOICES: dict[str, tuple[Any, str]] = {
    "unknown word": ("any", "tool_choice"),
    "no name": ({"type": "function"}, "tool_choice"),
    "unknown name": ({"type": "function", "name": "x"}, "tool_choice"),
    "another kind": ({"type": "custom", "name": "time"}, "tool_choice"),
    "hosted": ({"type": "file_search"}, "tool_choice"),
    "mcp": ({"type": "mcp", "server_label": "x"}, "tool_choice"),
    "mode": ({"type": "allowed_tools", "mode": "x", "tools": []}, "tool_choice.mode"),
    "no list": ({"type": "allowed_tools", "mode": "auto"}, "tool_choice"),
    "allowed hosted": (
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "file_search"}]},
        "tool_choice.tools[0]",
    ),
    "none allowed": ({"type": "allowed_tools", "mode": "required", "tools": []}, "tool_choice"),
}


@pytest.mark.parametrize(("choice", "path"), WRONG_CHOICES.values(), ids=WRONG_CHOICES.keys())
def test_wrong_choices_are_refused(choice, path):
    param, message = problem(SKIPS, tools=[*ALL, SEARCH], tool_choice=choice)
    assert param == path
    assert "tool_choice" in message


def test_a_name_that_several_tools_have_is_refused():
    plain = {"type": "function", "name": "close"}
    other = {**AGENTS, "name": "others"}
    choice = {"type": "function", "name": "close"}
    for given in ([AGENTS, plain], [AGENTS, other]):
        assert "more than one" in problem(tools=given, tool_choice=choice)[1]
        chosen = asked(tools=given, tool_choice={**choice, "namespace": "agents"}).calling
        assert chosen.allowed == ("agents__close",)


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def test_calls_come_back_under_the_names_of_the_client(serve):
    steps = [
        call("agents__close", target="x"),
        call("patch", input="line\n"),
        call("agents__tell", input=""),
        call("time"),
    ]
    client = serve(ScriptedEngine(Script(steps)))
    body = {"input": "hi", "tools": ALL}
    output = client.post("/v1/responses", json=body).json()["output"]
    assert [(each["type"], each["name"], each.get("namespace")) for each in output] == [
        ("function_call", "close", "agents"),
        ("custom_tool_call", "patch", None),
        ("custom_tool_call", "tell", "agents"),
        ("function_call", "time", None),
    ]
    assert [each["input"] for each in output[1:3]] == ["line\n", ""]
    text = client.post("/v1/responses", json=body | {"stream": True}).text
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    names = ("id", "call_id")
    streamed = [
        {key: value for key, value in each.items() if key not in names}
        for each in events[-1]["response"]["output"]
    ]
    whole = [{key: each[key] for key in each if key not in names} for each in output]
    assert streamed == whole
    told = [(each["type"], each.get("delta")) for each in events if each.get("output_index") == 1]
    assert told == [
        ("response.output_item.added", None),
        ("response.custom_tool_call_input.delta", "line\n"),
        ("response.custom_tool_call_input.done", None),
        ("response.output_item.done", None),
    ]


def test_a_custom_call_that_is_cut_is_incomplete_and_shows_what_there_is(serve):
    script = Script([call("patch", input="line\n")[:60]], reason="length")
    client = serve(ScriptedEngine(script))
    answer = client.post("/v1/responses", json={"input": "hi", "tools": [PATCH]}).json()
    (item,) = answer["output"]
    assert (item["type"], item["status"]) == ("custom_tool_call", "incomplete")
    assert item["input"].startswith('{"input"')
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}


def test_an_answer_can_be_sent_back_as_it_came(serve):
    steps = [
        "hm</think>",
        "Let me see.",
        call("agents__close", target="x"),
        call("patch", input="é"),
    ]
    engine = ScriptedEngine(Script(steps, thinks=True))
    client = serve(engine)
    include = ["reasoning.encrypted_content"]
    body = {"input": [{"role": "user", "content": "hi"}], "tools": ALL, "include": include}
    answer = client.post("/v1/responses", json=body).json()
    reasoning = answer["output"][0]
    # Some clients keep only what is sealed.
    reasoning["content"] = None
    results = [
        {"type": f"{each['type']}_output", "call_id": each["call_id"], "output": "ok"}
        for each in answer["output"][2:]
    ]
    body["input"] += [*answer["output"], *results]
    again = client.post("/v1/responses", json=body).json()
    assert again["mtplx"]["ignored_fields"] == []
    turn = engine.requests[-1].prompt.messages[1]
    assert (turn.text, turn.reasoning) == ("Let me see.", "hm")
    assert [(each.name, json.loads(each.arguments)) for each in turn.calls] == [
        ("agents__close", {"target": "x"}),
        ("patch", {"input": "é"}),
    ]


@pytest.mark.parametrize("form", ["a$b", r"\bfoo\b", "(?i)a", "(?=a)b", "[", "a)|(?:b"])
def test_a_form_that_cannot_be_enforced_is_told(form):
    (tool,) = tools(tools=[custom("regex", form)])
    assert tool.parameters == ONE_TEXT
    assert not tool.strict
    assert form in (tool.description or "")
    assert ignored(tools=[custom("regex", form)]) == ["tools[].format"]


def test_errors_call_tools_by_their_places():
    item = {"type": "additional_tools", "tools": [{**AGENTS, "tools": [TIME]}]}
    both = {"tools": [SEARCH, TIME], "input": [item]}
    assert [each.where for each in tools(SKIPS, **both)] == [
        "tools[1].parameters",
        "input[0].tools[0].tools[0].parameters",
    ]


def test_a_namespace_in_another_is_refused():
    nested = {**AGENTS, "tools": [AGENTS]}
    assert problem(SKIPS, tools=[nested])[0] == "tools[0].tools[0].type"


def test_allowed_tools_that_were_left_out_are_left_out():
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [TIME, SEARCH]}
    request = asked(SKIPS, tools=[TIME, SEARCH], tool_choice=choice)
    assert request.calling == Calling("auto", ("time",))
