"""The voters of a member, as its configuration names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.ipc.instance.config.config import FILE, Config, ConfigError
from shmbroker.ipc.instance.lock.database import address_of
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.config.config import Network
from shmbroker.netbridge.config.of_ha import VOTES
from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.voters import Voters
from shmbroker.netbridge.engine.engine import Engine
from shmbroker.netbridge.engine.option import ZooKeeperOptions
from shmbroker.netbridge.engine.sql import Sql
from shmbroker.netbridge.engine.voters import EngineVoters
from shmbroker.netbridge.engine.zookeeper import ZooKeeper, kazoo
from shmbroker.netbridge.link.option import times_of
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.wire.words import Role
from shmbroker.netbridge.witness.voters import Witnesses

Tell = Callable[[Mapping[str, Any]], None]
WITNESSES: Final = "witnesses"
"""Not which: they may be reached by other names."""


@dataclass(frozen=True, slots=True)
class Chosen:
    electorate: Electorate
    """For the candidate; its names are those that `voters` knows."""
    voters: Voters
    engine: str = ""
    """What all members say of it; empty: lives of a cluster."""


def chosen(
    config: Config, given: Given, thread: NetworkThread, ours: Identity, tell: Tell
) -> Chosen | None:
    """None: neither witnesses nor an engine are configured.  ConfigError.

    `ours`: by its name the voters know this member.
    """
    wanted = given.wanted.replication
    engine = engine_of(config, given.wanted)
    if engine is not None:
        zookeeper = given.wanted.zookeeper
        if zookeeper is not None and zookeeper.has_one_server:
            why = "nobody is granted anything while it is away"
            tell({"event": "lock manager", "level": "warning", "state": "one server",
                  "place": engine.place, "reason": why})  # fmt: skip
        held = EngineVoters(thread, engine, ours.name, tell)
        return Chosen(held.electorate, held, engine.shared)
    if wanted is None or not wanted.witnesses:
        return None
    voters = Witnesses(
        thread, wanted.witnesses, _credential(config, given), ours,
        times=times_of(given.wanted.link_defaults), pair=given.pair, tell=tell,
    )  # fmt: skip
    return Chosen(voters.electorate, voters, WITNESSES)


def engine_of(config: Config, network: Network) -> Engine | None:
    """The lock manager, not reached yet."""
    wanted = network.replication
    if wanted is None or wanted.lock_manager == VOTES:
        return None
    if network.zookeeper is not None:
        return _zookeeper(config, network, network.zookeeper)
    return Sql(address_of(config), config.sql.table, config.name, config.sql.expiration / 3)


def _zookeeper(config: Config, network: Network, found: ZooKeeperOptions) -> ZooKeeper:
    kazoo()  # that it is missing is said at the start
    options: dict[str, Any] = {}
    if found.credentials is not None:
        login = network.logins.get(found.credentials)
        if login is None:
            raise ConfigError(
                f"{config.folder / FILE}: ha.zookeeper.credentials names "
                f"[credentials.{found.credentials}], which is not there"
            )
        key = f"credentials.{login.name}.password"
        options["digest"] = login.user, login.password.revealed(key, network.folder)
    if found.tls_ca:
        options |= {"use_ssl": True, "ca": str(config.folder / found.tls_ca)}
    if found.tls_cert:
        options["certfile"] = str(config.folder / found.tls_cert)
        options["keyfile"] = str(config.folder / found.tls_key)
    return ZooKeeper(found.connect, found.namespace, config.name, found.session_timeout, **options)


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
