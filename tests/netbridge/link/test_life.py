"""Heartbeats, loss, and closing in good order: one ending, with one reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shmbroker.netbridge.link.action import CloseSink, Ended, Send
from shmbroker.netbridge.link.ending import Reason, Retry, State
from shmbroker.netbridge.link.heartbeat import SLOTS, Heartbeat
from shmbroker.netbridge.link.inflow import Poured
from shmbroker.netbridge.link.outflow import Batch
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.wire.frame import Beat, Closing, Drained, Moved
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import Role
from tests.support.link_ends import DAY_MS, EAST, OUTLET, TIMES, WISH, Pair, pair


def ticks(of: Pair, until: float, *, far: bool = True) -> None:
    """Both ends wake at their deadlines, or the near one only."""
    ends = [of.near, of.far] if far else [of.near]
    while (next_ := min(end.deadline for end in ends)) <= until:
        of.now = next_
        for end in ends:
            if end.deadline <= of.now:
                of.hears(end, end.tick(of.now))
    of.now = until


def shipped() -> Pair:
    """Four messages are on their way, and not appended."""
    of = pair().opened()
    of.turn()
    of.hears(of.near, of.near.read(0, Batch(0, 4, 4, bytes(128)), 0))
    return of


def appended(of: Pair) -> None:
    of.hears(of.far, of.far.poured(0, Poured(128, 4, 4), of.now))
    of.hears(of.far, of.far.confirmed(0, 4, of.now))
    of.hears(of.near, of.near.released(0, 4, of.now))


def test_who_beats_is_not_lost() -> None:
    of = pair().connect()
    ticks(of, 60.0)
    assert (of.near.state, of.endings()) == (State.UP, ([], []))
    assert 290 <= len(of.sent(Beat)) <= 310


def test_who_may_have_beaten_unheard_is_not_lost_and_hears_beats() -> None:
    """All that had come by `heard` was told; the rest is unread."""
    of = pair().connect()
    late = TIMES.silence + 1.0
    sent = [each for each in of.near.tick(late, TIMES.silence - 0.001) if isinstance(each, Send)]
    assert [type(each.frame) for each in sent] == [Beat]
    (ended,) = of.near.tick(late, TIMES.silence)
    assert isinstance(ended, Ended)
    assert ended.ending.reason is Reason.SILENCE


@pytest.mark.parametrize("role", [Role.CLUSTER, Role.CLIENT])
def test_who_is_silent_is_lost_after_interval_times_misses(role: Role) -> None:
    of = pair(wish=replace(WISH, role=role)).connect()
    ticks(of, TIMES.silence - 0.001, far=False)
    assert of.near.ending is None
    (ended,) = of.near.tick(TIMES.silence)
    assert isinstance(ended, Ended)
    assert (ended.ending.state, ended.ending.reason) == (State.LOST, Reason.SILENCE)
    assert ended.ending.retry is Retry.AT_ONCE


@pytest.mark.parametrize("is_far", [False, True])
@pytest.mark.parametrize("seconds", [0.5, 1000.0])
def test_who_stood_still_counts_that_as_no_silence_of_the_other_one(
    seconds: float, is_far: bool
) -> None:
    of = pair(wish=replace(WISH, role=Role.CLIENT)).connect()
    ticks(of, 1.19)
    of.now += seconds
    it = of.far if is_far else of.near
    sent = [each.frame for each in it.tick(of.now) if isinstance(each, Send)]
    assert sent == [Beat(5 if is_far else 3)]
    went_on = of.now
    while it.ending is None:
        of.now = it.deadline
        it.tick(of.now)
    assert it.ending.reason is Reason.SILENCE
    assert 0.1 < of.now - went_on < TIMES.silence, "what has come meanwhile it reads by then"


def test_who_always_is_late_notices_a_silence_all_the_same() -> None:
    of = pair(wish=replace(WISH, role=Role.CLIENT)).connect()
    turns = 0
    while of.near.ending is None:
        of.near.tick(of.near.deadline + 10.0)
        turns += 1
    assert 0 <= turns - TIMES.heartbeat_misses <= 1


def test_what_is_a_little_late_or_came_meanwhile_is_no_standing_still() -> None:
    beats = Heartbeat(TIMES, 0.0)
    beats.stood_still(0.2, 0.29)
    assert beats.heard_at == 0.0
    beats.heard_at = 0.5
    beats.stood_still(0.2, 0.7)
    assert beats.heard_at == 0.7, "since it was heard"


def test_between_brokers_who_stood_still_takes_nobody_for_one_that_follows() -> None:
    of = pair().connect()
    (ended,) = of.near.tick(TIMES.silence + 0.1)
    assert isinstance(ended, Ended)
    assert ended.ending.reason is Reason.SILENCE


def test_any_frame_is_a_beat() -> None:
    of = pair().opened()
    for step in range(1, 20):
        of.now = step * 0.5
        of.turn()
        batch = Batch(step, step + 1, 1, bytes(32))
        of.hears(of.near, of.near.read(0, batch, of.now))
        of.near.news(0)
    assert of.far.heartbeat.heard_at == of.now


def test_beats_come_as_often_as_the_other_end_wants_them() -> None:
    of = pair(times=LinkTimes(heartbeat_interval=10), far_times=LinkTimes(heartbeat_interval=0.1))
    ticks(of.connect(), 30)
    assert of.endings() == ([], [])


def test_a_closed_socket_is_a_loss_at_once() -> None:
    of = pair().connect()
    of.hears(of.near, of.near.disconnected(0))
    assert of.endings()[0][0].reason is Reason.DISCONNECTED


def test_a_malformed_frame_fails_the_link_and_says_why() -> None:
    of = pair().connect()
    of.hears(of.far, of.far.malformed(Malformed("beat: epoch is -1"), 0))
    ending = of.endings()[1][0]
    assert (ending.state, ending.reason) == (State.FAILED, Reason.MALFORMED)
    assert ending.detail == "beat: epoch is -1"


def test_another_live_at_the_other_end_is_a_loss() -> None:
    of = pair().connect()
    done = of.far.received(2, Beat(EAST.epoch + 1), 0, DAY_MS)
    assert isinstance(done[-1], Ended)
    assert done[-1].ending.reason is Reason.EPOCH


def test_a_newer_connection_supersedes_the_older() -> None:
    of = pair().opened()
    of.hears(of.far, of.far.supersede(0))
    ending = of.endings()[1][0]
    assert (ending.reason, ending.retry) == (Reason.SUPERSEDED, Retry.NEVER)
    assert of.of(CloseSink, "far") == [CloseSink(0, forgets=False)]


@pytest.mark.parametrize("by_near", [True, False])
def test_closing_waits_for_confirms_and_then_frees_the_origin(by_near: bool) -> None:
    of = shipped()
    closer = of.near if by_near else of.far
    of.hears(closer, closer.stop(0, "maintenance"))
    assert of.endings() == ([], [])
    appended(of)
    near, far = (each[0] for each in of.endings())
    mine, other = (near, far) if by_near else (far, near)
    assert (mine.state, mine.reason) == (State.STOPPED, Reason.STOPPED)
    assert (other.reason, other.detail) == (Reason.PEER_CLOSING, "maintenance")
    assert other.retry is Retry.AT_ONCE
    assert of.of(CloseSink, "far") == [CloseSink(0, forgets=True)]
    assert len(of.sent(Closing) + of.sent(Closing, "far")) == 1


def test_an_origin_is_not_freed_before_the_release_outlives_a_crash() -> None:
    of = shipped()
    of.hears(of.near, of.near.stop(0))
    of.hears(of.far, of.far.poured(0, Poured(128, 4, 4), 0))
    of.hears(of.far, of.far.confirmed(0, 4, 0))
    assert not of.sent(Drained)
    of.hears(of.near, of.near.released(0, 4, 0))
    assert of.sent(Drained)
    assert of.of(CloseSink, "far") == [CloseSink(0, forgets=True)]


def test_what_a_former_connection_has_released_is_waited_for_as_well() -> None:
    """A power failure would take it back, and with a freed origin it would be sent again."""
    of = pair().opened(replace(OUTLET, confirmed=4, sent=4, end=4), mark=4, confirmed=4)
    of.hears(of.near, of.near.stop(0))
    assert not of.sent(Drained)
    of.hears(of.near, of.near.released(0, 4, 0))
    assert of.sent(Drained)


def test_closing_begins_nothing_new() -> None:
    of = shipped()
    of.near.news(0)
    of.hears(of.near, of.near.stop(0))
    assert not of.near.has_work


def test_closing_does_not_wait_for_ever() -> None:
    of = shipped()
    of.hears(of.near, of.near.stop(0))
    ticks(of, TIMES.pending_ack_timeout + 1)
    near, far = (each[0] for each in of.endings())
    assert (near.state, near.reason) == (State.STOPPED, Reason.PENDING_ACK_TIMEOUT)
    assert far.reason is Reason.PEER_CLOSING
    assert of.of(CloseSink, "far") == [CloseSink(0, forgets=False)]


def test_both_close_at_the_same_moment() -> None:
    of = pair().connect()
    first, second = of.near.stop(0), of.far.stop(0)
    of.hears(of.near, first)
    of.hears(of.far, second)
    assert [len(each) for each in of.endings()] == [1, 1]


def test_stopping_what_is_not_up_is_at_once() -> None:
    near = pair().near
    (ended,) = near.stop(0)
    assert isinstance(ended, Ended)
    assert near.state is State.STOPPED


def test_who_is_asked_to_move_finishes_and_goes() -> None:
    of = shipped()
    of.hears(of.far, of.far.move("tcp://north:61616", 0))
    assert of.sent(Moved, "far")
    assert of.endings() == ([], [])
    appended(of)
    ending = of.endings()[0][0]
    assert (ending.reason, ending.uri) == (Reason.MOVED, "tcp://north:61616")


def test_a_socket_that_closes_while_we_close_is_the_same_ending() -> None:
    of = shipped()
    of.hears(of.near, of.near.stop(0))
    of.hears(of.near, of.near.disconnected(0))
    assert of.endings()[0][0].reason is Reason.STOPPED


def test_nothing_comes_after_the_ending() -> None:
    of = shipped()
    of.hears(of.near, of.near.disconnected(0))
    near = of.near
    batch = Batch(4, 5, 1, bytes(32))
    later = [
        near.tick(99), near.disconnected(99), near.stop(99), near.turn(99),
        near.read(0, batch, 99), near.released(0, 4, 99), near.received(9, Beat(1), 99, DAY_MS),
        near.malformed(Malformed("x"), 99), near.supersede(99),
    ]  # fmt: skip
    assert not any(later)
    assert near.deadline == float("inf")
    assert not near.has_work


def test_beats_of_many_links_go_together_and_none_is_late() -> None:
    times = LinkTimes(heartbeat_interval=5)
    found = [Heartbeat(times, 1000 + 0.01 * each, in_slots=True) for each in range(500)]
    assert len({round(each.beat_at, 6) for each in found}) <= SLOTS + 1
    for each in found:
        assert each.beat_at - each.sent_at + 1e-6 >= 5 * (1 - 1 / SLOTS)
        assert each.beat_at <= each.sent_at + 5
        assert each.is_due(each.beat_at)
