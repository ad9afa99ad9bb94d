"""The options of a pair: [ha.pair]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.ipc.instance.config.kind import (
    FLAG,
    NETWORK_VHOST,
    Kind,
    choice,
    duration,
    is_name,
)
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.netbridge.plan.text import single
from shmbroker.netbridge.plan.uri import Single

FAILOVER_SECONDS: Final = 1.0, 60.0


class Refused(ValueError):
    """Options that are missing or do not go together; the message says which."""


def _peer(given: object) -> Single:
    if not isinstance(given, str):
        raise ValueError('a broker, as in "node1" or "node1:61616"')
    found = single(given)
    if found.is_anywhere:
        raise ValueError("the address of a broker that others can connect to")
    return found


def _name(given: object) -> str:
    if not isinstance(given, str) or not is_name(given):
        raise ValueError("the NAME of a [credentials.NAME]")
    return given


def _row(name: str, kind: Kind, default: Default | None, help: str) -> Option:
    return Option("ha.pair", name, kind, default, help, is_reloaded=name == "failover-timeout")


# fmt: off
PAIR: Final = (
    _row("vhost", NETWORK_VHOST, None,
         "The only network vhost that applications may ask for here; required."),
    _row("credentials", Kind("name", _name), None,
         'Of role "peering", which both brokers have; required.'),
    _row("primary-peer", Kind("peer", _peer), None, "Where the primary listens."),
    _row("backup-peer", Kind("peer", _peer), None, "Where the backup listens."),
    _row("is-primary", FLAG, False, "This is the primary; also `run DIR --is-primary`."),
    _row("is-backup", FLAG, False, "This is the backup; also `run DIR --is-backup`."),
    _row("failover-timeout", duration(*FAILOVER_SECONDS), "5s",
         "Silence after which the other one counts as dead."),
    _row("accept-when-pending", choice("primary", "none"), "primary",
         "Whether a primary that hears nothing serves a client that asks; none: it never does."),
    _row("on-conflict", choice("stop-both", "primary-wins"), "stop-both",
         "What is done when both were active: neither goes on, or the primary."),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class PairConfig:
    """[ha.pair], checked.  Times in seconds."""

    vhost: str
    credentials: str
    is_primary: bool
    own: Single | None
    """Its own address, if the file has both."""
    other: Single
    failover_timeout: float
    accept_when_pending: str
    on_conflict: str


def pair(given: Mapping[str, Any], logins: Collection[str]) -> PairConfig:
    """`given`: values by name.  `logins`: the names of credentials of role peering."""
    values: dict[str, Any] = {
        each.name: None if each.default is None else each.value_of(each.default) for each in PAIR
    }
    values |= given
    for name in ("vhost", "credentials"):
        if not values[name]:
            raise Refused(f"ha.pair.{name} is missing: {_help(name)}")
    if values["credentials"] not in logins:
        there = f"there are {', '.join(sorted(logins))}" if logins else "there is none"
        raise Refused(
            f"ha.pair.credentials names [credentials.{values['credentials']}]: of role "
            f'"peering" {there}'
        )
    is_primary = values["is-primary"]
    if is_primary == values["is-backup"]:
        which = "both" if is_primary else "neither"
        raise Refused(
            f"ha.pair.is-primary and ha.pair.is-backup: {which} is set, and one has to be; or "
            "start it with --is-primary or --is-backup"
        )
    peers = values["primary-peer"], values["backup-peer"]
    own, other = peers if is_primary else peers[::-1]
    if other is None:
        missing = "backup-peer" if is_primary else "primary-peer"
        raise Refused(f"ha.pair.{missing} is missing: {_help(missing)}")
    return PairConfig(
        values["vhost"], values["credentials"], is_primary, own, other,
        values["failover-timeout"], values["accept-when-pending"], values["on-conflict"],
    )  # fmt: skip


def _help(name: str) -> str:
    return next(each.help for each in PAIR if each.name == name)
