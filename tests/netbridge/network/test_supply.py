"""Whose turn it is among consumers here and brokers elsewhere."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from shmbroker.netbridge.network.supply import Turn, Way, share, turns

A, B = Way("a", 10, frozenset({"orders"})), Way("b", 10, frozenset({"orders", "stock"}))


def test_without_consumers_here_all_goes() -> None:
    assert turns("orders", [A], {}, 0) == [Turn("a", 1, 0, 10)]


def test_what_nobody_wants_stays() -> None:
    assert turns("stock", [A], {}, 0) == []


def test_a_link_is_one_consumer_beside_those_here() -> None:
    assert turns("orders", [A], {}, 2) == [Turn("a", 3, 2, 10)]
    assert turns("orders", [B, A], {}, 1) == [Turn("a", 3, 1, 10), Turn("b", 3, 2, 10)]


def test_a_link_with_enough_on_its_way_has_no_turn() -> None:
    assert turns("orders", [A], {"a": 7}, 0) == [Turn("a", 1, 0, 3)]
    assert turns("orders", [A, B], {"a": 10, "b": 0}, 1) == [Turn("b", 2, 1, 10)]
    assert turns("orders", [A], {"a": 12}, 0) == [], "prefetch-size was made smaller meanwhile"


@given(st.integers(1, 16_384))
def test_a_share_is_a_message_at_least_and_all_at_most(prefetch: int) -> None:
    assert 1 <= share(prefetch) <= prefetch
    assert share(prefetch) <= max(1, prefetch // 4), "the rest is on its way meanwhile"


@given(st.integers(0, 3), st.dictionaries(st.sampled_from("abcd"), st.integers(0, 12)))
def test_each_position_is_of_one(consumers: int, waiting: dict[str, int]) -> None:
    ways = [Way(each, 10, frozenset({"orders"})) for each in "dacb"]
    found = turns("orders", ways, waiting, consumers)
    cycle = consumers + len(found)
    shares = Counter(
        each.ring for position in range(cycle) for each in found if position % cycle == each.turn
    )
    assert all(each.cycle == cycle for each in found)
    assert shares == {each.ring: 1 for each in found}, "one of a cycle for each"
    assert {each.ring for each in found} == {each for each in "abcd" if waiting.get(each, 0) < 10}
