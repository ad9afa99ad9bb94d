"""Moments that a replica was sent and has not shown."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.queue_replica.unshown import Unshown
from shmbroker.netbridge.wire.malformed import Malformed


def test_what_is_shown_is_there_up_to_where_its_moment_ended() -> None:
    unshown = Unshown()
    unshown.follow(1, b"one")
    unshown.follow(2, b"two")
    unshown.sent({1: 10, 2: 20})
    unshown.sent({1: 11, 2: 20})
    assert unshown.identities == {b"one", b"two"}
    assert list(unshown.shown(0)) == []
    assert list(unshown.shown(1)) == [(b"one", 10), (b"two", 20)]
    assert unshown
    assert list(unshown.shown(2)) == [(b"one", 11), (b"two", 20)]
    assert not unshown


def test_a_queue_that_begins_anew_has_nothing_of_what_was_sent_before() -> None:
    unshown = Unshown()
    unshown.follow(1, b"one")
    unshown.sent({1: 10})
    assert unshown.drop(1) == b"one"
    assert unshown.drop(1) is None
    unshown.follow(1, b"anew")
    assert list(unshown.shown(1)) == []


def test_moments_are_counted_though_nobody_waits() -> None:
    unshown = Unshown()
    unshown.sent({})
    assert not unshown
    unshown.follow(1, b"one")
    unshown.sent({1: 5})
    assert list(unshown.shown(1)) == []
    assert list(unshown.shown(2)) == [(b"one", 5)]


def test_what_is_behind_the_last_moment_is_lacking() -> None:
    unshown = Unshown()
    unshown.follow(1, b"one")
    unshown.follow(2, b"two")
    assert unshown.lacking({1: 0, 2: 1}) == {b"two"}
    unshown.sent({1: 10, 2: 20})
    assert unshown.lacking({1: 10, 2: 20}) == set()
    assert unshown.lacking({1: 11}) == {b"one"}
    unshown.drop(1)
    unshown.follow(1, b"anew")
    assert unshown.lacking({1: 10}) == {b"anew"}


def test_no_more_are_shown_than_were_sent() -> None:
    unshown = Unshown()
    unshown.sent({})
    with pytest.raises(Malformed, match="shows 2 moments of 1"):
        list(unshown.shown(2))


def test_a_replica_is_counted_once_with_the_first_moment_that_it_is_sent() -> None:
    unshown = Unshown()
    unshown.sent({})
    unshown.follow(1, None)
    unshown.follow(2, b"two")
    assert unshown.counted(1) == [], "that moment was before"
    unshown.sent({2: 5})
    unshown.follow(3, None)
    unshown.sent({2: 6})
    assert unshown.counted(2) == [1, 2]
    assert unshown.drop(3) is None
    assert unshown.counted(3) == []
