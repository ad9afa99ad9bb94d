"""A member that gives all away, and waits for the one that it stands in for, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker.netbridge.member.action import Drain
from shmbroker.netbridge.member.draining import AGAIN_SECONDS, Phase
from shmbroker.netbridge.member.said import Closing
from shmbroker.netbridge.member.standing import State
from tests.netbridge.member.driven import NOBODY, Driven, put, told


def draining(**options: Any) -> Driven:
    driven = Driven(NOBODY, drains=True, **options)
    assert Drain(1) in driven.did
    return driven


@pytest.mark.parametrize(("members", "original"), [
    ((), ""), (("a",), ""), (("a", "b"), "b"), (("b", "a"), "b"),
])  # fmt: skip
def test_for_whom_it_waits(members: tuple[str, ...], original: str) -> None:
    assert Driven(NOBODY, members=members).machine.original == original


@pytest.mark.parametrize(("changes", "is_anew"), [
    ({}, True), ({"is_closed": True}, False), ({"is_closed": True, "has_drained": True}, True),
])  # fmt: skip
def test_when_it_begins_anew(changes: dict[str, Any], is_anew: bool) -> None:
    machine = draining().machine
    put(machine, changes)
    assert machine.begins_anew is is_anew
    assert not Driven(NOBODY).machine.begins_anew


def test_while_it_gives_all_away_other_nodes_reach_it() -> None:
    machine = draining().machine
    assert machine.is_of_cluster
    for phase in (Phase.GIVING_WAY, Phase.DRAINED):
        machine.phase = phase
        assert not machine.is_of_cluster
    machine.phase, machine.state = Phase.NONE, State.JOINING
    assert not machine.is_of_cluster


def gave(driven: Driven, *, is_whole: bool, epoch: int = 1) -> list[Any]:
    return driven.does(driven.machine.gave(epoch, driven.now, is_whole=is_whole))


def test_it_has_given_all_and_starts_anew() -> None:
    driven = draining()
    gave(driven, is_whole=True)
    assert driven.machine.state is State.STARTING
    assert driven.machine.has_drained


def test_the_rest_is_here_and_it_tries_again_later() -> None:
    driven = draining()
    gave(driven, is_whole=False)
    machine = driven.machine
    assert (machine.phase, machine.state) == (Phase.GIVING_WAY, State.ALONE)
    assert machine.deadline == driven.now + AGAIN_SECONDS
    assert not machine.has_drained


@pytest.mark.parametrize("changes", [{"phase": Phase.GIVING_WAY}, {"epoch": 2}])
def test_what_was_given_in_another_epoch_or_phase_is_over(changes: dict[str, Any]) -> None:
    driven = draining()
    put(driven.machine, changes)
    phase = driven.machine.phase
    for is_whole in (True, False):
        assert not gave(driven, is_whole=is_whole)
    assert driven.machine.phase is phase


def test_it_gives_way_to_who_is_in_sync_and_only_then() -> None:
    driven = draining(members=("a", "b"))
    gave(driven, is_whole=False)
    driven.follows("b")
    assert Closing() in told(driven.did, "b")
    assert driven.machine.state is State.HANDING_OVER
    driven = draining(members=("a", "b"))
    driven.follows("b")
    assert Closing() not in told(driven.did, "b"), "it drains"


def test_the_one_that_it_waits_for_gets_its_place_and_its_role() -> None:
    driven = draining(members=("a", "b"))
    driven.machine.phase = Phase.DRAINED
    driven.follows("b")
    assert driven.machine.state is State.HANDING_OVER


def test_nothing_is_handed_over_to_nobody() -> None:
    driven = draining(members=("a", "b"))
    handed: list[str] = []
    driven.machine.hand_over = (  # type: ignore[method-assign]
        lambda member, now: handed.append(member) or False
    )
    gave(driven, is_whole=False)
    driven.writes()
    assert not handed
    driven.machine.phase = Phase.DRAINED
    driven.writes()
    assert handed == ["b"]
