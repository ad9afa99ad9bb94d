"""The plans of a uri: one for each link that it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from shmbroker.netbridge.link.option import overridden
from shmbroker.netbridge.plan import terms
from shmbroker.netbridge.plan.pacing import Chance
from shmbroker.netbridge.plan.parameter import NESTED
from shmbroker.netbridge.plan.plan import Plan
from shmbroker.netbridge.plan.terms import Owner, Terms
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import (
    FAILOVER,
    MASTERSLAVE,
    STATIC,
    Member,
    Members,
    Single,
    Uri,
    Values,
)

REFUSED_RETRY = 60.0
SOON = "initial-reconnect-delay=20ms&max-reconnect-delay=100ms"
"""Between brokers that decide who serves: parameters of a list."""
OF_MEMBER = "initial-reconnect-delay=50ms&max-reconnect-delay=100ms"
"""The same, where a takeover takes less than that."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan that has not begun: its members, and its terms."""

    members: tuple[Member, ...]
    terms: Terms

    def plan(self, chance: Chance) -> Plan:
        return Plan(self.members, self.terms, chance)


def of_found(values: Values, refused_retry: float) -> Draft:
    """Of a link to one of those that discovery finds, who are offered once they are there."""
    return Draft((), terms.of_failover(dict(values), "link", refused_retry, None))


def of_member(uri: str) -> Draft:
    """Of the link to another member: who has lost it asks voters first, and takes over."""
    [found] = drafts(parse(f"failover:({uri})?{OF_MEMBER}"))
    return replace(found, terms=replace(found.terms, waits_first=True))


def with_rounds_asked_for(to: Members) -> Members:
    """Who has no rounds of its own is asked for them by `static:`, as those of `masterslave:`."""
    has_none = dict(to.values).get("max-reconnect-attempts") == 0
    return Members(STATIC, (to,)) if to.scheme == FAILOVER and has_none else to


def drafts(
    uri: Uri, owner: Owner = "link", refused_retry: float = REFUSED_RETRY
) -> tuple[Draft, ...]:
    """One for each link; none where there are no members yet (discovery) or no link (shm)."""
    return tuple(_drafts(uri, owner, refused_retry, {}))


def _drafts(
    uri: Uri, owner: Owner, refused_retry: float, of_static: dict[str, Any]
) -> Iterator[Draft]:
    """`of_static`: the parameters of the list `static:` around it."""
    if isinstance(uri, Single):
        yield Draft((uri,), terms.of_single(of_static, owner, refused_retry))
    elif isinstance(uri, Members):
        given = dict(uri.values)
        members = tuple(_with_nested(each, given) for each in uri.members)
        if uri.scheme == STATIC:
            for each in members:
                yield from _drafts(each, owner, refused_retry, given | {STATIC: True})
        elif uri.scheme == MASTERSLAVE:
            yield Draft(members, terms.of_masterslave(given, owner, refused_retry))
        else:
            pace = terms.static_pace(of_static) if of_static else None
            yield Draft(members, terms.of_failover(given, owner, refused_retry, pace))


def _with_nested(member: Member, given: dict[str, Any]) -> Member:
    """With the parameters that the list gives to each of its members; a member's own count."""
    nested = {
        name.removeprefix(NESTED): value for name, value in given.items() if name.startswith(NESTED)
    }
    if isinstance(member, Single):
        return replace(member, values=tuple(overridden(nested, dict(member.values)).items()))
    return replace(member, members=tuple(_with_nested(each, given) for each in member.members))
