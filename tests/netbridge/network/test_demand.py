"""What a link wants, and what is told of it over each connection."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmbroker.core.layout import QUEUE_ROWS
from shmbroker.netbridge.network.codec import decode, encode
from shmbroker.netbridge.network.demand import NAMES_MAX, Demand, Here, Terms
from shmbroker.netbridge.network.said import Wants
from shmbroker.netbridge.network.supply import Supply
from shmbroker.netbridge.wire.malformed import Malformed


def consumed(*names: str) -> list[Here]:
    return [Here(each, is_consumed=True) for each in names]


def wanted(terms: Terms, *here: Here) -> frozenset[str]:
    demand = Demand(terms)
    demand.looks(here)
    return demand.wanted


IDLE = Here("orders", is_consumed=False)
BUSY = Here("orders", is_consumed=True)


def test_what_is_consumed_here_is_wanted() -> None:
    assert wanted(Terms(), BUSY, Here("other", is_consumed=False)) == {"orders"}


@pytest.mark.parametrize(
    ("terms", "is_wanted", "idle_is_wanted"),
    [
        (Terms(include=("stock.#",)), False, False),
        (Terms(include=("stock.#", "ord*", "*")), True, False),
        (Terms(exclude=("#",)), False, False),
        (Terms(include=()), False, False),
        (Terms(include_static=("orders",)), True, True),
        (Terms(include=(), include_static=("orders",)), True, True),
        (Terms(include_static=("orders",), exclude=("orders",)), False, False),
        (Terms(static_bridge=True, include_static=("stock",)), False, False),
        (Terms(static_bridge=True, include_static=("orders",)), True, True),
    ],
)
def test_patterns(terms: Terms, is_wanted: bool, idle_is_wanted: bool) -> None:
    assert wanted(terms, BUSY) == ({"orders"} if is_wanted else frozenset())
    assert wanted(terms, IDLE) == ({"orders"} if idle_is_wanted else frozenset())


def test_nothing_is_said_without_a_connection() -> None:
    demand = Demand(Terms())
    assert demand.looks(consumed("a")) == []
    assert demand.up() == [Wants(1000, False, True, ("a",))]
    demand.down()
    assert demand.looks(consumed("b")) == []


def test_the_terms_are_told_also_if_nothing_is_wanted() -> None:
    assert Demand(Terms(7), is_duplex=True).up() == [Wants(7, True, True)]


def test_only_what_changes_is_told() -> None:
    demand = Demand(Terms())
    demand.up()
    assert demand.looks(consumed("a", "b")) == [Wants(1000, False, True, ("a", "b"))]
    assert demand.looks(consumed("a", "b")) == []
    said = demand.looks(consumed("b", "c"))
    assert [each.queues for each in said] == [("c",), ()]
    assert [each.gone for each in said] == [(), ("a",)]
    assert [each.is_whole for each in said] == [False, True]


def test_a_consumer_that_left_while_the_link_was_down_is_in_nothing_that_is_told() -> None:
    demand = Demand(Terms())
    demand.looks(consumed("a", "b"))
    demand.up()
    demand.down()
    demand.looks(consumed("b"))
    assert demand.up() == [Wants(1000, False, True, ("b",))]


def test_many_queues_are_told_in_pages_that_fit_a_frame() -> None:
    names = [f"{each:0>250}" for each in range(NAMES_MAX)] + [f"q{each}" for each in range(1000)]
    demand, supply = Demand(Terms()), Supply()
    demand.looks(consumed(*names))
    pages = demand.up()
    assert len(pages) > 4
    news = [supply.heard(decode(encode(each))) for each in pages]
    assert news == [False] * (len(pages) - 1) + [True], "only what is whole counts"
    assert supply.queues == set(names)


def test_half_a_difference_does_not_count() -> None:
    supply = Supply()
    supply.heard(Wants(5, False, True, ("a",)))
    assert not supply.heard(Wants(9, True, False, ("b",), ("a",)))
    assert supply.queues == {"a"}
    assert (supply.prefetch, supply.is_duplex) == (5, False)
    assert supply.heard(Wants(9, True, True, ("c",)))
    assert supply.queues == {"b", "c"}
    assert (supply.prefetch, supply.is_duplex) == (9, True)


def test_nobody_wants_more_queues_than_a_broker_has() -> None:
    supply = Supply()
    for page in range(QUEUE_ROWS // 128):
        supply.heard(Wants(5, False, False, tuple(f"{page}.{each}" for each in range(128))))
    with pytest.raises(Malformed, match="queues are wanted"):
        supply.heard(Wants(5, False, True, ("one more",)))


STEPS = st.lists(
    st.one_of(st.just("up"), st.just("down"), st.frozensets(st.sampled_from("abcde"))), max_size=20
)


@given(STEPS)
def test_whatever_happens_the_other_end_knows_what_is_wanted(steps: list[object]) -> None:
    """The one property: over a connection that is up, told is what is wanted now."""
    demand, supply, there = Demand(Terms()), None, frozenset[str]()
    for step in steps:
        said: list[Wants] = []
        if step == "up":
            demand.down()
            supply, said = Supply(), demand.up()
        elif step == "down":
            demand.down()
            supply = None
        elif isinstance(step, frozenset):
            there = step
            said = demand.looks(consumed(*step))
            assert supply is not None or not said
        for each in said:
            assert supply is not None
            supply.heard(decode(encode(each)))
        if supply is not None:
            assert supply.queues == there


@pytest.mark.parametrize(
    "what", [Wants(0, False, True), Wants(10_001, False, True), Wants(1, False, True, ("",))]
)
def test_bounds(what: Wants) -> None:
    with pytest.raises(Malformed):
        encode(what)
