"""The message transfer agents of a broker, [[mta]]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from shmbroker.ipc.instance.config.config import ConfigError
from shmbroker.netbridge.agent import option as of_agents
from shmbroker.netbridge.agent.option import Agent, Mode
from shmbroker.netbridge.config.of_bridges import link_times


def agents_of(
    named: Mapping[str, dict[str, Any]],
    given: Mapping[str, Any],
    logins: Collection[str],
    place: Path,
    *,
    not_with: str = "",
) -> dict[str, Agent]:
    """Those that are not off, by the names that are shown.

    `given`: [link-defaults]; `logins`: credentials of role "peering"; `not_with`: what this broker
    has that agents do not go with.
    """
    found: dict[str, Agent] = {}
    seen: dict[object, str] = {}
    for name, values in named.items():
        table = f"{of_agents.TABLE_ROOT}.{name}"
        login = values["login"]
        if login not in logins:
            there = f"there are {', '.join(logins)}" if logins else "there is none"
            raise ConfigError(
                f"{place}: {table}.login names [credentials.{login}]: of role \"peering\" {there}"
            )
        times, retry = link_times(
            values, dict(values["host"].values), given, f"{place}: [{table}]"
        )
        try:
            agent = of_agents.agent(table, values, login, times, retry)
        except of_agents.Refused as error:
            raise ConfigError(f"{place}: {error}") from None
        former = seen.setdefault(of_agents.service(agent), table)
        if former != table:
            raise ConfigError(
                f"{place}: [{former}] and [{table}] join the exchange {agent.exchange!r} to the "
                f"same broker in the same mode, {agent.mode.value} ({agent.mode.word})"
            )
        if agent.mode is Mode.OFF:
            continue
        if agent.queue and any(agent.queue == each.queue for each in found.values()):
            raise ConfigError(
                f"{place}: [{table}] and another [[mta]] would have one queue for what waits, "
                f"{agent.queue!r}: forward-all has all that forward-else would have"
            )
        found[agent.name] = agent
    if found and not_with:
        raise ConfigError(f"{place}: [[mta]] does not go with {not_with} yet")
    return found
