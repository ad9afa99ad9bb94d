"""Brokers that were found, as the members of a list."""

from __future__ import annotations

from collections.abc import Iterable

from shmbroker.netbridge.discovery.entries import Entry
from shmbroker.netbridge.plan.text import heard
from shmbroker.netbridge.plan.uri import Single


def members_of(entries: Iterable[Entry], ours: bytes | None = None) -> tuple[Single, ...]:
    """The lives; backups, which know who is live, only while no live is known.

    `ours`: the node of a broker that looks, to which none of its links leads.
    """
    known = tuple(each for each in entries if each.node != ours)
    lives = [each for each in known if each.is_live]
    return tuple(dict.fromkeys(filter(None, (heard(each.uri) for each in lives or known))))
