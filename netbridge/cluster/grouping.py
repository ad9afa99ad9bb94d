"""What [grouping.NAME] says: who decides to which node the messages of a group go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.ipc.instance.config.kind import Kind, choice, duration
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.netbridge.cluster.address import Addresses
from shmbroker.netbridge.cluster.option import PREFIXES, Cluster, Refused

ROOT: Final = "grouping"
TABLE: Final = f"{ROOT}.NAME"
LOCAL: Final = "local"
REMOTE: Final = "remote"
HOUR: Final = 3600.0
ENDLESS: Final = -1
NAME_BYTES_MAX: Final = 255


def _row(
    name: str, kind: Kind, default: Default | None, help: str, *, is_required: bool = False
) -> Option:
    return Option(TABLE, name, kind, default, help, is_required=is_required)


# fmt: off
GROUPINGS: Final = (
    _row("type", choice(LOCAL, REMOTE), None,
         "`local` on the one broker that decides, and on its backups; `remote`, with the same "
         "NAME, on all others.", is_required=True),
    _row("address", PREFIXES, "",
         "That of the [cluster.NAME] that it serves. Empty: whatever it is."),
    _row("timeout", duration(0.001, HOUR), "5s",
         "For a decision; then the publish fails. On remote ones at least half of that of the "
         "local one."),
    _row("group-timeout", duration(0.001, 365 * 24 * HOUR, is_endless=True), ENDLESS,
         "Unused for so long, a group is forgotten. On remote ones between half and all of "
         "that of the local one."),
    _row("reaper-period", duration(0.01, 24 * HOUR), "30s",
         "How often it is looked for such groups."),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Grouping:
    """[grouping.NAME], checked.  Times in seconds."""

    name: str
    is_local: bool
    """It decides; the others ask it."""
    timeout: float
    group_timeout: float | None
    """None: a group is never forgotten."""
    reaper_period: float


def grouping(name: str, values: Mapping[str, Any], cluster: Cluster | None) -> Grouping:
    """`values`: with defaults.  Refused."""
    table = f"[{ROOT}.{name}]"
    if len(name.encode()) > NAME_BYTES_MAX:
        raise Refused(f"{table}: a name has at most {NAME_BYTES_MAX} bytes")
    if cluster is None:
        raise Refused(f"{table} needs a [cluster.NAME] that it serves")
    if cluster.hops == 0:
        raise Refused(
            f"{table} needs messages that may go to other nodes, and max-hops of "
            f"[cluster.{cluster.name}] is 0"
        )
    if cluster.hops > 1 and cluster.allow_direct_connections_only:
        raise Refused(
            f"{table} needs links to all nodes, and [cluster.{cluster.name}] is a chain: "
            "allow-direct-connections-only, and max-hops above 1"
        )
    address: Addresses = values["address"]
    if address not in (Addresses(), cluster.addresses):
        raise Refused(
            f"{table}: its address is not that of [cluster.{cluster.name}], the only cluster: say "
            "the same, or nothing"
        )
    forgets = values["group-timeout"]
    return Grouping(
        name, values["type"] == LOCAL, values["timeout"],
        None if forgets == ENDLESS else forgets, values["reaper-period"],
    )  # fmt: skip
