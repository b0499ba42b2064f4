"""Programs that read a file of settings."""

import shlex

from mtplx_cli.connecting.agent import (
    API_KEY,
    Agent,
    Configuration,
    File,
    Place,
    Served,
    Settings,
    Value,
)
from mtplx_cli.connecting.json_format import JsonFormat
from mtplx_cli.connecting.toml_format import TomlFormat
from mtplx_cli.connecting.yaml_format import YamlFormat

# Clients reserve room for the longest answer; more than this part of the context is too much.
_ANSWER_SHARE = 4
_LONGEST_ANSWER = 32_000
# Tokens that an agent sends before the user has said a word, tools included; measured, rounded up.
_CLAUDE_CODE_SENDS = 25_000
_CODEX_SENDS = 12_000


def _answer_length(context_length: int) -> int:
    return min(context_length // _ANSWER_SHARE, _LONGEST_ANSWER)


def _too_short(served: Served, sends: int) -> tuple[str, ...]:
    """The note that a context is too short for an agent; none if it is not."""
    length = served.context_length
    if length is None or length > sends:
        return ()
    return (
        f"It sends about {sends} tokens to begin with, but {served.model} reads {length} only.",
    )


def _claude_code(served: Served) -> Configuration:
    variables = {
        "ANTHROPIC_BASE_URL": served.url,
        "ANTHROPIC_AUTH_TOKEN": API_KEY,
        "ANTHROPIC_MODEL": served.model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": served.model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    if served.context_length:
        variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(served.context_length)
    return Configuration(
        command="claude",
        variables=variables,
        file=File(
            Place(".claude", "settings.json", "CLAUDE_CONFIG_DIR"),
            JsonFormat(),
            {"env": {"CLAUDE_CODE_MAX_CONTEXT_TOKENS": None, **variables}},
        ),
        notes=(
            "Set in the file, they hold for every session of Claude Code.",
            *_too_short(served, _CLAUDE_CODE_SENDS),
        ),
    )


def _codex(served: Served) -> Configuration:
    provider = {"name": "mtplx", "base_url": served.openai_url, "wire_api": "responses"}
    settings: Settings = {
        "model": served.model,
        "model_provider": "mtplx",
        "model_context_window": served.context_length,
        "web_search": "disabled",
        "model_providers": {"mtplx": provider},
    }
    return Configuration(
        command="codex --profile mtplx",
        file=File(Place(".codex", "mtplx.config.toml", "CODEX_HOME"), TomlFormat(), settings),
        notes=(
            "Without --profile mtplx, Codex goes on as before.",
            *_too_short(served, _CODEX_SENDS),
        ),
    )


def _opencode(served: Served) -> Configuration:
    model: dict[str, Value] = {"name": served.model, "limit": None}
    if served.context_length:
        answer = _answer_length(served.context_length)
        model["limit"] = {"context": served.context_length, "output": answer}
    provider: Settings = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "mtplx",
        "options": {"baseURL": served.openai_url, "apiKey": API_KEY},
        "models": {served.model: model},
    }
    return Configuration(
        command=shlex.join(("opencode", "--model", f"mtplx/{served.model}")),
        file=File(
            Place(".config", "opencode/opencode.json", "XDG_CONFIG_HOME"),
            JsonFormat(),
            {"provider": {"mtplx": provider}},
        ),
        notes=("The default model of OpenCode stays what it is.",),
    )


def _pi(served: Served) -> Configuration:
    model: dict[str, Value] = {"id": served.model, "contextWindow": None, "maxTokens": None}
    if served.context_length:
        model["contextWindow"] = served.context_length
        model["maxTokens"] = _answer_length(served.context_length)
    provider: Settings = {
        "baseUrl": served.openai_url,
        "api": "openai-completions",
        "apiKey": API_KEY,
        "models": [model],
    }
    return Configuration(
        command=shlex.join(("pi", "--provider", "mtplx", "--model", served.model)),
        file=File(
            Place(".pi/agent", "models.json", "PI_CODING_AGENT_DIR"),
            JsonFormat(),
            {"providers": {"mtplx": provider}},
        ),
    )


def _qwen_code(served: Served) -> Configuration:
    model: dict[str, Value] = {
        "id": served.model,
        "name": f"{served.model} (mtplx)",
        "baseUrl": served.openai_url,
        "envKey": "MTPLX_API_KEY",
        "generationConfig": {"contextWindowSize": served.context_length},
    }
    return Configuration(
        command=shlex.join(("qwen", "--auth-type", "openai", "--model", served.model)),
        file=File(
            Place(".qwen", "settings.json", "QWEN_HOME"),
            JsonFormat(),
            {"env": {"MTPLX_API_KEY": API_KEY}, "modelProviders": {"openai": [model]}},
        ),
    )


def _continue(served: Served) -> Configuration:
    model: dict[str, Value] = {
        "name": served.model,
        "provider": "openai",
        "model": served.model,
        "apiBase": served.openai_url,
        "apiKey": API_KEY,
    }
    if served.context_length:
        model["defaultCompletionOptions"] = {
            "contextLength": served.context_length,
            "maxTokens": _answer_length(served.context_length),
        }
    settings: Settings = {"name": "mtplx", "version": "1.0.0", "schema": "v1", "models": [model]}
    return Configuration(
        command="cn",
        file=File(Place(".continue", "config.yaml", "CONTINUE_GLOBAL_DIR"), YamlFormat(), settings),
    )


AGENTS = (
    Agent("claude-code", "Claude Code", _claude_code),
    Agent("codex", "Codex", _codex),
    Agent("opencode", "OpenCode", _opencode),
    Agent("pi", "pi", _pi),
    Agent("qwen-code", "Qwen Code", _qwen_code),
    Agent("continue", "Continue", _continue),
)
