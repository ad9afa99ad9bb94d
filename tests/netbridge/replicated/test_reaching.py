"""Peers of `network-check`, and what is told of attempts to reach them."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.replicated.attempts import Attempts
from shmbroker.netbridge.replicated.reaching import is_reached


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
def test_a_name_that_cannot_be_one_is_not_reached(host: str) -> None:
    """Nobody would be told whether there is any peer: it counts as one that is looked for still."""
    assert not is_reached(Single(host, 7), 1.0)


@pytest.fixture
def attempts() -> Attempts:
    """Of two peers; three misses in a row are enough."""
    return Attempts(["gateway:22", "other:22"], LinkTimes())


WHY = "it reaches none of gateway:22, other:22"


def misses(attempts: Attempts, began: float = 0.0) -> list[str | None]:
    """One of each peer."""
    return [attempts.ended(peer, began, is_there=False) for peer in (0, 1)]


def test_one_that_is_reached_is_enough_and_is_told_once(attempts: Attempts) -> None:
    assert misses(attempts) == [None, None]
    assert attempts.ended(1, 0.2, is_there=True) == ""
    for _ in range(4):
        assert attempts.ended(0, 0.4, is_there=False) is None
        assert attempts.ended(1, 0.4, is_there=True) is None


def test_who_misses_all_of_them_again_and_again_is_isolated(attempts: Attempts) -> None:
    assert attempts.ended(0, 0.0, is_there=True) == ""
    assert [misses(attempts), misses(attempts), misses(attempts)] == [
        [None, None], [None, None], [None, WHY],
    ]  # fmt: skip
    assert misses(attempts) == [None, None]
    assert attempts.ended(0, 1.0, is_there=True) == ""


def test_who_asks_is_told_by_attempts_that_began_since(attempts: Attempts) -> None:
    assert attempts.ended(0, 0.0, is_there=True) == ""
    attempts.again(1.0)
    assert attempts.ended(0, 0.9, is_there=True) is None
    assert attempts.ended(0, 1.1, is_there=True) == ""
    assert attempts.ended(0, 1.3, is_there=True) is None


def test_who_asks_is_isolated_by_one_miss_of_each(attempts: Attempts) -> None:
    assert attempts.ended(0, 0.0, is_there=True) == ""
    attempts.again(1.0)
    assert misses(attempts, 1.1) == [None, WHY]
    assert attempts.ended(0, 1.3, is_there=True) == ""
    assert [misses(attempts, 1.5), misses(attempts, 1.7)] == [[None, None], [None, None]]
