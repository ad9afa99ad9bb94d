"""The message transfer agents of a broker, [[mta]]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from shmbroker.ipc.instance.config.config import ConfigError
from shmbroker.netbridge.agent import option as of_agents
from shmbroker.netbridge.agent.option import Agent, Mode
from shmbroker.netbridge.cluster.option import Cluster
from shmbroker.netbridge.config.of_bridges import link_times


def agents_of(
    named: Mapping[str, dict[str, Any]],
    given: Mapping[str, Any],
    logins: Collection[str],
    place: Path,
    *,
    in_cluster: Cluster | None = None,
) -> dict[str, Agent]:
    """Those that are not off, by the names that are shown.

    `given`: [link-defaults]; `logins`: credentials of role "peering".
    """
    found: dict[str, Agent] = {}
    seen: dict[str, Agent] = {}
    for name, values in named.items():
        table = f"{of_agents.TABLE_ROOT}.{name}"
        login = values["login"]
        if login not in logins:
            there = f"there are {', '.join(logins)}" if logins else "there is none"
            raise ConfigError(
                f'{place}: {table}.login names [credentials.{login}]: of role "peering" {there}'
            )
        times, retry = link_times(values, dict(values["host"].values), given, f"{place}: [{table}]")
        try:
            agent = of_agents.agent(table, values, login, times, retry)
        except of_agents.Refused as error:
            raise ConfigError(f"{place}: {error}") from None
        for former, other in seen.items():
            _go_together(former, other, table, agent, place)
        seen[table] = agent
        if agent.mode is not Mode.OFF:
            found[agent.name] = agent
    if found and in_cluster is not None:  # each node would have one, and send what others have, too
        raise ConfigError(f"{place}: [[mta]] does not go with a [cluster.NAME] yet")
    return found


def _go_together(former: str, other: Agent, table: str, agent: Agent, place: Path) -> None:
    if other.exchange != agent.exchange:
        return
    why = of_agents.beside(other, agent)
    if why:
        raise ConfigError(
            f"{place}: [{former}] and [{table}] join the exchange {agent.exchange!r} to the same "
            f"broker {why}"
        )
    if other.mode is agent.mode is Mode.BOTH:
        raise ConfigError(
            f"{place}: [{former}] and [{table}] both have mode {agent.mode.value} "
            f"({agent.mode.word}): what is published to {agent.exchange!r} goes to one broker only"
        )
