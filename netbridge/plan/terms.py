"""The terms of a plan: what the parameters of its uri come to, with the defaults of its owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from shmbroker.netbridge.plan.pacing import Pace
from shmbroker.netbridge.plan.parameter import (
    FAILOVER,
    MASTERSLAVE,
    PROGRAM,
    SESSION,
    STATIC,
)

Owner = Literal["link", "program"]

NEVER: Final = -1
"""Of an interval: it is not tried again by itself."""


@dataclass(frozen=True, slots=True)
class Terms:
    startup_rounds: int
    """-1: for ever; 0: the owner asks for each round."""
    rounds: int
    pace: Pace
    owner_pace: Pace | None
    """Of the single rounds that `static:` asks for; None: the owner asks for them itself."""
    warn_after: int
    refused_retry: float = 60.0
    is_random: bool = True
    pool: int = 0
    is_priority: bool = False
    priority: tuple[str, ...] = ()
    takes_lists: bool = True
    lists_from: str | None = None
    obeys_moves: bool = True
    publish_timeout: float = -1
    finds_live: bool = False
    """Whom a passive member names is tried, also if the list does not have it."""
    waits_first: bool = False
    """After a loss there is a pause before the first round, too."""


def _resolved(table: tuple[Any, ...], given: Mapping[str, Any], owner: Owner) -> dict[str, Any]:
    defaults = PROGRAM if owner == "program" else {}
    return {
        each.name: given[each.name]
        if each.name in given or each.default is None
        else each.value_of(defaults.get(each.name, each.default))
        for each in table
        if each.name in given or each.default is not None
    }


def _pace(values: Mapping[str, Any], growth: str) -> Pace:
    """A first pause beyond the default of the longest one is the longest, too."""
    is_growing = values["use-exponential-back-off"]
    first = values["initial-reconnect-delay"]
    longest = max(values["max-reconnect-delay"], first)
    return Pace(first, longest, values[growth] if is_growing else 1.0)


def static_pace(given: Mapping[str, Any]) -> Pace:
    return _pace(_resolved(STATIC, given, "link"), "back-off-multiplier")


def of_single(given: Mapping[str, Any], owner: Owner, refused_retry: float) -> Terms:
    """One member: rounds of one attempt. A link's is asked for by `static:`."""
    if owner == "program":
        return replace(of_failover({}, owner, refused_retry, None), finds_live=False)
    values = _resolved(STATIC, given, owner)
    return Terms(
        0, 0, static_pace(given), static_pace(given), values["warn-after-reconnect-attempts"],
        refused_retry, is_random=False,
    )  # fmt: skip


def of_failover(
    given: Mapping[str, Any], owner: Owner, refused_retry: float, owner_pace: Pace | None
) -> Terms:
    """`startup-max-reconnect-attempts` follows a 0: its rounds are the owner's, too."""
    values = _resolved(FAILOVER, given, owner)
    rounds = values["max-reconnect-attempts"]
    startup = values["startup-max-reconnect-attempts"]
    if rounds == 0 and "startup-max-reconnect-attempts" not in given and owner == "link":
        startup = 0
    return Terms(
        startup,
        rounds,
        _pace(values, "reconnect-delay-exponent"),
        owner_pace,
        values["warn-after-reconnect-attempts"],
        refused_retry,
        values["randomize"],
        values["backup-pool-size"] if values["backup"] else 0,
        values["priority-backup"],
        values.get("priority-uris", ()),
        values["update-uris-supported"],
        values.get("update-uris-url"),
        values["reconnect-supported"],
        values["timeout"],
        owner == "program" and values["update-uris-supported"],
    )


def of_masterslave(given: Mapping[str, Any], owner: Owner, refused_retry: float) -> Terms:
    warn = next(each for each in STATIC if each.name == "warn-after-reconnect-attempts")
    values = {warn.name: warn.default, **given, **MASTERSLAVE}
    return of_failover(values, owner, refused_retry, static_pace(given))


def of_session(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a program's session is told by its uri, with the defaults of the rest."""
    return _resolved(SESSION, given, "program")
