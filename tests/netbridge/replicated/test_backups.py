"""Nothing is confirmed without an end that stands for each replica that is counted."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shmbroker.netbridge.election.question import Copy
from shmbroker.netbridge.member.standing import Began
from shmbroker.netbridge.member.written import OwnFrames, Written, in_epoch
from shmbroker.netbridge.replicated.acting import Acting
from shmbroker.netbridge.replicated.backups import Backups


@dataclass
class Ends:
    """Of the journal."""

    standing: set[str]
    awaits: list[bool] = field(default_factory=list)

    def holds(self, members: frozenset[str]) -> bool:
        return members <= self.standing

    def awaits_backups(self, awaits: bool) -> None:
        self.awaits.append(awaits)


class Counting:
    """A machine."""

    def __init__(self, *members: str, is_withholding: bool = False) -> None:
        self.counted = frozenset(members)
        self._is_withholding = is_withholding

    def is_withholding(self, _: float) -> bool:
        return self._is_withholding


@dataclass
class Live:
    machine: Counting


@pytest.mark.parametrize(
    ("machine", "standing", "awaits"),
    [
        (Counting(), set(), False),
        (Counting("b"), {"b"}, False),
        (Counting("b"), set(), True),
        (Counting("b", "c"), {"c"}, True),
        (Counting("b", is_withholding=True), {"b"}, True),
    ],
)
def test_confirms_wait(machine: Counting, standing: set[str], awaits: bool) -> None:
    ends = Ends(standing)
    backups = Backups(cast("Any", Live(machine)))
    backups.hold_confirms(cast("Any", ends), 0.0)
    backups.count(cast("Any", ends))  # before a record
    assert ends.awaits == [awaits, awaits]


def test_what_a_replica_has_is_of_the_epoch_before_until_the_next_one_has_begun() -> None:
    """Its first record is noted only: a replica that has a frame before it lacks what comes last in
    the epoch before."""
    told: list[int] = []
    acting: Any = Acting.__new__(Acting)
    acting.written, acting._notes = Written(1, 6, "a"), deque()
    acting.frames = OwnFrames("a")
    acting.frames.begin(6, 100)
    acting.machine = SimpleNamespace(
        replica_has=lambda _member, _stream, number, _now: told.append(number),
        awaits=lambda _: True,
    )
    acting.served = SimpleNamespace(
        asks_ahead=False, followers=None, journaler=SimpleNamespace(standing=lambda _: 1)
    )
    acting.does = lambda _: None
    acting._backups = SimpleNamespace(count=lambda _: None)
    backups = Backups(acting)
    backups._admission = cast("Any", SimpleNamespace(stream=lambda _: 1))
    last_of_the_former = acting.frames.position(250).number
    acting.note(Began(7, "a", (Copy("a"),)))
    backups.replica_has("b", 200)
    assert told.pop() < last_of_the_former
    acting.frames.begin(7, 260)
    backups.replica_has("b", 260)
    assert told.pop() > last_of_the_former
    backups.replica_has("b", 259)
    assert told == [in_epoch(told[0])]


@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_live_looks_at_all_that_it_is_only_with_a_frame_that_it_waits_for(
    is_awaited: bool,
) -> None:
    told: list[int] = []
    looked: list[object] = []
    machine = SimpleNamespace(
        awaits=lambda _: is_awaited,
        replica_has=lambda _member, _stream, number, _now: told.append(number) or [],
    )
    frames = OwnFrames("a")
    frames.begin(1, 1)
    live = SimpleNamespace(
        machine=machine, served=SimpleNamespace(asks_ahead=False), frames=frames, does=looked.append
    )
    backups = Backups(cast("Any", live))
    backups._admission = cast("Any", SimpleNamespace(stream=lambda _: 1))
    backups.replica_has("b", 7)
    assert len(told) == 1
    assert bool(looked) is is_awaited
