"""The options of a cluster: [cluster.NAME]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.ipc.instance.config.kind import (
    FLAG,
    SECRET,
    TEXT,
    Kind,
    choice,
    count,
    duration,
    factor,
    is_name,
    size,
)
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.netbridge.cluster.address import EXCLUDES, Addresses
from shmbroker.netbridge.link.option import Contradiction, heartbeat
from shmbroker.netbridge.link.times import NO_LIMIT
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.security.option import USER

HOUR: Final = 3600.0
ROOT: Final = "cluster"
TABLE: Final = "cluster.NAME"
HOPS_MAX: Final = 255
NAME_BYTES_MAX: Final = 128
"""Of a cluster: it is part of the names of queues."""
OFF: Final = "off"
OFF_WITH_REDISTRIBUTION: Final = "off-with-redistribution"
ON_DEMAND: Final = "on-demand"
STRICT: Final = "strict"
BALANCING: Final = (ON_DEMAND, STRICT, OFF, OFF_WITH_REDISTRIBUTION)


def _addresses(given: object) -> Addresses:
    if not isinstance(given, str):
        raise ValueError('prefixes with commas, as in "orders,!orders.local"')
    return Addresses.parse(given)


def _prefixes(of: Addresses) -> str:
    return ",".join([*of.included, *(f"{EXCLUDES}{each}" for each in of.excluded)])


PREFIXES: Final = Kind("prefixes", _addresses, text=_prefixes)


class Refused(ValueError):
    """Options that are missing or do not go together; the message says which."""


def names(given: object) -> tuple[str, ...]:
    if (
        not isinstance(given, list)
        or not given
        or not all(isinstance(each, str) and is_name(each) for each in given)
    ):
        raise ValueError('names of connectors, as in ["one", "two"]')
    return tuple(dict.fromkeys(given))


def _row(
    name: str, kind: Kind, default: Default | None, help: str, *, is_required: bool = False
) -> Option:
    help = help or f"Refused, has no counterpart here: {NO_COUNTERPART[name]}."
    is_reloaded = name in ("user", "password")
    return Option(TABLE, name, kind, default, help, is_required, is_reloaded)


NO_COUNTERPART: Final = {
    "min-large-message-size": "a message travels in parts if it is longer than a frame",
    "call-failover-timeout": "who is not reached is asked nothing",
    "topology-scanner-attempts": "who is missing is tried as reconnect-attempts says",
}
"""What would change nothing, and why: each of these is an error."""

# fmt: off
CLUSTERS: Final = (
    _row("connector", TEXT, None,
         "The [connectors.NAME] of this broker: its address, as others are told.",
         is_required=True),
    _row("user", USER, None, "Of all members, with password; or credentials."),
    _row("password", SECRET, None, "The same on every broker."),
    _row("credentials", TEXT, None,
         'A [credentials.NAME] of role "cluster", in the place of user and password.'),
    _row("static-connectors", Kind("names", names), None,
         "[connectors.NAME] of members; any one that is reached tells of the others."),
    _row("discovery-group", TEXT, None,
         "The [discovery.NAME] that finds members, in the place of static-connectors."),
    _row("allow-direct-connections-only", FLAG, False,
         "Link with the static connectors only, or those that are discovered, and not with members "
         "that others tell of."),
    _row("address", PREFIXES, "",
         "Which queues and exchanges it is for, by prefixes with commas; `!` before one excludes. "
         "Empty: all."),
    _row("message-load-balancing", choice(*BALANCING), "on-demand",
         "Where messages go."),
    _row("max-hops", count(0, HOPS_MAX), 1,
         "How far messages go: 1, to each node that there is a link to; 0, nowhere. More only with "
         "allow-direct-connections-only: a chain, whose members pass on what is for others."),
    _row("retry-interval", duration(0.001, HOUR), "500ms", "Between attempts to a member."),
    _row("retry-interval-multiplier", factor(1.0, 10.0), 1.0, "How much the pauses grow."),
    _row("max-retry-interval", duration(0.001, HOUR), "2s", "The longest pause."),
    _row("initial-connect-attempts", count(is_endless=True), -1,
         "To a member that was never reached; then it is left alone until it comes by itself."),
    _row("reconnect-attempts", count(is_endless=True), -1, "To one that was lost."),
    _row("use-duplicate-detection", FLAG, None,
         "Messages between brokers come once; if left out, as [link-defaults] says."),
    _row("confirmation-window-size", size(is_endless=True), None,
         "Bytes that may be unconfirmed between two brokers; if left out, the window-size of "
         "[link-defaults]."),
    _row("producer-window-size", size(is_endless=True), None,
         "The same; the smaller one counts."),
    _row("min-large-message-size", size(), None, ""),
    _row("client-id", TEXT, None,
         "How its links are called in the logs of other members; if left out, as the cluster."),
    _row("call-timeout", duration(0.001, HOUR), "30s",
         "How long a broker that is scaled down waits for each answer of the one that gets all."),
    _row("call-failover-timeout", duration(0.001, HOUR, is_endless=True), None, ""),
    _row("check-period", duration(0.01, HOUR), None,
         "Of its links: a frame is sent at least so often; if left out, as [link-defaults] says."),
    _row("connection-ttl", duration(0.02, 24 * HOUR), None,
         "The silence after which one is lost; at least twice check-period."),
    _row("notification-interval", duration(0.001, HOUR), "1s",
         "Between repeats of the own announcement on joining."),
    _row("notification-attempts", count(0, 1000), 2, "How many repeats."),
    _row("topology-scanner-attempts", count(is_endless=True), None, ""),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Cluster:
    """[cluster.NAME], checked.  Times in seconds."""

    name: str
    connector: Single
    credentials: str
    """The name of those by which its members know each other."""
    statics: tuple[Single, ...]
    discovery_group: str | None
    """The name of a [discovery.NAME]; None: there are static connectors."""
    allow_direct_connections_only: bool
    retry_interval: float
    retry_interval_multiplier: float
    max_retry_interval: float
    initial_connect_attempts: int
    reconnect_attempts: int
    notification_interval: float
    notification_attempts: int
    hops: int
    balancing: str
    addresses: Addresses
    of_links: Mapping[str, Any]
    """What is said of its links themselves, by the names of [link-defaults]."""
    client_id: str | None = None
    call_timeout: float = 30.0

    @property
    def link_name(self) -> str:
        """How others know its links."""
        return f"cluster {self.client_id or self.name}"


def own_login(name: str) -> str:
    """The name of the credentials that user and password of a cluster make."""
    return f"{ROOT}.{name}"


def check(name: str, given: Mapping[str, Any]) -> None:
    """`given`: what the file says, before defaults; Refused."""
    for key, why in NO_COUNTERPART.items():
        if key in given:
            raise Refused(f"[{ROOT}.{name}] has {key}, which has no counterpart here: {why}")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise Refused(f"[{ROOT}.{name}]: a cluster's name has at most {NAME_BYTES_MAX} bytes")
    if not is_name(name):
        raise Refused(
            f"[{ROOT}.{name!r}]: queues have the name of the cluster in theirs, so it has no slash "
            "and no control characters, and is not empty"
        )
    if "static-connectors" not in given and "discovery-group" not in given:
        raise Refused(
            f"[{ROOT}.{name}] has no static-connectors and no discovery-group: whom does it look "
            "for?"
        )
    if "static-connectors" in given and "discovery-group" in given:
        raise Refused(f"[{ROOT}.{name}] has static-connectors and discovery-group: say one of them")
    if ("user" in given) != ("password" in given):
        raise Refused(f"[{ROOT}.{name}]: user and password go together")
    if ("password" in given) == ("credentials" in given):
        raise Refused(f"[{ROOT}.{name}] needs user and password, or credentials, and not both")


def cluster(name: str, values: Mapping[str, Any], connectors: Mapping[str, Single]) -> Cluster:
    """`values`: with defaults.  Refused."""

    def reached(key: str, connector: str) -> Single:
        found = connectors.get(connector)
        if found is None:
            raise Refused(f"{ROOT}.{name}.{key} names [connectors.{connector}], which is not there")
        return found

    of_links = _of_links(values)
    try:
        heartbeat(of_links)
    except Contradiction as error:
        raise Refused(f"[{ROOT}.{name}]: {error}") from None
    return Cluster(
        name,
        reached("connector", values["connector"]),
        values["credentials"] or own_login(name),
        tuple(reached("static-connectors", each) for each in values["static-connectors"] or ()),
        values["discovery-group"],
        values["allow-direct-connections-only"],
        values["retry-interval"],
        values["retry-interval-multiplier"],
        max(values["max-retry-interval"], values["retry-interval"]),
        values["initial-connect-attempts"],
        values["reconnect-attempts"],
        values["notification-interval"],
        values["notification-attempts"],
        values["max-hops"],
        values["message-load-balancing"],
        values["address"],
        of_links,
        values["client-id"],
        values["call-timeout"],
    )


def _of_links(values: Mapping[str, Any]) -> dict[str, Any]:
    given = {
        name: values[name]
        for name in ("check-period", "connection-ttl", "use-duplicate-detection")
        if values[name] is not None
    }
    windows = [
        values[name]
        for name in ("confirmation-window-size", "producer-window-size")
        if values[name] is not None
    ]
    limits = [each for each in windows if each != NO_LIMIT]
    if windows:
        given["window-size"] = min(limits, default=NO_LIMIT)
    return given
