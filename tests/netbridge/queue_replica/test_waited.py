"""Which replicas the confirms of a queue wait for."""

from __future__ import annotations

from shmbroker.netbridge.queue_replica.waited import NEVER, NONE, Waited

LIMIT = 1.0


def made(wanted: int, **has: int) -> Waited:
    """Replicas by name, and what they have shown."""
    waited = Waited(wanted)
    for who, below in has.items():
        waited.came(who)
        waited.shown(who, below)
    return waited


def test_nobody_is_waited_for_before_it_has_shown_a_moment() -> None:
    waited = Waited(1)
    waited.came("a")
    waited.sent("a", 0)
    assert waited.below == NONE
    assert waited.late(99, LIMIT) == []
    waited.shown("a", 7)
    assert waited.below == 7


def test_so_many_as_are_wanted_and_of_fewer_all() -> None:
    assert made(1, a=5, b=9).below == 9
    assert made(2, a=5, b=9, c=7).below == 7
    assert made(7, a=5, b=9).below == 5


def test_who_owes_an_answer_for_too_long_counts_no_more_until_it_has_shown() -> None:
    waited = made(2, a=5, b=9)
    waited.sent("a", 3)
    waited.sent("a", 3.5)
    assert waited.due(LIMIT) == 4
    assert waited.late(3.9, LIMIT) == []
    assert waited.late(4, LIMIT) == ["a"]
    assert waited.below == 9
    assert waited.due(LIMIT) == NEVER
    waited.shown("a", 6)
    assert waited.below == 6


def test_who_answers_in_parts_is_not_late() -> None:
    waited = made(1, a=5)
    waited.sent("a", 0)
    waited.answered("a", 0.9, owes=True)
    assert waited.late(1.5, LIMIT) == []
    waited.answered("a", 1.6, owes=False)
    assert waited.due(LIMIT) == NEVER


def test_who_leaves_is_not_waited_for() -> None:
    waited = made(2, a=5, b=9)
    waited.gone("a")
    assert waited.below == 9
    waited.gone("b")
    assert (waited.below, waited.is_empty) == (NONE, True)
