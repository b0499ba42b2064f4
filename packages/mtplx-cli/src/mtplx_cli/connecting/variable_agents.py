"""Programs that are set up by environment variables, or by a command of their own."""

import shlex
from urllib.parse import urlsplit

from mtplx_cli.connecting.agent import API_KEY, Agent, Configuration, Served

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _open_webui(served: Served) -> Configuration:
    return Configuration(
        command="open-webui serve",
        variables={"OPENAI_API_BASE_URL": served.openai_url, "OPENAI_API_KEY": API_KEY},
        notes=(
            "Open WebUI reads them at its first start; later they are in its admin settings,"
            " under Connections.",
            *_docker_notes(served),
        ),
    )


def _docker_notes(served: Served) -> tuple[str, ...]:
    parts = urlsplit(served.url)
    if parts.hostname not in _LOOPBACK:
        return ()
    inside = _base_option(f"http://host.docker.internal:{parts.port or 80}/v1")
    outside = _base_option(served.openai_url)
    key = f"-e OPENAI_API_KEY={API_KEY}"
    image = "ghcr.io/open-webui/open-webui:main"
    return (
        f"In Docker Desktop: docker run -p 3000:8080 {inside} {key} {image}",
        "In Docker on Linux the server, which listens on loopback only, is reached by the host's"
        f" network alone: docker run --network host {outside} {key} {image}",
    )


def _base_option(url: str) -> str:
    return f"-e {shlex.quote(f'OPENAI_API_BASE_URL={url}')}"


def _aider(served: Served) -> Configuration:
    return Configuration(
        command=shlex.join(("aider", "--model", f"openai/{served.model}")),
        variables={"OPENAI_API_BASE": served.openai_url, "OPENAI_API_KEY": API_KEY},
    )


def _copilot(served: Served) -> Configuration:
    return Configuration(
        command="copilot",
        variables={
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_BASE_URL": served.openai_url,
            "COPILOT_PROVIDER_API_KEY": API_KEY,
            "COPILOT_MODEL": served.model,
        },
    )


def _cline(served: Served) -> Configuration:
    auth = ("-p", "openai", "-k", API_KEY, "-m", served.model, "-b", served.openai_url)
    return Configuration(
        command=shlex.join(("cline", "auth", *auth)) + " && cline",
        notes=("The first command makes it the model that Cline uses from then on.",),
    )


AGENTS = (
    Agent("openwebui", "Open WebUI", _open_webui),
    Agent("aider", "Aider", _aider),
    Agent("copilot", "Copilot CLI", _copilot),
    Agent("cline", "Cline CLI", _cline),
)
