"""The parameters of a uri: name, type, default, bounds and meaning, each once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from shmbroker.ipc.base.units import KIB
from shmbroker.ipc.instance.config.kind import (
    FLAG,
    TEXT,
    Kind,
    choice,
    count,
    duration,
    factor,
    size,
)
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.netbridge.link.option import LINK_DEFAULTS

HOUR: Final = 3600.0
KEY_BYTES: Final = 32


def _key(given: object) -> str:
    if not isinstance(given, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", given):
        raise ValueError("the public key of a broker, 64 hexadecimal digits")
    return given.lower()


def _members(given: object) -> tuple[str, ...]:
    found = tuple(str(given).split(","))
    if not all(re.fullmatch(r"(tcp://)?[^\s,/]+", each) for each in found):
        raise ValueError("members of the list, as in a:61616,b:61616")
    return tuple(each.removeprefix("tcp://") for each in found)


def _chosen(given: object) -> str:
    if given in POLICIES or re.fullmatch(r"[\w.]+:[\w.]+", str(given)):
        return str(given)
    raise ValueError(f'{", ".join(POLICIES)} or "module:callable"')


POLICIES: Final = ("round-robin", "random", "random-sticky", "first")
KEY: Final = Kind("key", _key)
MEMBERS: Final = Kind("members", _members, text=",".join)
PAUSE: Final = duration(0.001, HOUR)
ROUNDS: Final = count(is_endless=True)
GROWTH: Final = factor(1.0, 10.0)


def _table(form: str, *rows: tuple[str, Kind, Default | None, str]) -> tuple[Option, ...]:
    return tuple(Option(form, *row) for row in rows)


# fmt: off
FAILOVER: Final = _table(
    "failover:",
    ("randomize", FLAG, True, "Members are tried in a random order; false: from the first."),
    ("max-reconnect-attempts", ROUNDS, -1,
     "Rounds over the list after a loss until the owner is told that there is no member; 0: the "
     "owner is told at once, and asks for single rounds."),
    ("startup-max-reconnect-attempts", ROUNDS, -1, "The same before the first success."),
    ("initial-reconnect-delay", PAUSE, "10ms", "Pause after the first failed round."),
    ("max-reconnect-delay", PAUSE, "30s", "Longest pause."),
    ("use-exponential-back-off", FLAG, True, "Whether pauses grow."),
    ("reconnect-delay-exponent", GROWTH, 2.0, "How much they grow."),
    ("timeout", duration(0.001, 24 * HOUR, is_endless=True), -1,
     "How long a publish may wait for a link."),
    ("warn-after-reconnect-attempts", count(None), 10,
     "After so many failed rounds the state is `unreachable`; 0 or less: never."),
    ("backup", FLAG, False, "Keep further members connected and authenticated, idle."),
    ("backup-pool-size", count(1, 100), 1, "How many."),
    ("priority-backup", FLAG, False, "Move to a preferred member when one is ready."),
    ("priority-uris", MEMBERS, None, "The preferred members; the first one if left out."),
    ("update-uris-supported", FLAG, True, "Take lists of members that a broker pushes."),
    ("update-uris-url", TEXT, None, "Read members from this file or URL."),
    ("reconnect-supported", FLAG, True, "Obey a broker's request to move."),
    ("track-messages", FLAG, False, "Accepted without effect: what is unconfirmed is kept."),
    ("max-cache-size", size(), 128 * KIB, "Accepted without effect."),
)
STATIC: Final = _table(
    "static:",
    ("initial-reconnect-delay", PAUSE, "1s", "Pause after the first failed round."),
    ("max-reconnect-delay", PAUSE, "30s", "Longest pause."),
    ("use-exponential-back-off", FLAG, True, "Whether pauses grow."),
    ("back-off-multiplier", GROWTH, 2.0, "How much they grow."),
    ("warn-after-reconnect-attempts", count(None), 3,
     "After so many failed rounds the state is `unreachable`; 0 or less: never."),
)
SESSION: Final = _table(
    "session",
    ("failover-mode", choice("automatic", "application"), "automatic",
     "Whether a session is made again without the program, or by it."),
    ("reconnect-deadline", duration(0, 24 * HOUR, is_endless=True), "60s",
     "How long one recovery may last; 0: no reconnect."),
    ("call-timeout", duration(0.001, 24 * HOUR, is_endless=True), "30s",
     "Limit of a blocking call."),
    ("call-failover-timeout", duration(0.001, 24 * HOUR, is_endless=True), -1,
     "Limit of a call that is made during recovery."),
    ("confirmation-window", size(1, is_endless=True), "1MiB",
     "Unconfirmed commands kept for re-attaching, to each queue or exchange that is published to; "
     "-1: no re-attaching."),
    ("load-balancing", Kind("word", _chosen, ", ".join(f"`{each}`" for each in POLICIES)),
     "round-robin", "How a session chooses its broker; also module:callable."),
    ("use-topology-for-load-balancing", FLAG, True, "false: among the given members only."),
    ("discovery-initial-wait", duration(0, HOUR), "10s", "For the first members of discovery:."),
    ("prefer-shared-memory", FLAG, True, "Use a member on this host through shared memory."),
)
PIN: Final = _table("tcp:", ("key", KEY, None, "The public key that the broker must have."))
DISCOVERY: Final = _table(
    "discovery:",
    ("local-bind-address", TEXT, None, "The address of the interface that listens."),
    ("channel", TEXT, "shmbroker", "Which channel of the registry."),
    ("refresh-timeout", duration(0.1, HOUR), "10s", "An entry that is not renewed is dropped."),
)
# fmt: on
PROGRAM: Final = {"startup-max-reconnect-attempts": 1, "max-reconnect-delay": "2s"}
"""Defaults of a program, where they differ from those of a broker's link."""
ALIASES: Final = {
    "reconnect-attempts": "max-reconnect-attempts",
    "initial-connect-attempts": "startup-max-reconnect-attempts",
    "retry-interval": "initial-reconnect-delay",
    "retry-interval-multiplier": "reconnect-delay-exponent",
    "max-retry-interval": "max-reconnect-delay",
}
"""The names that AMQ has for programs."""
MASTERSLAVE: Final = {"randomize": False, "max-reconnect-attempts": 0}
"""What masterslave: sets, and nobody else may set otherwise."""
NESTED: Final = "nested."

Table = dict[str, Option]


def _by_name(*tables: Iterable[Option]) -> Table:
    """The kind of an option is that of the first table that has it."""
    found: Table = {}
    for table in tables:
        for option in table:
            found.setdefault(option.name, option)
    return found


OF_SINGLE: Final = _by_name(PIN, LINK_DEFAULTS, SESSION)
OF_STATIC: Final = _by_name(STATIC, SESSION)
OF_FAILOVER: Final = _by_name(FAILOVER, SESSION)
OF_BOTH: Final = _by_name(FAILOVER, STATIC, SESSION)
OF_INNER: Final = _by_name([FAILOVER[0]])
"""Of a list inside a failover: only its order counts, because the rounds are the outer list's."""
OF_UDP: Final = _by_name([each for each in DISCOVERY if each.name != "channel"], SESSION)
OF_REGISTRY: Final = _by_name(
    [each for each in DISCOVERY if each.name != "local-bind-address"], SESSION
)


def kebab(name: str) -> str:
    """maxReconnectAttempts and max-reconnect-attempts are one name."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
