"""The voters of a member, as its configuration names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shmbroker.ipc.instance.config.config import FILE, Config, ConfigError
from shmbroker.netbridge.broker.network import Given
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.voters import Voters
from shmbroker.netbridge.link.option import times_of
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.wire.words import Role
from shmbroker.netbridge.witness.voters import Witnesses

Tell = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Chosen:
    electorate: Electorate
    """For the candidate; its names are those that `voters` knows."""
    voters: Voters


def chosen(
    config: Config, given: Given, thread: NetworkThread, ours: Identity, tell: Tell
) -> Chosen | None:
    """None: neither witnesses nor an engine are configured.  ConfigError.

    `ours`: by its name the voters know this member.
    """
    wanted = given.wanted.replication
    if wanted is None or not wanted.witnesses:
        return None
    voters = Witnesses(
        thread, wanted.witnesses, _credential(config, given), ours,
        times=times_of(given.wanted.link_defaults), pair=given.pair, tell=tell,
    )  # fmt: skip
    return Chosen(voters.electorate, voters)


def _credential(config: Config, given: Given) -> Credential:
    """By which the witnesses know this member."""
    names = [each.name for each in given.wanted.logins.values() if Role.WITNESS in each.roles]
    found = given.credentials.named(names[0]) if len(names) == 1 else None
    if found is None:
        there = f"there are {', '.join(names)}" if names else "there is none"
        raise ConfigError(
            f"{config.folder / FILE}: ha.replication.witnesses needs one [credentials.NAME] of "
            f'role "witness", as the witnesses have it: {there}'
        )
    return found
