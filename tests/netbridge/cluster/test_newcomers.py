"""Which nodes are new, and how many programs go there."""

from __future__ import annotations

from shmbroker.netbridge.cluster.newcomers import (
    AWAY_SECONDS,
    SETTLING_SECONDS,
    Newcomers,
    share,
)

A, B, C = b"a", b"b", b"c"


def settled(*there: bytes) -> Newcomers:
    made = Newcomers()
    assert made.see(there[:1], 0.0) == frozenset()
    assert made.see(there, SETTLING_SECONDS - 0.01) == frozenset(), "they were there before us"
    return made


def test_a_node_that_joins_is_new_once() -> None:
    of = settled(A, B)
    assert of.see((A, B, C), SETTLING_SECONDS) == {C}
    assert of.see((A, B, C), SETTLING_SECONDS + 1) == frozenset()


def test_a_node_that_is_missing_for_a_moment_is_not_new() -> None:
    of = settled(A, B)
    assert of.see((A,), 100.0) == frozenset()
    assert of.see((A, B), 100.0 + AWAY_SECONDS - 0.01) == frozenset()
    assert of.see((A,), 200.0) == frozenset()
    assert of.see((A, B), 200.0 + AWAY_SECONDS) == {B}


def test_it_gets_its_share_of_each() -> None:
    assert [share(programs, 3) for programs in (0, 2, 3, 10)] == [0, 0, 1, 3]
