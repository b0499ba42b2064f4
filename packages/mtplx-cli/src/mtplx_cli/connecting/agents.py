"""All programs that `mtplx connect` knows."""

from mtplx_cli.connecting import file_agents, variable_agents

AGENTS = {agent.name: agent for agent in (*file_agents.AGENTS, *variable_agents.AGENTS)}
