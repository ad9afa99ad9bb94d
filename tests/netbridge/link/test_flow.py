"""The flow of a target: resuming, credit, confirms, rejects, large messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shmbroker.netbridge.link.action import (
    Action,
    Alert,
    BeginHistory,
    Ended,
    Line,
    OpenSink,
    Pour,
    Read,
    Release,
    Seek,
    Send,
    SetAside,
    Skip,
    Unserved,
)
from shmbroker.netbridge.link.ending import Reason, State
from shmbroker.netbridge.link.inflow import FEW, Poured
from shmbroker.netbridge.link.machine import CONFIRM_SECONDS
from shmbroker.netbridge.link.origin import origin_of
from shmbroker.netbridge.link.outflow import FIRST_BYTES, HEAD_ROOM, UNTOLD_MAX, Batch
from shmbroker.netbridge.link.times import NO_LIMIT, LinkTimes
from shmbroker.netbridge.wire.frame import (
    Confirm,
    Credit,
    Frame,
    Open,
    Part,
    Passed,
    Records,
    Reject,
    Resume,
)
from shmbroker.netbridge.wire.words import Level
from tests.support.link_ends import DAY_MS, OUTLET, TIMES, Pair, pair

SMALL = LinkTimes(window_messages=4, window_size=1024)


def ship(of: Pair, first: int, count: int, size: int = 32, target: int = 0) -> None:
    """The near end reads so many messages of one size and sends them."""
    of.turn()
    batch = Batch(first, first + count, count, bytes(size * count))
    of.hears(of.near, of.near.read(target, batch, of.now))


def pour(of: Pair, told: Poured) -> None:
    of.hears(of.far, of.far.poured(0, told, of.now))


def says(of: Pair, frame: Frame, *, far: bool = True) -> list[Action]:
    """One end says what it should not: what the other one does."""
    teller, hearer = (of.far, of.near) if far else (of.near, of.far)
    number, teller.sent = teller.sent, teller.sent + 1
    return hearer.received(number, frame, of.now, DAY_MS)


def reason(done: list[Action]) -> Reason:
    assert isinstance(done[-1], Ended), done
    return done[-1].ending.reason


# --- resuming -----------------------------------------------------------------------------------


def test_the_link_is_up_when_its_targets_are_open() -> None:
    of = pair()
    of.near.open(OUTLET, 0)
    of.connect()
    assert (of.near.state, of.far.state) == (State.SYNCING, State.UP)
    of.hears(of.far, of.far.opened(0, 0, 0, 1 << 20, 0))
    assert of.near.state is State.UP


def test_the_source_reads_on_at_the_mark_of_the_target() -> None:
    of = pair().opened(replace(OUTLET, confirmed=10, sent=90, end=100), mark=40, confirmed=30)
    assert of.of(Seek) == [Seek(0, 40)]
    assert of.sent(Resume) == [Resume(0, 40)]
    assert of.of(Release) == [Release(0, 30, Level.DISK)], "a mark is no confirm"
    assert not of.of(Line)


def test_a_mark_behind_what_was_confirmed_is_an_error_line_with_the_count() -> None:
    of = pair().opened(replace(OUTLET, confirmed=50, sent=90, end=100), mark=40, confirmed=40)
    (line,) = of.of(Line)
    assert (line.alert, line.count) == (Alert.MARK_BEHIND, 10)
    assert of.of(Seek) == [Seek(0, 50)], "it goes on from its own position"
    ship(of, 50, 2)
    ship(of, 95, 2)
    assert [each.redelivered for each in of.sent(Records)] == [True, False]


def test_an_origin_that_was_forgotten_is_a_line_and_flags_what_is_in_doubt() -> None:
    of = pair().opened(replace(OUTLET, confirmed=50, sent=60, end=100))
    (line,) = of.of(Line)
    assert (line.alert, line.count) == (Alert.ORIGIN_FORGOTTEN, 10)
    ship(of, 50, 2)
    ship(of, 60, 2)
    assert [each.redelivered for each in of.sent(Records)] == [True, False]


def test_an_origin_that_is_new_is_no_news() -> None:
    of = pair().opened(replace(OUTLET, confirmed=50, sent=60, end=100, begun=50))
    assert not of.of(Line)
    assert of.of(Seek) == [Seek(0, 50)]


def test_a_mark_above_the_ring_begins_a_new_history() -> None:
    of = pair().opened(replace(OUTLET, end=20, sent=20), mark=30, confirmed=30)
    assert of.of(BeginHistory) == [BeginHistory(0)]
    assert [line.alert for line in of.of(Line)] == [Alert.MARK_AHEAD]
    assert not of.near.has_work


def test_another_history_is_another_origin() -> None:
    known = {
        origin_of(node, link, ring, history)
        for node in (b"a" * 16, b"b" * 16)
        for link in ("l", "m")
        for ring in (b"r" * 16, b"s" * 16)
        for history in (0, 1)
    }
    assert len(known) == 16
    assert origin_of(b"", "ab", b"c", 0) != origin_of(b"", "a", b"bc", 0)


def test_without_duplicate_detection_what_is_in_doubt_is_sent_again() -> None:
    outlet = replace(OUTLET, confirmed=10, sent=40, end=50, exact=False)
    of = pair().opened(outlet, mark=40, confirmed=40)
    assert of.of(Seek) == [Seek(0, 10)]
    assert not of.of(Release)
    ship(of, 10, 1)
    assert of.sent(Records)[0].redelivered


def test_a_link_with_no_target_that_is_there_is_not_up() -> None:
    of = pair()
    of.near.open(OUTLET, 0)
    of.connect()
    of.hears(of.far, of.far.unopened(0, "there is no queue q", 0))
    assert of.of(Unserved) == [Unserved(0, "there is no queue q")]
    assert of.near.state is State.SYNCING
    assert not of.near.has_work


def test_a_target_that_is_not_there_leaves_another_one_up() -> None:
    of = pair()
    of.near.open(OUTLET, 0)
    of.near.open(replace(OUTLET, target=1), 0)
    of.connect()
    of.hears(of.far, of.far.unopened(0, "there is no queue q", 0))
    of.hears(of.far, of.far.opened(1, 0, 0, 1 << 20, 0))
    assert of.near.state is State.UP


def test_a_deadline_is_told_with_the_clock_that_it_is_of() -> None:
    """The far end's clock is 2 s ahead: deadlines that come are 2 s later there."""
    of = pair()
    of.near.open(OUTLET, 0)
    of.connect()
    (asked,) = of.sent(Open)
    done = of.far.received(of.far.received_frames, replace(asked, target=7, clock_ns=10**9),
                           3.0, DAY_MS)  # fmt: skip
    (opened,) = [each for each in done if isinstance(each, OpenSink)]
    assert opened.later == 2 * 10**9
    late = of.near.open(replace(OUTLET, target=8), 4.5)
    assert [each.frame.clock_ns for each in late if isinstance(each, Send)
            and isinstance(each.frame, Open)] == [4_500_000_000]  # fmt: skip


# --- credit -------------------------------------------------------------------------------------


def test_a_read_is_bounded_by_credit_and_by_the_frame() -> None:
    of = pair(times=SMALL).opened()
    of.turn()
    assert of.of(Read) == [Read(0, 4, 1024)]
    wide = pair(times=LinkTimes(window_size=NO_LIMIT, max_frame_size=1 << 16)).opened()
    for first in range(3):  # the first frames are small, so that the first message comes soon
        ship(wide, first, 1)
    wide.turn()
    sizes = [each.bytes for each in wide.of(Read)]
    assert sizes == [FIRST_BYTES, 2 * FIRST_BYTES, *2 * [(1 << 16) - HEAD_ROOM]]


def test_what_is_not_appended_gives_no_credit() -> None:
    of = pair(times=SMALL).opened()
    ship(of, 0, 4)
    assert not of.near.has_work
    (asked,) = of.of(Pour, "far")
    assert len(asked.records) == 128
    pour(of, Poured(32, 1, 1, is_full=True))
    assert of.sent(Credit, "far") == [Credit(0, 5, 1056)]
    ship(of, 4, 1)
    assert not of.near.has_work
    of.hears(of.far, of.far.room(0, 0))
    pour(of, Poured(96, 3, 4))
    assert of.near.has_work


def test_bytes_are_credit_too_but_one_message_may_be_larger() -> None:
    of = pair(times=SMALL).opened()
    ship(of, 0, 1, 1000)
    of.turn()
    assert of.of(Read)[-1] == Read(0, 3, 24)
    of.hears(of.near, of.near.read(0, Batch(1, 2, 1, bytes(512)), 0))
    assert not of.near.has_work
    assert of.endings() == ([], [])


@pytest.mark.parametrize("frame", [
    Records(0, 0, 5, 5, False, bytes(160)), Records(0, 0, 2, 2, False, bytes(1032)),
    Part(0, 0, 0, 1 << 30, False, bytes(8)),
])  # fmt: skip
def test_who_sends_more_than_it_may_loses_its_link(frame: Frame) -> None:
    of = pair(times=SMALL).opened()
    assert reason(says(of, frame, far=False)) is Reason.CREDIT


def test_a_window_of_0_gives_one_message_at_a_time_on_request() -> None:
    of = pair(times=LinkTimes(window_size=0)).opened()
    assert not of.near.has_work
    of.hears(of.far, of.far.want(0, 2, 0))
    ship(of, 0, 1)
    assert not of.near.has_work, "the first is not appended yet"
    pour(of, Poured(32, 1, 1))
    ship(of, 1, 1)
    pour(of, Poured(32, 1, 2))
    assert not of.near.has_work
    assert of.endings() == ([], [])


def test_without_a_window_memory_is_the_limit() -> None:
    times = LinkTimes(window_size=NO_LIMIT, window_messages=NO_LIMIT, memory=4096)
    of = pair(times=times).opened()
    ship(of, 0, 1, 4096)
    assert not of.near.has_work
    pour(of, Poured(4096, 1, 1))
    assert of.near.has_work


def test_a_full_target_does_not_slow_another() -> None:
    of = pair(times=SMALL)
    of.near.open(replace(OUTLET, target=1), 0)
    of.opened()
    of.hears(of.far, of.far.opened(1, 0, 0, 1 << 20, 0))
    of.turn()
    for target in (0, 1):
        of.hears(of.near, of.near.read(target, Batch(0, 4, 4, bytes(128)), 0))
    pour(of, Poured(0, 0, 0, is_full=True))
    for at in range(4, 40, 4):
        of.hears(of.far, of.far.poured(1, Poured(128, 4, at), 0))
        of.turn()
        of.hears(of.near, of.near.read(1, Batch(at, at + 4, 4, bytes(128)), 0))
    assert len([each for each in of.sent(Records) if each.target == 1]) == 10


def test_telling_credit_twice_changes_nothing() -> None:
    of = pair(times=SMALL).opened()
    for _ in range(3):
        says(of, Credit(0, 4, 1024))
    of.turn()
    assert of.of(Read) == [Read(0, 4, 1024)]


# --- confirms -----------------------------------------------------------------------------------


def test_a_message_is_released_when_it_is_confirmed_not_when_it_is_appended() -> None:
    of = pair().opened()
    ship(of, 0, 4)
    pour(of, Poured(128, 4, 4))
    assert not of.of(Release)
    of.hears(of.far, of.far.confirmed(0, 3, 0))
    of.settle()
    of.hears(of.far, of.far.confirmed(0, 4, 0))
    of.settle()
    assert [each.end for each in of.of(Release)] == [3, 4]


def test_confirms_of_single_messages_are_told_together_and_soon() -> None:
    of = pair().opened()
    ship(of, 0, 40)
    for end in range(1, FEW):
        pour(of, Poured(32, 1, end))
        of.hears(of.far, of.far.confirmed(0, end, 0))
    assert not of.sent(Confirm, "far")
    assert of.far.deadline <= of.now + CONFIRM_SECONDS
    of.settle()
    assert [each.end for each in of.sent(Confirm, "far")] == [FEW - 1]
    pour(of, Poured(32 * (41 - FEW), 41 - FEW, 40))
    of.hears(of.far, of.far.confirmed(0, 40, 0))
    assert [each.end for each in of.sent(Confirm, "far")] == [FEW - 1, 40], "of many: at once"


@pytest.mark.parametrize("frame", [Confirm(0, 99, Level.DISK), Reject(0, 99, ""), Credit(7, 1, 1)])
def test_an_answer_to_what_was_never_sent_ends_the_link(frame: Frame) -> None:
    of = pair().opened()
    ship(of, 0, 4)
    assert reason(says(of, frame)) is Reason.UNEXPECTED


@pytest.mark.parametrize("frame", [
    Records(0, 3, 9, 1, False, bytes(32)), Records(9, 0, 1, 1, False, bytes(32)),
    Part(0, 9, 8, 80, False, bytes(8)), Resume(0, 0),
])  # fmt: skip
def test_what_comes_out_of_turn_ends_the_link(frame: Frame) -> None:
    of = pair().opened()
    ship(of, 0, 4)
    assert reason(says(of, frame, far=False)) is Reason.UNEXPECTED


@pytest.mark.parametrize("far", [True, False])
@pytest.mark.parametrize("by", [-1, 1])
def test_a_frame_that_is_missing_or_comes_twice_ends_the_link(far: bool, by: int) -> None:
    of = pair().opened()
    (of.far if far else of.near).sent += by
    done = says(of, Confirm(0, 0, Level.DISK) if far else Passed(0, 0), far=far)
    assert reason(done) is Reason.FRAMES_MISSING


# --- rejects ------------------------------------------------------------------------------------


def test_a_rejected_message_goes_back_with_its_reason_and_the_others_go_on() -> None:
    of = pair().opened()
    ship(of, 0, 4)
    pour(of, Poured(32, 1, 1, refused="not permitted", position=1, skip=32))
    assert of.of(SetAside) == [SetAside(0, 1, "not permitted")]
    assert len(of.of(Pour, "far")) == 1, "the target stands until the source has the message safe"
    of.hears(of.near, of.near.dealt(0, 1, 0))
    assert len(of.of(Pour, "far")[1].records) == 64
    pour(of, Poured(64, 2, 4))
    of.hears(of.far, of.far.confirmed(0, 4, 0))
    of.settle()
    assert of.of(Release)[-1].end == 4


def test_a_rejected_message_at_the_end_is_released_when_the_mark_behind_it_is_synced() -> None:
    of = pair().opened()
    ship(of, 0, 1)
    pour(of, Poured(0, 0, 0, refused="no", position=0, skip=32))
    of.hears(of.near, of.near.dealt(0, 0, 0))
    assert of.of(Skip, "far") == [Skip(0, 1)]
    of.settle()
    assert not of.of(Release), "a crash of the target would take the mark back"
    of.hears(of.far, of.far.confirmed(0, 1, of.now))
    of.settle()
    assert of.of(Release) == [Release(0, 1, Level.DISK)]


def test_a_message_too_large_for_the_target_never_travels() -> None:
    of = pair().opened(largest=64)
    ship(of, 0, 1, 128)
    (aside,) = of.of(SetAside)
    assert "too large" in aside.reason
    assert not of.near.has_work, "the mark of the target must not pass it before it is safe"
    of.hears(of.near, of.near.dealt(0, 0, 0))
    assert of.near.has_work
    of.hears(of.far, of.far.confirmed(0, 1, 0))
    of.settle()
    assert of.of(Release) == [Release(0, 1, Level.DISK)]
    assert not of.sent(Records)


def test_what_was_set_aside_before_the_link_is_up_is_not_waited_for() -> None:
    of = pair()
    of.near.open(replace(OUTLET, end=9, sent=9, aside=(3,)), 0)
    of.hears(of.near, of.near.dealt(0, 3, 0))
    of.connect()
    of.hears(of.far, of.far.opened(0, 0, 0, 1 << 20, 0))
    assert of.near.has_work


def test_what_a_former_connection_has_set_aside_is_waited_for() -> None:
    of = pair().opened(replace(OUTLET, end=9, sent=9, aside=(3,)))
    assert not of.near.has_work
    of.hears(of.near, of.near.dealt(0, 3, 0))
    assert of.near.has_work


# --- large messages -----------------------------------------------------------------------------


def test_a_large_message_travels_in_parts_and_is_poured_whole() -> None:
    times = LinkTimes(max_frame_size=1 << 16)
    of = pair(times=times).opened()
    large = bytes(range(256)) * 1000
    of.turn()
    of.hears(of.near, of.near.read(0, Batch(0, 1, 1, large), 0))
    while of.near.outflows[0].parts:
        assert not of.of(Pour, "far")
        of.turn()
    (asked,) = of.of(Pour, "far")
    assert bytes(asked.records) == large
    assert len(of.sent(Part)) == 5


def test_parts_of_one_target_do_not_hold_up_another() -> None:
    of = pair(times=LinkTimes(max_frame_size=1 << 16))
    of.near.open(replace(OUTLET, target=1), 0)
    of.opened()
    of.hears(of.far, of.far.opened(1, 0, 0, 1 << 20, 0))
    of.turn()
    of.hears(of.near, of.near.read(0, Batch(0, 1, 1, bytes(1 << 18)), 0))
    of.turn()
    of.hears(of.near, of.near.read(1, Batch(0, 1, 1, bytes(64)), 0))
    assert len(of.sent(Part)) == 1
    assert len(of.sent(Records)) == 1


def test_what_is_larger_than_this_end_puts_together_ends_the_link() -> None:
    of = pair(times=replace(TIMES, max_message_size=1000)).opened()
    assert reason(says(of, Part(0, 0, 0, 1008, False, bytes(8)), far=False)) is Reason.CREDIT


# --- a peer that never reads --------------------------------------------------------------------


def test_who_grants_and_never_reads_gets_a_bounded_number_of_bytes() -> None:
    wide = LinkTimes(window_size=NO_LIMIT, window_messages=NO_LIMIT, memory=1 << 40)
    of = pair(far_times=wide).opened()
    size, at = 1 << 20, 0
    while of.near.has_work and at < 2 * UNTOLD_MAX // size:
        ship(of, at, 1, size)
        at += 1
    assert at == UNTOLD_MAX // size
    says(of, Confirm(0, 1, Level.SHM))
    assert of.near.has_work, "a message was told, and there is room for another one"
    ship(of, at, 1, size)
    assert not of.near.has_work


def test_messages_that_are_passed_take_no_memory_while_the_target_is_full() -> None:
    """They need no credit."""
    of = pair().opened()
    ship(of, 0, 1)
    flow = of.far.inflows[0]
    for position in range(1, 1000):
        of.hears(of.far, says(of, Passed(0, position), far=False))
    assert len(flow.held) == 2
    pour(of, Poured(32, 1, 1, 1))
    assert of.of(Skip, "far")[-1] == Skip(0, 1000)
