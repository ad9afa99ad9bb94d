"""What the live and a replica decide, without a network: each rule of the machines."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from shmbroker.ipc.journal.place import Place
from shmbroker.netbridge.replica.action import (
    Action,
    Apply,
    Attach,
    Became,
    Count,
    Discard,
    Done,
    Drop,
    GoOn,
    Look,
    ReadFiles,
    Say,
)
from shmbroker.netbridge.replica.copying import Copying, Unexpected
from shmbroker.netbridge.replica.copying import State as Mine
from shmbroker.netbridge.replica.feed import NEVER, Feed, State
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.wire.frame import InSync, Join, Joined, Reached, Shipment, Unjoined
from shmbroker.netbridge.wire.words import ReplicaAck

TERMS = ReplicationTerms(replica_timeout=1, sync_timeout=30, window=100)
BOOT = bytes(16)
PLACE = Place(7, 1, 11, 12)
OTHER = Place(9, 1, 13, 14)
JOIN = Join("two", BOOT, ReplicaAck.RECEIVED, 7, 1, 11, 12, 9, 1, 13, 14)


def said(actions: Iterable[Action]) -> list[Action]:
    return [each for each in actions if not isinstance(each, Became)]


def copying_feed(after: Place | None = None) -> Feed:
    feed = Feed(TERMS, 0.0)
    assert said(feed.join(JOIN, has_place=True, now=0.0)) == [Look((PLACE, OTHER))]
    answer = Joined(after is not None, *((7, 1, 11, 12) if after else (0, 0, 0, 0)), 900)
    assert said(feed.found(after, 900, 0.0)) == [Say(answer), ReadFiles()]
    return feed


def following() -> Feed:
    """Attached behind frame 20, of which the replica has none."""
    feed = copying_feed()
    assert said(feed.read(20, 60, 0.0)) == [ReadFiles()]
    assert said(feed.read(20, 0, 0.0)) == [Attach(20)]
    assert said(feed.attached(True, 0.0)) == []
    return feed


def in_sync() -> Feed:
    feed = following()
    assert said(feed.reached(Reached(20), 0.5)) == [Count()]
    assert said(feed.counts(22, 0.5)) == [Say(InSync(22))]
    return feed


# --- the live's -----------------------------------------------------------------------------------


def test_files_are_read_a_window_at_a_time() -> None:
    feed = copying_feed()
    assert said(feed.read(5, 60, 0.0)) == [ReadFiles()]
    assert said(feed.read(10, 60, 0.0)) == [], "the window is used up"
    assert said(feed.reached(Reached(5), 0.1)) == [ReadFiles()]


def test_it_goes_on_behind_what_both_have() -> None:
    feed = copying_feed(PLACE)
    assert said(feed.read(7, 0, 0.0)) == [Attach(7)]
    assert said(feed.attached(True, 0.0)) == [Count()], "nothing is missing"


def test_a_frame_that_came_meanwhile_is_copied_first() -> None:
    feed = copying_feed()
    assert said(feed.read(20, 60, 0.0)) == [ReadFiles()]
    assert said(feed.read(20, 0, 0.0)) == [Attach(20)]
    assert said(feed.attached(False, 0.0)) == [ReadFiles()]
    assert said(feed.read(21, 10, 0.0)) == [ReadFiles()]
    assert said(feed.read(21, 0, 0.0)) == [Attach(21)]


def test_it_counts_when_it_has_what_was_there_before() -> None:
    feed = following()
    feed.told(21, 10, 0.1)
    assert said(feed.reached(Reached(19), 0.2)) == [], "the end is done with that already"
    assert said(feed.reached(Reached(20), 0.3)) == [Count()]
    assert feed.state is State.FOLLOWING
    assert said(feed.counts(21, 0.3)) == [Say(InSync(21))]
    assert feed.state is State.IN_SYNC
    assert said(feed.reached(Reached(21), 0.4)) == [Done(21)]


def test_more_than_was_sent_is_of_a_former_connection() -> None:
    feed = in_sync()
    feed.told(23, 10, 1.0)
    assert said(feed.reached(Reached(30), 1.1)) == [Done(23)]
    (dropped,) = said(feed.reached(Reached(22), 1.2))
    assert isinstance(dropped, Drop)
    assert feed.state is State.OVER


def test_one_that_does_not_progress_is_dropped_once() -> None:
    feed = in_sync()
    assert feed.deadline == NEVER, "nothing is expected of it"
    feed.told(21, 10, 100.0)
    feed.told(22, 10, 100.9)
    feed.told(23, 10, 100.95)
    assert said(feed.reached(Reached(22), 100.99)) == [Done(22)]
    assert said(feed.tick(101.5)) == [], "it progresses"
    (dropped,) = said(feed.tick(102.0))
    assert isinstance(dropped, Drop)
    assert "no progress for 1.01 s" in dropped.why
    assert said(feed.tick(103.0)) == []
    assert feed.deadline == NEVER


def test_the_last_step_of_a_newcomer_has_its_own_time() -> None:
    feed = following()
    feed.told(22, 10, 0.4)
    assert said(feed.reached(Reached(20), 0.5)) == [Count()]
    assert said(feed.counts(22, 0.5))
    assert said(feed.tick(2.0)) == []
    (dropped,) = said(feed.tick(31.0))
    assert isinstance(dropped, Drop)


def test_a_newcomer_that_still_makes_its_store_has_the_time_of_a_sync() -> None:
    feed = following()
    assert said(feed.tick(29.0)) == [], "attached, and no confirm waits for it"
    assert said(feed.reached(Reached(20), 29.5)) == [Count()]
    feed = following()
    (dropped,) = said(feed.tick(30.0))
    assert isinstance(dropped, Drop)


def test_a_newcomer_that_falls_behind_is_fed_from_files_again() -> None:
    feed = following()
    assert said(feed.fell_behind()) == [ReadFiles()]
    assert feed.state is State.COPYING
    feed = in_sync()
    (dropped,) = said(feed.fell_behind())
    assert isinstance(dropped, Drop), "one that counts was waited for"


def test_there_is_no_place_for_it() -> None:
    feed = Feed(TERMS, 0.0)
    assert said(feed.join(JOIN, has_place=False, now=0.0)) == [Say(Unjoined("already-replicating"))]
    (dropped,) = said(in_sync().join(JOIN, has_place=True, now=1.0))
    assert isinstance(dropped, Drop), "it joins once"


# --- the replica's --------------------------------------------------------------------------------


def joined(resumes: bool) -> tuple[Copying, list[Action]]:
    copying = Copying("two", BOOT, ReplicaAck.RECEIVED)
    assert said(copying.up(PLACE, OTHER)) == [Say(JOIN)]
    answer = Joined(resumes, 7, 2, 3, 4, 0) if resumes else Joined(False, 0, 0, 0, 0, 0)
    return copying, said(copying.heard(answer))


def test_what_it_has_is_set_aside_unless_the_live_knows_it() -> None:
    assert joined(False)[1] == [Discard()]
    assert joined(True)[1] == [GoOn(Place(7, 2, 3, 4))]


def test_it_is_in_sync_when_it_has_what_was_there_before() -> None:
    copying, _ = joined(True)
    assert said(copying.heard(InSync(9))) == []
    assert not copying.may_take_over
    assert said(copying.reached(8)) == [Say(Reached(8))]
    assert said(copying.reached(8)) == []
    assert not copying.may_take_over
    assert said(copying.reached(9)) == [Say(Reached(9))]
    assert copying.state is Mine.IN_SYNC
    list(copying.lost())
    assert copying.may_take_over, "it has all that was confirmed before the link was lost"
    list(copying.up(PLACE, None))
    assert copying.may_take_over, "nobody has said anything else"
    list(copying.heard(Joined(True, 9, 2, 3, 4, 0)))
    assert not copying.may_take_over, "there is more by now"


def test_half_a_copy_is_nothing() -> None:
    copying, _ = joined(False)
    list(copying.heard(Shipment(False, b"frames")))
    list(copying.lost())
    assert not copying.may_take_over


def test_a_large_shipment_comes_in_parts() -> None:
    copying, _ = joined(False)
    assert said(copying.heard(Shipment(True, b"one"))) == []
    assert said(copying.heard(Shipment(True, b"two"))) == []
    assert said(copying.heard(Shipment(False, b"three"))) == [Apply(b"onetwothree")]
    assert said(copying.heard(Shipment(False, b"four"))) == [Apply(b"four")]
    list(copying.heard(Shipment(True, b"lost")))
    list(copying.lost())
    list(copying.up(None, None))
    list(copying.heard(Joined(False, 0, 0, 0, 0, 0)))
    assert said(copying.heard(Shipment(False, b"five"))) == [Apply(b"five")]


def test_how_far_a_sync_is() -> None:
    copying = Copying("two", BOOT, ReplicaAck.DISK)
    list(copying.up(None, None))
    assert copying.percent is None
    list(copying.heard(Joined(False, 0, 0, 0, 0, 1000)))
    assert copying.percent == 0
    list(copying.heard(Shipment(True, bytes(430))))
    assert copying.percent == 43
    list(copying.heard(Shipment(False, bytes(4000))))
    assert copying.percent == 99, "there is more: what was published meanwhile"
    list(copying.heard(InSync(9)))
    list(copying.reached(9))
    assert copying.percent is None


def test_a_short_sync_has_no_percents() -> None:
    copying, _ = joined(False)
    assert copying.percent is None


def test_what_cannot_be_said_is_refused() -> None:
    copying = Copying("two", BOOT, ReplicaAck.DISK)
    for frame in (Joined(True, 1, 1, 1, 1, 0), Shipment(False, b""), InSync(1)):
        with pytest.raises(Unexpected):
            list(copying.heard(frame))
    list(copying.up(None, None))
    list(copying.heard(Unjoined("already-replicating")))
    assert copying.why == "already-replicating"
    with pytest.raises(Unexpected):
        list(copying.heard(Shipment(False, b"")))
