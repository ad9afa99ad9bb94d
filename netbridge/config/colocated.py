"""[ha.colocated]: a live that asks another one to run its backup, or that runs those of others.

Its sub-tables `live` and `backup` have options of [ha] and [ha.replication]: for this broker, and
for the backups that it runs.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from shmbroker.ipc.instance.config.kind import FLAG, MEMBERS, Kind, count, duration
from shmbroker.ipc.instance.config.option import OPTIONS, Default, Option
from shmbroker.netbridge.cluster.option import ROOT, Cluster, Refused
from shmbroker.netbridge.cluster.scale_down import SCALE_DOWN, scale_down
from shmbroker.netbridge.member.option import REPLICATION
from shmbroker.netbridge.plan.uri import Single

TABLE: Final = "ha.colocated"
LIVE: Final = f"{TABLE}.live"
BACKUP: Final = f"{TABLE}.backup"
POLICIES: Final = ("shared-store", "replication")
BACKUPS_MAX: Final = 64
HOUR: Final = 3600.0
ENDLESS: Final = -1
PORT_MAX: Final = 65535
IDENTITY: Final = ("policy", "role", "members", "replicate", "queue-replication")
"""Options of [ha] that say what a broker is: live and hosted backup have the same, or other ones by
themselves."""
OF_BACKUPS: Final = "restart-backup"
"""False for hosted backups: their live asks anew."""


def _options() -> dict[str, Option]:
    of_ha = (each for each in OPTIONS if each.table == "ha" and each.name not in IDENTITY)
    return {each.name: each for each in (*REPLICATION, *of_ha)}


_NAME: Final = next(each for each in OPTIONS if each.key == "instance.name")
DRAINS: Final = "scale-down"
"""In `backup` alone: what [ha.scale-down] is for a backup (docs/scale-down.md)."""
KNOWN: Final = _options()
"""What may stand in `live` and `backup`, by name."""


def _names(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise ValueError('names of connectors, as in ["east"]')
    return tuple(dict.fromkeys(given))


def _table(given: object) -> dict[str, object]:
    """By full keys, as they stand there."""
    if not isinstance(given, Mapping):
        raise ValueError("a table with options of [ha] and [ha.replication]")
    unknown = "with options of [ha] and [ha.replication], and {} is none that may stand here"
    return _known(given, KNOWN, unknown)


def _table_of_backups(given: object) -> dict[str, object]:
    """The same, with a table `scale-down`."""
    if not isinstance(given, Mapping) or DRAINS not in given:
        return _table(given)
    found = _table({name: each for name, each in given.items() if name != DRAINS})
    drains = given[DRAINS]
    if not isinstance(drains, Mapping) or not drains:
        raise ValueError(f"a table in which {DRAINS} is a table with options of [ha.scale-down]")
    return found | _known(drains, OF_DRAINS, f"in which {DRAINS} has no {{}}", f"{DRAINS}.")


def _known(
    given: Mapping[str, object], options: Mapping[str, Option], unknown: str, inside: str = ""
) -> dict[str, object]:
    """`unknown`: what is said of a table with another name; `inside`: of what these names are."""
    found: dict[str, object] = {}
    for name, value in given.items():
        option = options.get(name)
        if option is None:
            meant = difflib.get_close_matches(name, options, 1)
            hint = f"; did you mean {meant[0]}?" if meant else ""
            raise ValueError(f"a table {unknown.format(name)}{hint}")
        try:
            option.value_of(value)
        except ValueError as error:
            raise ValueError(f"a table in which {inside}{name} is {error}") from None
        found[option.key] = value
    return found


def _row(name: str, kind: Kind, default: Default | None, help: str) -> Option:
    return Option(TABLE, name, kind, default, help)


NAMES: Final = Kind("names", _names)
OPTIONS_OF_HA: Final = Kind("table", _table)
OF_BACKUP: Final = Kind("table", _table_of_backups)
OF_DRAINS: Final = {each.name: each for each in SCALE_DOWN}

# fmt: off
COLOCATED: Final = (
    _row("request-backup", FLAG, False, "Ask another live of the cluster to run a backup of ours."),
    _row("max-backups", count(0, BACKUPS_MAX), 1, "Backups that it runs for others; 0: none."),
    _row("backup-request-retries", count(0, is_endless=True), ENDLESS,
         "How often others are asked again, after the first one that has refused."),
    _row("backup-request-retry-interval", duration(0.001, HOUR), "5s",
         "The pause before somebody is asked again."),
    _row("backup-port-offset", count(1, PORT_MAX), 100,
         "What is added to the ports of acceptors and connectors, for each further backup."),
    _row("excludes", NAMES, [], "[connectors.NAME] that keep their port: those of other brokers."),
    _row("live", OPTIONS_OF_HA, None,
         "Options of [ha] and [ha.replication], for this broker."),
    _row("backup", OF_BACKUP, None,
         "Options of [ha] and [ha.replication], and a table scale-down, for the backups that it "
         "runs."),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Colocated:
    """[ha.colocated], checked.  Times in seconds."""

    requests: bool
    max_backups: int
    retries: int | None
    """None: for ever."""
    interval: float
    offset: int
    excludes: tuple[str, ...]
    member: str = ""
    """Where the backup of this broker reaches it, if they are members of a replicated node."""
    backup: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Options of the backups that it runs, by key."""
    inherited: Mapping[str, object] = field(default_factory=dict, repr=False)
    """All options of this broker as they were given: the backups that it runs begin with them."""


def known_by(running: Colocated | None, found: Colocated | None) -> Colocated | None:
    """With the credentials that were found; all else needs a restart."""
    if running is None or found is None:
        return running
    own = {key: each for key, each in running.inherited.items() if not _is_of_credentials(key)}
    now = {key: each for key, each in found.inherited.items() if _is_of_credentials(key)}
    return replace(running, inherited=own | now)


def _is_of_credentials(key: str) -> bool:
    table, _, name = key.partition(".")
    is_own = table == ROOT and name.rpartition(".")[2] in ("user", "password")
    return is_own or table == "credentials"


def merged(given: Mapping[str, object]) -> dict[str, object]:
    """With the options in `live` for those of [ha]; what is wrong there is said by `colocated`."""
    found, own = dict(given), given.get(LIVE)
    if isinstance(own, Mapping):
        found |= {KNOWN[name].key: each for name, each in own.items() if name in KNOWN}
    return found


def colocated(
    values: Mapping[str, Any],
    given: Mapping[str, object],
    cluster: Cluster | None,
    connectors: Mapping[str, Single],
    statics: Collection[str],
) -> Colocated | None:
    """`values`: what the file says in the table, parsed; `given`: all of it, as it stands there;
    `statics`: connectors by which members of the cluster are looked for, but its own.

    None: there is no such table.  Refused.
    """
    if not values:
        return None
    policy, role = str(given.get("ha.policy", POLICIES[0])), str(given.get("ha.role", "live"))
    if policy not in POLICIES:
        raise Refused(
            f'[{TABLE}] needs ha.policy = "shared-store" or "replication", and not "{policy}"'
        )
    if role != "live":
        raise Refused(f'[{TABLE}] is for a live, and ha.role is "{role}"')
    if cluster is None:
        raise Refused(f"[{TABLE}] needs a [cluster.NAME]: its lives run each other's backups")
    defaults: dict[str, Any] = {
        each.name: None if each.default is None else each.value_of(each.default)
        for each in COLOCATED
    }
    found = defaults | dict(values)
    for name in found["excludes"]:
        if name not in connectors:
            raise Refused(f"{TABLE}.excludes names [connectors.{name}], which is not there")
    if OF_BACKUPS in (key.rpartition(".")[2] for key in found["backup"] or ()):
        raise Refused(f"{BACKUP} has {OF_BACKUPS}, which is false for hosted backups")
    moved = [each for each in statics if each not in found["excludes"]]
    if found["max-backups"] and moved:
        raise Refused(
            f"{TABLE}.excludes does not name {' and '.join(moved)}: a backup that this broker runs "
            "would look for that member at another port"
        )
    _check_drains(found["backup"] or {}, policy, cluster, connectors, found["excludes"])
    own = _member(given) if policy == "replication" and found["request-backup"] else ""
    retries = found["backup-request-retries"]
    return Colocated(
        found["request-backup"],
        found["max-backups"],
        None if retries == ENDLESS else retries,
        found["backup-request-retry-interval"],
        found["backup-port-offset"],
        found["excludes"],
        own,
        found["backup"] or {},
        {key: each for key, each in given.items() if not key.startswith(f"{TABLE}.")},
    )


def _check_drains(
    backup: Mapping[str, object], policy: str, cluster: Cluster,
    connectors: Mapping[str, Single], excludes: Collection[str],
) -> None:  # fmt: skip
    """Refused.  This broker itself, by its own connector, may be who gets everything."""
    values = {
        name: option.value_of(backup[option.key])
        for name, option in OF_DRAINS.items()
        if option.key in backup
    }
    if not values:
        return
    others = [
        each for each in values.get("connectors") or () if connectors.get(each) != cluster.connector
    ]
    for name in others:
        if name in connectors and name not in excludes:
            raise Refused(
                f"{TABLE}.excludes does not name {name}: a backup that this broker runs would look "
                "for that member at another port"
            )
    if "connectors" in values and not others:
        values["connectors"] = None
        values["group-name"] = values.get("group-name") or "any"  # it has said to whom
    elif others:
        values["connectors"] = tuple(others)
    scale_down(values, policy, "backup", cluster, connectors)


def _member(given: Mapping[str, object]) -> str:
    """Of the live alone: which backup it has shows when one is granted."""
    name = given.get("instance.name", _NAME.default)
    try:
        members = dict(MEMBERS.parse(given.get("ha.members", [])))
    except ValueError:
        members = {}
    if members.keys() != {name}:
        raise Refused(
            f"{TABLE}.request-backup needs ha.members with this broker alone, and where its backup "
            f'reaches it, as in ["{name}=tcp://HOST:61620"]'
        )
    return str(members[name])


def group_of(group: str, live: str) -> str:
    """Of a live and its hosted backup: nobody else is of it."""
    return f"{group}@{live}"
