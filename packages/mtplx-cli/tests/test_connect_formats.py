"""What files hold before and after `mtplx connect` has added its settings."""

import json
import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtplx_cli.connecting.agent import CannotMerge, Served
from mtplx_cli.connecting.agents import AGENTS
from mtplx_cli.connecting.json_format import JsonFormat
from mtplx_cli.connecting.toml_format import TomlFormat
from mtplx_cli.connecting.writing import write_settings

SERVED = Served("http://127.0.0.1:8000", "org/scripted", 65_536)
CONFIGURATIONS = {name: agent.configure(SERVED) for name, agent in AGENTS.items()}
FILES = {name: made.file for name, made in CONFIGURATIONS.items() if made.file}
IN_JSON = [name for name, file in FILES.items() if isinstance(file.format, JsonFormat)]


@pytest.mark.parametrize("name", ["opencode", "codex"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends_and_the_mark_of_utf_8_stay(name, mark, end, tmp_path):
    file, asked = tmp_path / "file", FILES[name]
    text = b'{\n  "mine": 1\n}\n' if name == "opencode" else b"mine = 1 # why\n"
    file.write_bytes(mark + text.replace(b"\n", end))
    assert write_settings(file, asked.format, asked.settings).changed
    once = file.read_bytes()
    assert once.startswith(mark + text[:1])
    assert once.count(b"\n") == once.count(end) > 3
    assert b"\r" in once or end == b"\n"
    assert not write_settings(file, asked.format, asked.settings).changed


@pytest.mark.parametrize("name", [name for name in FILES if name != "continue"])
def test_a_length_that_is_not_known_replaces_one_that_was(name):
    known, other = FILES[name], AGENTS[name].configure(Served(SERVED.url, SERVED.model)).file
    before = known.format.merge("", known.settings)
    assert "65536" in before
    after = known.format.merge(before, other.settings)
    assert not any(number in after for number in ("65536", "16384"))
    assert known.format.merge(after, other.settings) == after
    assert "null" not in other.format.show(other.settings)


@pytest.mark.parametrize(
    "entry", [{}, {"envKey": "OTHER"}, {"baseUrl": "http://else/v1", "envKey": "OTHER"}]
)
def test_the_entry_of_another_server_is_not_touched(entry):
    held = {"modelProviders": {"openai": [{"id": SERVED.model} | entry]}}
    with pytest.raises(CannotMerge, match=r"modelProviders\.openai\[0\] .*'org/scripted'"):
        JsonFormat().merge(json.dumps(held), FILES["qwen-code"].settings)


@pytest.mark.parametrize("entry", [{"envKey": "MTPLX_API_KEY"}, {"baseUrl": SERVED.openai_url}])
def test_our_own_entry_is_updated(entry):
    held = {"modelProviders": {"openai": [{"id": SERVED.model, "mine": 1} | entry]}}
    new = json.loads(JsonFormat().merge(json.dumps(held), FILES["qwen-code"].settings))
    (model,) = new["modelProviders"]["openai"]
    assert (model["mine"], model["envKey"]) == (1, "MTPLX_API_KEY")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), JSON), st.sampled_from(IN_JSON), st.sampled_from([None, 2, "\t"]))
def test_json_keeps_everything_else(held, name, indent):
    form, settings = JsonFormat(), FILES[name].settings
    once = form.merge(json.dumps(held, indent=indent, ensure_ascii=False), settings)
    assert form.merge(once, settings) == once
    new = json.loads(once)
    assert {key: value for key, value in new.items() if key not in settings} == {
        key: value for key, value in held.items() if key not in settings
    }
    assert new | json.loads(form.show(settings)) == new


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"a": "\\uD800", "b": "é"}', '{"b": "é"}'])
def test_json_keeps_characters(text):
    once = JsonFormat().merge(text, {"c": 1})
    assert json.loads(once.encode()) == json.loads(text) | {"c": 1}


def test_json_keeps_what_is_beside_ours():
    held = {
        "env": {"MINE": "1"},
        "modelProviders": {
            "openai": [
                {"id": "other"},
                5,
                {"id": "org/scripted", "envKey": "MTPLX_API_KEY", "mine": 1},
            ]
        },
    }
    new = json.loads(JsonFormat().merge(json.dumps(held), FILES["qwen-code"].settings))
    assert new["env"] == {"MINE": "1", "MTPLX_API_KEY": "mtplx"}
    other, number, ours = new["modelProviders"]["openai"]
    assert (other, number, ours["mine"]) == ({"id": "other"}, 5, 1)
    assert ours["baseUrl"] == SERVED.openai_url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\n",
        '# mine\r\nx = 1 # why\r\n[a.b]\r\ny = "z"\r\n',
        'model = "old" # mine\n[features]\nweb = true\n',
        'model_providers = { other = { name = "o" } } # mine\n',
        '[model_providers.other]\nname = "o" # mine\n[x]\n[model_providers.mtplx]\nname = "n"\n',
        '[model_providers]\n# mine\n[model_providers.mtplx]\nbase_url = "old"\nextra = {a = 1}\n',
        'model_providers.mtplx.name = "n"\nmodel_providers.other.name = "o" # mine\n',
        "[[hooks]]\na = 1\n[[hooks]]\na = 2\n",
        'model_context_window = 1\nmodel = "m" # mine\n',
    ],
)
def test_toml_keeps_everything_else_and_its_comments(text):
    form, settings = TomlFormat(), FILES["codex"].settings
    once = form.merge(text, settings)
    assert form.merge(once, settings) == once
    held, new = tomllib.loads(text), tomllib.loads(once)
    assert {key: new[key] for key in held if key not in settings} == {
        key: value for key, value in held.items() if key not in settings
    }
    others = held.get("model_providers", {})
    assert new["model_providers"] == others | {
        "mtplx": others.get("mtplx", {}) | settings["model_providers"]["mtplx"]
    }
    assert {key: new[key] for key in settings if key != "model_providers"} == {
        key: value for key, value in settings.items() if key != "model_providers"
    }
    assert once.count("# mine") == text.count("# mine")
    assert once.count("# why") == text.count("# why")


def test_toml_keeps_what_is_not_a_number():
    text = "a = nan # mine\nb = [nan, {c = -nan}]\n"
    assert TomlFormat().merge(text, FILES["codex"].settings).startswith(text)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_its_own_says_the_same_as_a_merge_into_nothing(name):
    file = FILES[name]
    assert file.format.merge("", file.settings) == file.format.show(file.settings)


def test_what_cannot_be_merged_raises_and_nothing_else():
    for text in ("{", "[", '{"a": 1,}', "nonsense", "{'a': 1}"):
        with pytest.raises(CannotMerge):
            JsonFormat().merge(text, {"b": 1})


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize(("length", "short"), [(8_192, True), (65_536, False), (None, False)])
def test_a_context_that_an_agent_cannot_work_with_is_said(name, length, short):
    notes = AGENTS[name].configure(replace(SERVED, context_length=length)).notes
    assert any(f"reads {length} only" in note for note in notes) == short
