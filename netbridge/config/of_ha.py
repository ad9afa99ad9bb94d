"""What the tables say of high availability: a replicated node and its lock manager, a pair, and
queues that follow others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.instance.config.config import ConfigError, Given
from shmbroker.ipc.instance.config.option import OPTIONS
from shmbroker.netbridge.engine import option as engine
from shmbroker.netbridge.engine.option import ZOOKEEPER, ZooKeeperOptions, zookeeper
from shmbroker.netbridge.member.option import Refused, Replication, replication
from shmbroker.netbridge.pair import option as pairs

VOTES: Final = "votes"
QUEUE_REPLICATION: Final = "ha.queue-replication"
REPLICA_TIMEOUT: Final = "ha.replica-timeout"
LEASES: Final = {"zookeeper": "ha.zookeeper.session-timeout", "sql": "sql.expiration"}
"""The options of lock managers that say how long a lease is."""


def replication_of(
    given: Given,
    tables: Mapping[str, dict[str, Any]],
    clusters: Mapping[str, dict[str, Any]],
    beat: tuple[float, float],
    place: Path,
) -> Replication | None:
    """ConfigError says what is missing, or does not go together."""
    values = tables.get("ha.replication", {})
    if given.get("ha.policy") != "replication":
        if values:
            raise ConfigError(f'{place}: [ha.replication] needs ha.policy = "replication"')
        return None
    manager = values.get("lock-manager", VOTES)
    if manager == "sql" and not given.get("sql.url"):
        raise ConfigError(
            f'{place}: ha.replication.lock-manager is "sql", and sql.url does not say which '
            'database, as in "postgresql://broker@db.example/broker"'
        )
    try:
        lease = _with_lease(values, manager, given, tables)
        return replication(lease, beat[1], clusters)
    except Refused as error:
        raise ConfigError(f"{place}: {error}") from None


def _with_lease(
    values: dict[str, Any], manager: str, given: Given, tables: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """An engine has an option of its own for that."""
    name = LEASES.get(manager)
    if name is None:
        return values
    if "lease" in values:
        raise Refused(
            f'ha.replication.lease is for witnesses: with lock-manager = "{manager}" {name} takes '
            "its place"
        )
    table, _, key = name.rpartition(".")
    option = next(each for each in (*OPTIONS, *ZOOKEEPER) if each.key == name)
    found = tables.get(table, {}).get(key)
    return values | {
        "lease": found if found is not None else option.value_of(given.get(name, option.default))
    }


def zookeeper_of(tables: Mapping[str, dict[str, Any]], place: Path) -> ZooKeeperOptions | None:
    values = tables.get(engine.TABLE, {})
    if tables.get("ha.replication", {}).get("lock-manager") != "zookeeper":
        if values:
            raise ConfigError(
                f'{place}: [{engine.TABLE}] needs ha.replication.lock-manager = "zookeeper"'
            )
        return None
    try:
        return zookeeper(values)
    except engine.Refused as error:
        raise ConfigError(f"{place}: {error}") from None


def pair_of(
    given: Given, tables: Mapping[str, dict[str, Any]], peers: frozenset[str], place: Path
) -> Mapping[str, Any] | None:
    """Which of both this broker is may be said when it is started: until then the rest counts."""
    values = tables.get("ha.pair", {})
    if given.get("ha.policy") != "pair":
        if values:
            raise ConfigError(f'{place}: [ha.pair] needs ha.policy = "pair"')
        return None
    named, served = given.get("instance.network-vhost"), values.get("vhost")
    if named and served and named != served:
        raise ConfigError(
            f"{place}: instance.network-vhost is {named!r}, and ha.pair.vhost {served!r}: a pair "
            "serves one, that of ha.pair.vhost"
        )
    if values.get("is-primary") or values.get("is-backup"):
        try:
            pairs.pair(values, peers)
        except pairs.Refused as error:
            raise ConfigError(f"{place}: {error}") from None
    return values


def _value(given: Given, key: str) -> Any:
    """Of an option of the instance, or its default."""
    option = next(each for each in OPTIONS if each.key == key)
    return option.value_of(given.get(key, option.default))


def replica_timeout_of(given: Given) -> float:
    seconds: float = _value(given, REPLICA_TIMEOUT)
    return seconds


def queue_replication_of(given: Given, known: Sequence[str], place: Path) -> bool:
    """`known`: credentials of role replica.  ConfigError: with which it goes to others is not
    clear."""
    if not _value(given, QUEUE_REPLICATION):
        return False
    if given.get("ha.policy") == "pair":
        raise ConfigError(
            f'{place}: {QUEUE_REPLICATION} does not go with ha.policy = "pair" yet: queues of '
            "such brokers can neither follow nor be followed one by one"
        )
    if len(known) != 1:
        there = f"there are {', '.join(known)}" if known else "there is none"
        raise ConfigError(
            f'{place}: {QUEUE_REPLICATION} needs one [credentials.NAME] of role "replica", by '
            f"which brokers meet: {there}"
        )
    return True
