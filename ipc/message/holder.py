"""Which participants have messages of a queue that they have taken and not acknowledged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shmbroker.ipc.message.copied import CopiedMessage


@dataclass(frozen=True, slots=True)
class HolderInfo:
    """A participant, and what it has in hand of one queue."""

    participant: int
    taken: int
    """Messages."""
    bytes: int
    """Of their bodies."""
    position: int
    """Of the first of them in the queue,"""
    published_at: int
    """and when that one was published, in nanoseconds since the epoch."""
    deliveries: int
    """The most of one of them: how often it was delivered before."""


def holders_of(messages: Iterable[CopiedMessage]) -> list[HolderInfo]:
    """In the order of their participants' numbers."""
    held: dict[int, list[CopiedMessage]] = {}
    for message in messages:
        if message.taken_by is not None:
            held.setdefault(message.taken_by, []).append(message)
    return [_holder(participant, held[participant]) for participant in sorted(held)]


def _holder(participant: int, messages: list[CopiedMessage]) -> HolderInfo:
    first = messages[0]
    return HolderInfo(
        participant=participant,
        taken=len(messages),
        bytes=sum(len(each.body) for each in messages),
        position=first.position,
        published_at=first.published_at,
        deliveries=max(each.deliveries for each in messages),
    )
