"""The tables of shmbroker.toml that concern other hosts, checked.

Also what no table can know of another: references by name, and who may connect to what.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.instance.config import config as instance
from shmbroker.ipc.instance.config.config import Config, ConfigError, Given
from shmbroker.ipc.instance.config.option import (
    NETBRIDGE_TABLES,
    OPTIONS,
    PARTS_OF_HA,
    Option,
    is_of_netbridge,
)
from shmbroker.ipc.instance.config.secret import Secret
from shmbroker.ipc.instance.config.sources import NAME, Layers
from shmbroker.netbridge.agent import option as agents
from shmbroker.netbridge.agent.option import AGENTS, Agent
from shmbroker.netbridge.cluster import grouping as groupings
from shmbroker.netbridge.cluster import option as cluster_option
from shmbroker.netbridge.cluster.grouping import GROUPINGS, Grouping
from shmbroker.netbridge.cluster.option import CLUSTERS, Cluster
from shmbroker.netbridge.cluster.scale_down import SCALE_DOWN, ScaleDown
from shmbroker.netbridge.config import console as consoles
from shmbroker.netbridge.config.colocated import COLOCATED, Colocated, merged
from shmbroker.netbridge.config.console import CONSOLE, Console
from shmbroker.netbridge.config.of_agents import agents_of
from shmbroker.netbridge.config.of_bridges import Bridge, bridges_of, defaults, network_links_of
from shmbroker.netbridge.config.of_cluster import colocated_of, grouping_of, scale_down_of
from shmbroker.netbridge.config.of_ha import (
    pair_of,
    queue_replication_of,
    replica_timeout_of,
    replication_of,
    zookeeper_of,
)
from shmbroker.netbridge.config.of_queues import QUEUE_SETTINGS, QUEUES, settings_of
from shmbroker.netbridge.discovery import option as discoveries
from shmbroker.netbridge.discovery.option import BROADCASTS, DISCOVERIES, Broadcast, Discovery
from shmbroker.netbridge.engine.option import ZOOKEEPER, ZooKeeperOptions
from shmbroker.netbridge.link.option import (
    LINK_DEFAULTS,
    Contradiction,
    heartbeat,
    overridden,
    times_of,
)
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.member.option import REPLICATION, Replication
from shmbroker.netbridge.network import option as networks
from shmbroker.netbridge.network.option import NETWORK_LINKS, NetworkLink
from shmbroker.netbridge.pair.option import PAIR
from shmbroker.netbridge.plan.bridge import BRIDGES
from shmbroker.netbridge.plan.option import ACCEPTORS, CONNECTORS
from shmbroker.netbridge.plan.telling import Telling, Untold
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.security.option import CREDENTIALS, SECURITY
from shmbroker.netbridge.wire.words import Role

OURS: Final = (
    *CONNECTORS,
    *ACCEPTORS,
    *BRIDGES,
    *NETWORK_LINKS,
    *AGENTS,
    *LINK_DEFAULTS,
    *CREDENTIALS,
    *SECURITY,
    *REPLICATION,
    *ZOOKEEPER,
    *PAIR,
    *CLUSTERS,
    *GROUPINGS,
    *SCALE_DOWN,
    *COLOCATED,
    *BROADCASTS,
    *DISCOVERIES,
    *CONSOLE,
    *QUEUE_SETTINGS,
)
ALL: Final = (*OPTIONS, *OURS)
"""Every option of shmbroker.toml."""

assert {each.table.removesuffix(NAME) for each in OURS} == {
    *NETBRIDGE_TABLES,
    *(f"ha.{each}" for each in PARTS_OF_HA),
}


@dataclass(frozen=True, slots=True)
class Acceptor:
    name: str
    uri: Single
    roles: tuple[Role, ...]
    credentials: str | None
    """Whose password gives its key pair; None: it has that of the key file."""
    session_ttl: float
    telling: Telling
    queue_replicas: bool
    """Of a member of a replicated node: other members come elsewhere."""
    times: LinkTimes


@dataclass(frozen=True, slots=True)
class Login:
    """One of the credentials, with its secrets not looked up yet."""

    name: str
    user: str
    password: Secret
    roles: tuple[Role, ...]
    accept_also: tuple[Secret, ...]


@dataclass(frozen=True, slots=True)
class Network:
    folder: Path
    connectors: Mapping[str, Single]
    acceptors: Mapping[str, Acceptor]
    bridges: Mapping[str, Bridge]
    logins: Mapping[str, Login]
    link_defaults: Mapping[str, Any]
    """By name; times in seconds."""
    heartbeat: tuple[float, float]
    """The interval, and the silence after which a link is lost."""
    key_file: Path | None
    known_keys: Path | None
    replication: Replication | None
    """None: ha.policy is another one."""
    zookeeper: ZooKeeperOptions | None
    """None: it is not the lock manager."""
    pair: Mapping[str, Any] | None
    """[ha.pair] by name; None: ha.policy is another one."""
    queue_replication: bool = False
    """Single queues may follow those of other brokers, and others those of this one."""
    replica_timeout: float = 1.0
    """So long confirms wait for a queue elsewhere that follows, and does not answer."""
    cluster: Cluster | None = None
    """[cluster.NAME]; None: it is in none."""
    scale_down: ScaleDown | None = None
    """[ha.scale-down]; None: a stop moves nothing."""
    grouping: Grouping | None = field(default=None, kw_only=True)
    """[grouping.NAME]; None: groups are of their node alone."""
    colocated: Colocated | None = field(default=None, kw_only=True)
    """[ha.colocated]; None: no backups of others run here."""
    links: Mapping[str, NetworkLink] = field(default_factory=dict, kw_only=True)
    """[links.NAME], by the name that is shown."""
    agents: Mapping[str, Agent] = field(default_factory=dict, kw_only=True)
    """[[mta]], those that are not off, by the name that is shown."""
    broadcasts: Mapping[str, Broadcast] = field(default_factory=dict)
    discoveries: Mapping[str, Discovery] = field(default_factory=dict)
    console: Console | None = field(default=None, kw_only=True)
    """[console]; None: it has none."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, kw_only=True)
    """[queues."orders.#"], by pattern."""
    between: tuple[Single, ...] = ()
    """By these members of its cluster reach each other, its own first, and programs do not."""

    @property
    def may_be_followed(self) -> bool:
        """Queues of the members of a replicated node always may, where an acceptor is for that."""
        return self.queue_replication or self.replication is not None

    def without(self, acceptors: Iterable[Acceptor]) -> Network:
        """What others than those who come there are told of."""
        gone = {each.name for each in acceptors}
        others = {name: each for name, each in self.acceptors.items() if name not in gone}
        return replace(self, acceptors=others)

    def listening_as(self, former: Network) -> Network:
        """With the acceptors of the former one: where a broker listens needs a restart."""
        kept = {
            name: replace(self.acceptors.get(name, each), uri=each.uri)
            for name, each in former.acceptors.items()
        }
        return replace(self, acceptors=kept)


def layers(folder: Path, flags: Mapping[str, object] | None = None) -> Layers:
    return instance.layers(folder, ALL, os.environ, flags or {})


def load(folder: Path, flags: Mapping[str, object] | None = None) -> tuple[Config, Network]:
    """ConfigError if anything of it is wrong."""
    values = layers(folder, flags).values
    found = network(folder, values)
    return replace(instance.configured(folder, merged(values)), settings=found.settings), found


def option_of(key: str) -> Option | None:
    """`connectors.a.b.uri` is the option uri of the table connectors.NAME."""
    table, _, name = key.rpartition(".")
    root = table.partition(".")[0]
    for option in ALL:
        named = option.table.endswith(NAME)
        if option.name == name and option.table == (f"{root}{NAME}" if named else table):
            return option
    return None


def network(folder: Path, given: Given) -> Network:
    folder = folder.absolute()
    place = instance.place_of(folder)
    whole, given = given, merged(given)
    tables = _tables(given, folder, place)
    _check_clusters(tables, place)
    _check_discovery(tables, place)
    for table, values in tables.items():
        _fill(table, values, place)
    links = tables.get("link-defaults", {})
    try:
        beat = heartbeat(links)
    except Contradiction as error:
        raise ConfigError(f"{place}: [link-defaults]: {error}") from None
    security = tables.get("security", {})
    logins = {name: _login(name, each) for name, each in _named(tables, "credentials").items()}
    connectors = {name: each["uri"] for name, each in _named(tables, "connectors").items()}
    in_cluster = _cluster(tables, connectors, logins, place)
    if in_cluster is not None and given.get("ha.policy") == "pair":
        raise ConfigError(
            f'{place}: [cluster.{in_cluster.name}] does not go with ha.policy = "pair"'
        )
    announced, looked = _discovery(tables, folder, connectors, logins, in_cluster, place)
    known = sorted(of_role(Role.PEERING, logins))
    bridges = bridges_of(_named(tables, "bridges"), links, known, looked, place)
    apart = _apart(given, in_cluster)
    found = Network(
        folder,
        connectors,
        {
            name: _acceptor(name, each, links, place)
            for name, each in _named(tables, "acceptors").items()
        },
        bridges,
        logins,
        overridden(defaults(), links),
        beat,
        folder / security["key-file"] if security.get("key-file") else None,
        folder / security["known-keys"] if security.get("known-keys") else None,
        replication_of(given, tables, _named(tables, cluster_option.ROOT), beat, place),
        zookeeper_of(tables, place),
        pair_of(given, tables, frozenset(known), place),
        queue_replication_of(given, of_role(Role.REPLICA, logins), place),
        replica_timeout_of(given),
        in_cluster,
        scale_down_of(given, tables, in_cluster, connectors, place),
        announced,
        looked,
        grouping=grouping_of(_named(tables, groupings.ROOT), in_cluster, place),
        colocated=colocated_of(whole, tables, in_cluster, connectors, place),
        links=network_links_of(
            _named(tables, networks.ROOT), links, known, bridges, place, not_with=apart
        ),
        agents=agents_of(
            _named(tables, agents.TABLE_ROOT), links, known, place, in_cluster=in_cluster
        ),
        settings=settings_of(_named(tables, QUEUES), place),
        console=consoles.of(tables.get(consoles.TABLE), logins, folder, place),
    )
    return _listening_for_cluster(with_keys(found, place), place)


def _tables(given: Given, folder: Path, place: Path) -> dict[str, dict[str, Any]]:
    """Those of the network, by name; also those that have nothing in them."""
    tables: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        if is_of_netbridge(key):
            table, _, name = key.rpartition(".")
            tables.setdefault(table, {})[name] = _parsed(key, value, place)
    for table in instance.empty_tables(folder):
        tables.setdefault(table, {})
    return tables


def _apart(given: Given, in_cluster: Cluster | None) -> str:
    """What brokers that are joined by links of their own do not go with yet; empty: they may."""
    if in_cluster is not None:
        return "a [cluster.NAME]"
    return 'ha.policy = "pair"' if given.get("ha.policy") == "pair" else ""


def _check_clusters(tables: Mapping[str, dict[str, Any]], place: Path) -> None:
    """What the file says of clusters, before defaults stand beside it."""
    found = _named(tables, cluster_option.ROOT)
    if len(found) > 1:
        raise ConfigError(
            f"{place}: a broker is in one cluster, and there are {' and '.join(found)}: more are "
            "not there yet"
        )
    for name, values in found.items():
        try:
            cluster_option.check(name, values)
        except cluster_option.Refused as error:
            raise ConfigError(f"{place}: {error}") from None


def _cluster(
    tables: Mapping[str, dict[str, Any]],
    connectors: Mapping[str, Single],
    logins: dict[str, Login],
    place: Path,
) -> Cluster | None:
    """With a login of its own, if it says user and password."""
    for name, values in _named(tables, cluster_option.ROOT).items():
        try:
            found = cluster_option.cluster(name, values, connectors)
        except cluster_option.Refused as error:
            raise ConfigError(f"{place}: {error}") from None
        if values["password"] is not None:
            user, password = values["user"], values["password"]
            own = Login(found.credentials, user, password, (Role.CLUSTER,), ())
            logins[found.credentials] = own
        login = logins.get(found.credentials)
        if login is None or Role.CLUSTER not in login.roles:
            raise ConfigError(
                f"{place}: cluster.{name}.credentials names [credentials.{found.credentials}], "
                'which is not there, or has not the role "cluster"'
            )
        return found
    return None


def _check_discovery(tables: Mapping[str, dict[str, Any]], place: Path) -> None:
    """What the file says, before defaults stand beside it."""
    for root in (discoveries.BROADCAST, discoveries.DISCOVERY):
        for name, values in _named(tables, root).items():
            try:
                discoveries.check(root, name, values)
            except discoveries.Refused as error:
                raise ConfigError(f"{place}: {error}") from None


def _discovery(
    tables: Mapping[str, dict[str, Any]],
    folder: Path,
    connectors: Mapping[str, Single],
    logins: Mapping[str, Login],
    cluster: Cluster | None,
    place: Path,
) -> tuple[dict[str, Broadcast], dict[str, Discovery]]:
    try:
        announced = {
            name: discoveries.broadcast(name, each, folder, connectors, logins, cluster)
            for name, each in _named(tables, discoveries.BROADCAST).items()
        }
        looked = {
            name: discoveries.discovery(name, each, folder, logins, cluster)
            for name, each in _named(tables, discoveries.DISCOVERY).items()
        }
        if cluster is not None:
            discoveries.of_cluster(cluster, looked)
    except discoveries.Refused as error:
        raise ConfigError(f"{place}: {error}") from None
    return announced, looked


def _listening_for_cluster(found: Network, place: Path) -> Network:
    """Links of a cluster are there before a broker is live: they have an acceptor of their own."""
    of_cluster = [each for each in found.acceptors.values() if Role.CLUSTER in each.roles]
    for each in of_cluster:
        if len(each.roles) > 1:
            raise ConfigError(
                f"{place}: [acceptors.{each.name}] has the role cluster, and others as well: "
                "members of a cluster have an acceptor of their own"
            )
    if found.cluster is not None and not of_cluster:
        raise ConfigError(
            f"{place}: [cluster.{found.cluster.name}] needs an [acceptors.NAME] with "
            'roles = ["cluster"], where its members come to'
        )
    return found


def of_role(role: Role, logins: Mapping[str, Login]) -> list[str]:
    """Names of credentials."""
    return [each.name for each in logins.values() if role in each.roles]


def _parsed(key: str, value: object, place: Path) -> Any:
    option = option_of(key)
    if option is None:
        meant = difflib.get_close_matches(key, _known(key), 1)
        hint = f"; did you mean {meant[0]}?" if meant else ""
        raise ConfigError(f"{place}: there is no option {key}{hint}")
    try:
        return option.value_of(value)
    except (ValueError, InvalidArgument) as error:
        is_hidden = option.kind.name.startswith("secret") or "@" in str(value)
        raise ConfigError(
            f"{place}: {key} is {error}" + ("" if is_hidden else f", not {value!r:.200}")
        ) from None


def _known(key: str) -> list[str]:
    table = key.rpartition(".")[0]
    root = table.partition(".")[0]
    return [
        f"{table if each.table.endswith(NAME) else each.table}.{each.name}"
        for each in OURS
        if each.table.removesuffix(NAME) in (root, table)
    ]


def _default(option: Option) -> Any:
    return None if option.default is None else option.value_of(option.default)


def _fill(table: str, values: dict[str, Any], place: Path) -> None:
    """Defaults of a table with a name; what must be there is there."""
    for option in OURS:
        if option.table == table.partition(".")[0] + NAME and option.name not in values:
            if option.is_required:
                raise ConfigError(f"{place}: [{table}] has no {option.name}: {option.help}")
            values[option.name] = _default(option)


def _named(tables: Mapping[str, dict[str, Any]], root: str) -> dict[str, dict[str, Any]]:
    return {
        table.removeprefix(f"{root}."): values
        for table, values in tables.items()
        if table.startswith(f"{root}.")
    }


def _acceptor(
    name: str, values: Mapping[str, Any], defaults: Mapping[str, Any], place: Path
) -> Acceptor:
    """Its uri may have any key of [link-defaults]."""
    known = {each.name for each in LINK_DEFAULTS}
    own = {key: value for key, value in values["uri"].values if key in known}
    try:
        times, telling = times_of(overridden(defaults, own)), Telling.of(values)
    except (Contradiction, Untold) as error:
        raise ConfigError(f"{place}: [acceptors.{name}]: {error}") from None
    return Acceptor(
        name, values["uri"], values["roles"], values["credentials"], values["session-ttl"],
        telling, values["queue-replicas"], times,
    )  # fmt: skip


def _login(name: str, values: Mapping[str, Any]) -> Login:
    user = values["user"] or name
    return Login(name, user, values["password"], values["role"], values["accept-also"])


def with_keys(found: Network, place: Path) -> Network:
    """Each acceptor has one key pair: of a password, or of the key file."""
    acceptors = {}
    for name, acceptor in found.acceptors.items():
        key = f"acceptors.{name}"
        if acceptor.credentials is not None and acceptor.credentials not in found.logins:
            meant = difflib.get_close_matches(acceptor.credentials, found.logins, 1)
            hint = f"; did you mean {meant[0]!r}?" if meant else ""
            raise ConfigError(
                f"{place}: {key}.credentials names [credentials.{acceptor.credentials}], which is "
                f"not there{hint}"
            )
        admitted = [
            each.name for each in found.logins.values() if set(each.roles) & set(acceptor.roles)
        ]
        if acceptor.credentials is None and found.key_file is None and len(admitted) != 1:
            raise ConfigError(f"{place}: [{key}] " + _why_no_key(admitted))
        whose = acceptor.credentials
        if whose is None and found.key_file is None:
            [whose] = admitted
        acceptors[name] = Acceptor(**(_fields(acceptor) | {"credentials": whose}))
    return Network(**(_fields(found) | {"acceptors": acceptors}))


def _fields(of: Any) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__dataclass_fields__}


def _why_no_key(admitted: list[str]) -> str:
    if not admitted:
        return (
            "admits nobody: no [credentials.NAME] has a role that it has, and there is no "
            "security.key-file"
        )
    return (
        f"admits {' and '.join(admitted)}: say by credentials = whose password gives its key (the "
        "others pin it by key=), or give each an acceptor of its own, or set security.key-file"
    )
