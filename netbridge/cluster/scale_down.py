"""What [ha.scale-down] says, and to which node a broker gives all that it has when it is stopped.

One node gets all of it.  Those that are up are asked in an order, and the first that agrees is it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.ipc.instance.config.kind import FLAG, TEXT, Kind, count, duration
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.netbridge.cluster.option import Cluster, Refused, names
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.plan.uri import Single

TABLE: Final = "ha.scale-down"
POLICY: Final = "live-only"
WITH_BACKUPS: Final = ("shared-store", "replication")
HOUR: Final = 3600.0
ENDLESS: Final = -1
COMMIT_INTERVAL_MAX: Final = 1_000_000


def _row(name: str, kind: Kind, default: Default | None, help: str) -> Option:
    return Option(TABLE, name, kind, default, help)


# fmt: off
SCALE_DOWN: Final = (
    _row("enabled", FLAG, True, "A stop in good order moves everything to another node."),
    _row("connectors", Kind("names", names), None,
         "[connectors.NAME] of members of the cluster: the first that can be reached gets all."),
    _row("discovery-group", TEXT, None,
         "The [discovery.NAME] of the cluster: any node of it gets all."),
    _row("group-name", TEXT, None,
         "Only nodes of this group; the group of this broker, too."),
    _row("commit-interval", count(1, COMMIT_INTERVAL_MAX, is_endless=True), ENDLESS,
         "Messages that are moved between two looks at the time; -1: a whole queue."),
    _row("timeout", duration(0.001, 24 * HOUR, is_endless=True), ENDLESS,
         "Then it stops anyway; what was not moved stays in the journal."),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """[ha.scale-down], checked.  Times in seconds."""

    connectors: tuple[str, ...]
    """Uris, in this order; none: any node of the cluster."""
    group: str
    """Empty: any."""
    commit_interval: int | None
    """None: a whole queue."""
    timeout: float | None
    """None: as long as it takes."""
    is_enabled: bool = True


def scale_down(
    given: Mapping[str, Any] | None,
    policy: str,
    role: str,
    cluster: Cluster | None,
    connectors: Mapping[str, Single],
) -> ScaleDown | None:
    """`given`: what the file says.  None: there is no such table.  Refused."""
    if policy == POLICY and role != "live":
        raise Refused(f'ha.role is "{role}", and with ha.policy = "{POLICY}" there is no backup')
    if given is None:
        return None
    values = {each.name: each.value_of(each.default) for each in SCALE_DOWN if each.default}
    values = {each.name: None for each in SCALE_DOWN} | values | dict(given)
    if policy != POLICY and (policy not in WITH_BACKUPS or role != "backup"):
        raise Refused(
            f'[{TABLE}] needs ha.policy = "{POLICY}", or ha.role = "backup" with '
            f"{' or '.join(WITH_BACKUPS)}"
        )
    if values["connectors"] is not None and values["discovery-group"] is not None:
        raise Refused(f"[{TABLE}] has connectors and discovery-group: say one of them")
    if all(values[each] is None for each in ("connectors", "discovery-group", "group-name")):
        raise Refused(
            f"[{TABLE}] does not say to whom: it needs connectors, discovery-group, or group-name "
            "alone"
        )
    if cluster is None or cluster.hops == 0:
        raise Refused(
            f"[{TABLE}] needs a [cluster.NAME] whose max-hops is not 0: messages go there"
        )
    group = values["discovery-group"]
    if group is not None and group != cluster.discovery_group:
        by = f'by "{cluster.discovery_group}"' if cluster.discovery_group else "without discovery"
        raise Refused(
            f'{TABLE}.discovery-group is "{group}", and [cluster.{cluster.name}] finds its members '
            f"{by}: messages go to nodes of the cluster"
        )
    interval, timeout = values["commit-interval"], values["timeout"]
    return ScaleDown(
        tuple(_uri(each, cluster, connectors) for each in values["connectors"] or ()),
        values["group-name"] or "",
        None if interval == ENDLESS else interval,
        None if timeout == ENDLESS else timeout,
        values["enabled"],
    )


def _uri(name: str, cluster: Cluster, connectors: Mapping[str, Single]) -> str:
    found = connectors.get(name)
    if found is None:
        raise Refused(f"{TABLE}.connectors names [connectors.{name}], which is not there")
    if found == cluster.connector:
        raise Refused(f"{TABLE}.connectors names [connectors.{name}], which is this broker itself")
    return str(found)


def order_of(wanted: ScaleDown, up: Iterable[tuple[Node, str]]) -> list[Node]:
    """Who is asked, one after the other.

    `up`: nodes that are reached, and where; in the order in which they became known.
    """
    if not wanted.connectors:
        return [node for node, _ in up]
    by_uri = {uri: node for node, uri in up}
    return [by_uri[uri] for uri in wanted.connectors if uri in by_uri]
