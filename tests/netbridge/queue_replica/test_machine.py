"""One replica: its states, and what it asks for."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.queue_replica.action import (
    Became,
    Begin,
    GiveUp,
    GoOn,
    LetDelete,
    Say,
    Stop,
)
from shmbroker.netbridge.queue_replica.codec import encode, from_original, from_replica
from shmbroker.netbridge.queue_replica.machine import ANEW_SECONDS, ASK_SECONDS, Replica, State
from shmbroker.netbridge.queue_replica.original import begins_at
from shmbroker.netbridge.queue_replica.source import Source, unpacked
from shmbroker.netbridge.queue_replica.told import (
    Chained,
    Counted,
    Follow,
    Follows,
    Has,
    Hop,
    Leave,
    Moment,
    OfOriginal,
    OfReplica,
    Unserved,
    Why,
)
from shmbroker.netbridge.wire.malformed import Malformed

ONE, TWO = b"1" * 16, b"2" * 16
HERE, ABOVE = b"h" * 16, (Hop(b"a" * 16, "above"),)


def found(identity: bytes = ONE, begins: int = 7) -> Follows:
    return Follows(0, identity, begins, 1024, 5, ABOVE, False)


def following(identity: bytes = ONE) -> Replica:
    made = Replica(0, "q", identity, HERE)
    list(made.linked(9))
    list(made.follows(found(identity), 9, 0))
    list(made.counted())
    assert made.state is State.FOLLOWING
    return made


def test_a_new_one_begins_where_its_original_is() -> None:
    made = Replica(0, "q")
    assert list(made.linked(0)) == [Became("syncing", ""), Say(Follow(0, "q", b"", 0))]
    assert list(made.follows(found(), 0, 0)) == [Begin(ONE, 7, 5, saves=True, is_durable=False)]
    assert list(made.counted()) == [Became("following", "")]
    assert list(made.counted()) == []


def test_what_is_missing_from_the_beginning_is_given_up() -> None:
    made = Replica(0, "q")
    list(made.linked(0))
    assert list(made.unserved(Unserved(0, Why.MISSING, "no queue"), 0)) == [GiveUp("no queue")]


def test_it_goes_on_where_it_was() -> None:
    made = following()
    assert list(made.lost("silence")) == [Became("disconnected", "silence")]
    assert list(made.linked(20)) == [Became("syncing", ""), Say(Follow(0, "q", ONE, 20))]
    assert list(made.follows(found(begins=20), 20, 0)) == [GoOn(5)]


def test_a_queue_that_was_made_again_is_another_one() -> None:
    made = following()
    list(made.lost(""))
    list(made.linked(20))
    assert list(made.follows(found(TWO, 0), 20, 0)) == [
        Begin(TWO, 0, 5, saves=True, is_durable=False)
    ]
    assert made.identity == TWO


def test_positions_that_the_original_never_had_are_dropped() -> None:
    made = following()
    list(made.lost(""))
    list(made.linked(20))
    assert list(made.follows(found(begins=15), 20, 0)) == [
        Begin(ONE, 15, 5, saves=False, is_durable=False)
    ]


def test_one_that_another_process_has_let_be_deleted_is_not_let_any_more() -> None:
    made = Replica(0, "q", ONE, HERE)
    list(made.linked(9))
    assert list(made.follows(found(begins=9), 9, 0)) == [GoOn(5), LetDelete(False)]


def test_it_goes_on_behind_what_the_original_had() -> None:
    wish = Follow(0, "q", ONE, 9)
    assert begins_at(wish, ONE, 3, 9) == 9
    assert begins_at(wish, ONE, 3, 8) == 3, "it has more than there ever was"
    assert begins_at(wish, TWO, 3, 20) == 3


def test_a_deleted_original_is_asked_for_until_it_is_there_again() -> None:
    made = following()
    gone = Unserved(0, Why.MISSING, "it was deleted")
    assert list(made.unserved(gone, 3)) == [
        Stop(), LetDelete(True), Became("source-deleted", "it was deleted"),
    ]  # fmt: skip
    assert made.due == 3 + ASK_SECONDS
    assert list(made.tick(9, 3.5)) == []
    assert list(made.tick(9, 4)) == [Say(Follow(0, "q", ONE, 9))]
    assert list(made.unserved(gone, 4)) == [Stop()]
    assert list(made.lost("silence")) == []
    assert made.state is State.SOURCE_DELETED
    list(made.linked(9))
    assert list(made.follows(found(TWO), 9, 0)) == [
        Begin(TWO, 7, 5, saves=True, is_durable=False), LetDelete(False), Became("syncing", ""),
    ]  # fmt: skip


def test_who_is_not_let_follow_asks_again() -> None:
    made = following()
    off = Unserved(0, Why.OFF, "ha.queue-replication is false there")
    assert list(made.unserved(off, 0)) == [Stop(), Became("refused", off.detail)]
    assert list(made.tick(9, ASK_SECONDS)) == [Say(Follow(0, "q", ONE, 9))]
    assert list(made.unserved(off, ASK_SECONDS)) == [Stop()], "nothing new is said"
    list(made.tick(9, 2 * ASK_SECONDS))
    assert list(made.follows(found(begins=9), 9, 2 * ASK_SECONDS)) == [
        GoOn(5), Became("syncing", ""),
    ]  # fmt: skip


def test_a_failure_is_said_and_tried_again() -> None:
    made = following()
    assert list(made.fails("8 slots", 1)) == [Stop(), Say(Leave(0)), Became("failed", "8 slots")]
    assert list(made.counted()) == []
    assert list(made.follows(found(), 9, 0)) == []
    assert list(made.tick(9, 1 + ANEW_SECONDS))[-1] == Say(Follow(0, "q", ONE, 9))


def test_what_its_original_has_lost_comes_again() -> None:
    made = following()
    assert list(made.stale()) == [
        Stop(), Say(Leave(0)), Became("syncing", ""), Say(Follow(0, "q", b"", 0)),
    ]  # fmt: skip
    assert list(made.follows(found(), 9, 0)) == [Begin(ONE, 7, 5, saves=False, is_durable=False)]


def test_what_its_original_has_lost_and_is_gone_since_is_asked_for_again() -> None:
    """The queue is closed, so it is not forgotten."""
    made = following()
    list(made.stale())
    gone = Unserved(0, Why.MISSING, "it was deleted")
    assert list(made.unserved(gone, 3)) == [
        Stop(), LetDelete(True), Became("source-deleted", "it was deleted"),
    ]  # fmt: skip
    assert list(made.tick(9, 3 + ASK_SECONDS)) == [Say(Follow(0, "q", b"", 0))]
    made = following()
    list(made.stale())
    list(made.follows(Follows(0, ONE, 7, 8, 5, (*ABOVE, Hop(HERE, "here")), False), 0, 1))
    assert made.state is State.FAILED


def test_a_ring_is_refused() -> None:
    ring = (*ABOVE, Hop(HERE, "here"))
    new = Replica(0, "q", node=HERE)
    list(new.linked(0))
    why = "a ring of replicas: 'q' would follow above, which follows here"
    assert list(new.follows(Follows(0, ONE, 7, 8, 5, ring, False), 0, 1)) == [
        Say(Leave(0)), GiveUp(why),
    ]  # fmt: skip
    made = following()
    assert list(made.chained(ABOVE, 1)) == []
    assert list(made.chained(ring, 1)) == [Stop(), Say(Leave(0)), Became("failed", why)]


def test_detaching_asks_nobody() -> None:
    made = following()
    assert list(made.detach()) == [Stop(), Say(Leave(0))]
    made = following()
    list(made.lost(""))
    assert list(made.detach()) == [Stop()]


@pytest.mark.parametrize("said", [Follow(3, "q", ONE, 4), Leave(3), Has(9)], ids=str)
def test_what_replicas_say(said: OfReplica) -> None:
    assert from_replica(encode(said)) == said
    with pytest.raises(Malformed):
        from_original(encode(said))


@pytest.mark.parametrize(
    "said",
    [found(), Chained(1, ABOVE), Unserved(1, Why.UNFIT, "pages"), Moment(True), Counted(1)],
    ids=str,
)
def test_what_originals_say(said: OfOriginal) -> None:
    assert from_original(encode(said)) == said
    with pytest.raises(Malformed):
        from_replica(encode(said))


def test_a_source_as_a_queue_keeps_it() -> None:
    source = Source("node1:61616", ONE)
    assert unpacked(source.packed()) == source
    assert unpacked(b"") is None
    assert unpacked(b"\x01") is None
    with pytest.raises(ValueError, match="at most"):
        Source("x" * 500, ONE).packed()


def test_one_that_could_not_begin_anew_is_still_what_it_was() -> None:
    """What it has is saved when it can: it would be dropped, or shown among the other one's."""
    made = following(ONE)
    list(made.lost(""))
    list(made.linked(9))
    [begin, *_] = made.follows(found(TWO, 9), 9, 0)
    assert begin == Begin(TWO, 9, 5, saves=True, is_durable=False)
    list(made.not_begun("the disk is full", 0))
    asked = [each for each in made.tick(9, ANEW_SECONDS) if isinstance(each, Say)]
    assert asked == [Say(Follow(0, "q", ONE, 9))]
    [begin, *_] = made.follows(found(TWO, 9), 9, ANEW_SECONDS)
    assert begin == Begin(TWO, 9, 5, saves=True, is_durable=False)
