"""Groups of a node that was scaled down go by its way, as long as something is on it."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.cluster.behind import (
    HEAR_SECONDS,
    IDLE_SECONDS,
    NEVER,
    SETTLE_SECONDS,
    Behind,
)
from shmbroker.netbridge.cluster.group import Group
from tests.netbridge.cluster.talk import node_of

A, B, C = (node_of(name) for name in "abc")
ANNA, BERT = Group("orders", "anna"), Group("orders", "bert")


class Way:
    def __init__(self) -> None:
        self.depth = 1
        self.behind = Behind(lambda node: node != C or not self.depth)
        self.behind.looks({C})

    def at(self, now: float) -> tuple[list[Group], list[tuple[Group, bytes]]]:
        return list(self.behind.stops(now)), list(self.behind.free(now))


def test_they_go_on_by_it_until_nothing_came_for_a_while_and_then_wait_for_the_rest() -> None:
    way = Way()
    assert way.behind.deadline == NEVER
    assert way.behind.goes(ANNA, C, A, 0.0)
    assert way.at(100.0) == ([], [])
    way.depth = 0
    assert way.at(100.0 + IDLE_SECONDS / 2) == ([], [])
    assert way.at(100.0 + IDLE_SECONDS) == ([ANNA], [])
    assert way.at(100.0 + IDLE_SECONDS + SETTLE_SECONDS / 2) == ([], [])
    way.depth = 1  # of a program that had read the route before
    assert way.at(110.0) == ([], [])
    way.depth = 0
    assert way.at(120.0) == ([], [(ANNA, A)])
    assert way.behind.deadline == NEVER
    assert not way.behind.goes(ANNA, b"", A, 120.0)


def test_when_the_node_is_back_nothing_new_goes_by_it_at_once() -> None:
    way = Way()
    way.behind.goes(ANNA, C, A, 0.0)
    way.behind.looks(set())
    assert way.at(0.0) == ([ANNA], [])
    assert way.at(10.0) == ([], [])
    way.depth = 0
    assert way.at(20.0) == ([], [(ANNA, A)])


def test_one_that_comes_late_is_stopped_as_well_and_one_that_ends_goes_nowhere() -> None:
    way = Way()
    way.depth = 0
    way.behind.goes(ANNA, C, A, 0.0)
    assert way.at(10.0) == ([ANNA], [])
    assert way.behind.goes(BERT, C, A, 10.0)
    assert way.at(10.05) == ([], [])
    assert way.at(20.0) == ([ANNA, BERT], [])
    way.behind.ends(ANNA, C, 20.0)
    assert way.behind.goes(BERT, b"", B, 20.0), "its successor has left as well"
    assert way.at(30.0) == ([], [(BERT, B)])


def test_one_that_is_decided_anew_waits_as_well() -> None:
    way = Way()
    way.behind.ends(ANNA, C, 0.0)
    assert way.behind.goes(ANNA, b"", A, 0.1)
    way.behind.ends(BERT, C, 0.2)
    way.depth = 0
    assert way.at(10.0) == ([ANNA, BERT], [])
    assert way.at(20.0) == ([], [(ANNA, A)])
    assert not way.behind.goes(BERT, b"", B, 20.0)


def test_that_it_has_gone_may_be_heard_later() -> None:
    way = Way()
    way.behind.looks(set())
    assert way.behind.goes(ANNA, C, A, 0.0), "something is on its way there"
    assert way.at(0.1) == ([ANNA], [])
    way.behind.looks({C})
    assert way.at(10.0) == ([], [])
    way.depth = 0
    assert way.at(20.0) == ([], [(ANNA, A)])


def test_of_a_node_that_was_not_scaled_down_it_waits_for_a_while_only() -> None:
    way = Way()
    way.behind.looks(set())
    assert way.behind.goes(ANNA, C, A, 0.0)
    assert way.at(HEAR_SECONDS / 2) == ([ANNA], [])
    assert way.at(HEAR_SECONDS) == ([], [(ANNA, A)])


@pytest.mark.parametrize(("former", "node"), [(b"", A), (A, B), (C, C)])
def test_all_others_go_at_once(former: bytes, node: bytes) -> None:
    assert not Way().behind.goes(ANNA, former, node, 0.0)
