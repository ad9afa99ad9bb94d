"""A member whose journal is new, and whoever refuses it, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker.netbridge.member.standing import Past, Position, State
from tests.netbridge.member.driven import NOBODY, NODE, Driven, backup, lines, put

OF_ANOTHER = b"M" * 16


def new(**options: Any) -> Driven:
    return Driven(NOBODY, Past(), **options)


def refuses(driven: Driven, member: str = "b") -> None:
    driven.does(driven.machine.refused(member, "a wrong password"))


# --- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("is_new", "state", "heeds"), [
    (True, State.STARTING, True), (True, State.HELD, True), (True, State.JOINING, True),
    (True, State.LIVE, False), (False, State.STARTING, False), (False, State.JOINING, True),
    (False, State.LIVE, False), (False, State.HELD, False),
])  # fmt: skip
def test_who_heeds_a_refusal(is_new: bool, state: State, heeds: bool) -> None:
    driven = new() if is_new else backup(NOBODY)
    driven.machine.state = state
    assert driven.machine.heeds_refusals is heeds
    refuses(driven)
    assert (driven.machine.state is State.REFUSED) is (heeds or state is State.HELD)


def test_half_a_copy_is_no_new_journal() -> None:
    assert new().machine.is_new
    assert not Driven(NOBODY, Past(is_whole=False)).machine.is_new


def test_one_with_a_journal_joins_when_it_is_let_in() -> None:
    driven = backup(NOBODY)
    driven.machine.state = State.JOINING
    refuses(driven)
    driven.links("b")
    assert driven.machine.state is State.JOINING


def test_a_new_one_looks_again_when_nobody_refuses_it_any_more() -> None:
    driven = new()
    refuses(driven, "b")
    refuses(driven, "c")
    driven.links("b", node=b"")
    assert driven.machine.state is State.REFUSED
    driven.links("c", node=b"")
    assert driven.machine.state is State.STARTING


def test_a_new_one_joins_if_somebody_has_a_node() -> None:
    driven = new()
    driven.links("b")
    refuses(driven, "c")
    driven.links("d", node=b"")
    assert driven.machine.state is State.JOINING


# --- founding -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("members", "are_here"), [
    ((), False), (("a",), False), (("a", "b"), True), (("a", "b", "c"), False),
])  # fmt: skip
def test_all_are_here_if_all_that_are_named_are(members: tuple[str, ...], are_here: bool) -> None:
    driven = new(members=members)
    driven.links("b", node=b"")
    assert driven.machine._are_all_here is are_here


@pytest.mark.parametrize(("changes", "hello", "looks"), [
    ({}, {"node": b""}, True), ({"members": ("a", "b", "c")}, {"node": b""}, False),
    ({}, {"node": NODE}, False),
])  # fmt: skip
def test_one_that_is_held_and_new_looks_again_when_all_are_here(
    changes: dict[str, Any], hello: dict[str, Any], looks: bool
) -> None:
    driven = new(**({"members": ("a", "b")} | changes))
    driven.machine.look_until = float("inf")
    driven.machine.state = State.HELD
    driven.links("b", **hello)
    assert (driven.machine.look_until == driven.now) is looks


def test_one_that_is_not_held_or_not_new_does_not() -> None:
    driven = new(members=("a", "b"))
    driven.machine.look_until = float("inf")
    driven.machine.state = State.WAITING
    driven.links("b", node=b"")
    assert driven.machine.look_until == float("inf")
    driven = backup(NOBODY, members=("a", "b"))
    driven.machine.look_until = float("inf")
    driven.machine.becomes(State.HELD, driven.machine.waits_for)
    driven.links("b", node=b"")
    assert driven.machine.look_until == float("inf")


def test_a_partner_whose_journal_is_another_one_is_told_once() -> None:
    driven = backup(NOBODY)
    driven.machine.becomes(State.HELD, "waits for b (epoch 1)")
    assert lines(driven.links("b", node=OF_ANOTHER)) == ["held"]
    assert driven.machine.why.endswith("the journal of b is not of this node any more")
    assert not lines(driven.links("b", node=OF_ANOTHER))


@pytest.mark.parametrize("changes", [
    {"state": State.WAITING}, {"isolation": "no peer"},
])  # fmt: skip
def test_it_is_not_told_by_one_that_waits_for_something_else(changes: dict[str, Any]) -> None:
    driven = backup(NOBODY)
    driven.machine.becomes(State.HELD, "no peer")
    put(driven.machine, changes)
    assert not lines(driven.links("b", node=OF_ANOTHER))


def test_one_that_has_its_journal_is_no_news() -> None:
    driven = backup(NOBODY)
    driven.machine.becomes(State.HELD, "something else")
    last = Position(9, "b", 9, 0)  # it has more, so nobody begins
    assert "held" not in lines(driven.links("b", last=last))
    assert driven.machine.why == "something else"
