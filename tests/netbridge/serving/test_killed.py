"""The broker is killed, or the link is cut, while a program works: each call ends as it says."""

from __future__ import annotations

import os
import struct
import time
from collections import Counter
from pathlib import Path

import msgpack
import pytest

from shmbroker import Queue, TransactionEnded
from shmbroker.core.codes import OK
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.remote.options import Mode
from shmbroker.netbridge.remote.outcome import End, Outcome
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.serving.commit import MARKS, mark_of, marks
from shmbroker.netbridge.wire.words import Demand, Level, Verb
from tests.support.host import journaling
from tests.support.program import PATIENCE, Program, ok, publish
from tests.support.records import stream
from tests.support.serving import Site
from tests.support.until import until

NUMBER = struct.Struct("<q")
KILLS = 3


def taken(queue: Queue) -> list[int]:
    return [NUMBER.unpack(body)[0] for body in drained(queue)]


def drained(queue: Queue) -> list[bytes]:
    got: list[bytes] = []
    while len(queue):
        got += queue.receive_many(timeout=60)
    return got


class Load:
    """Publishes messages that are numbered, two in a command, and remembers their calls."""

    def __init__(self, program: Program, producer: int) -> None:
        self.program, self.producer = program, producer
        self.calls: dict[int, tuple[int, int]] = {}
        self.next = 0

    def go_on(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.publish()

    def publish(self) -> None:
        both = self.next, self.next + 1
        fields = publish(self.producer, *map(NUMBER.pack, both))
        self.calls[self.program.begin(Verb.PUBLISH, **fields)] = both
        self.next += 2
        self.program.turn(0)

    def outcomes(self) -> dict[tuple[int, int], Outcome]:
        return {both: self.program.outcome(call) for call, both in self.calls.items()}


def test_publishes_of_a_program_that_fails_over_are_there_once_and_in_order(at: Site) -> None:
    queue = at.broker.declare_queue("q", slots=1 << 16)
    program = at.program()
    load = Load(program, program.producer(queue="q"))
    for kills in range(1, KILLS + 1):
        load.go_on(0.1)
        at.begin_again()
        load.go_on(0.05)
        program.until(lambda: program.events.count("failover-completed") == kills)  # noqa: B023
    assert {each.end for each in load.outcomes().values()} == {End.OK}
    assert taken(queue) == list(range(load.next))


def test_calls_of_a_program_that_decides_itself_end_as_they_say(at: Site) -> None:
    queue = at.broker.declare_queue("q", slots=1 << 16)
    program = at.program(failover_mode=Mode.APPLICATION)
    load = Load(program, program.producer(queue="q"))
    for _ in range(KILLS):
        load.go_on(0.1)
        assert at.process is not None
        at.process.stop()
        os.waitid(os.P_PID, at.process.pid, os.WSTOPPED)  # until then it may answer
        load.publish()  # it has no answer
        at.begin_again()
        program.until(lambda: program.client.phase is Phase.LOST)
        program.reconnect()
    ended = load.outcomes()
    unknown = {both: each for both, each in ended.items() if each.end is End.UNKNOWN}
    for each in unknown.values():
        assert program.retry(each).end is End.OK
    there = Counter(taken(queue))
    for both, outcome in ended.items():
        wanted = 0 if outcome.end is End.FAILED else 1
        assert [there[each] for each in both] == [wanted] * 2, outcome
    assert sum(each.end is not End.OK for each in ended.values()) >= KILLS


def test_what_was_acknowledged_does_not_come_again_and_the_rest_does(at: Site) -> None:
    queue = at.broker.declare_queue("q", slots=1024)
    queue.publish_many(list(map(NUMBER.pack, range(100))))
    program = at.program()
    program.consumer(10, queue="q")
    program.handed(10)
    place = {"queue": "q", "positions": [0, 1, 2, 3]}
    assert program.settle(Verb.ACK, 0, 4, **place).code == OK
    generation = program.client.generation
    at.begin_again()
    program.until(lambda: program.client.generation > generation)
    program.until(lambda: sum(hand.messages for hand in program.hands) >= 20)
    again = [hand for hand in program.hands if hand.generation > generation]
    first = min(hand.first for hand in again)
    assert program.settle(Verb.ACK, first, 10, queue="q", positions=[]).code == OK
    program.close()
    until(lambda: not queue.statistics().taken)  # they come back behind the answer to its end
    assert taken(queue) == list(range(14, 100))


def test_a_commit_that_is_asked_for_again_is_told_by_its_mark(at: Site) -> None:
    queue = at.broker.declare_queue("q")
    program = at.program()
    operations = msgpack.packb([["queue", "q", stream([b"once"])]])
    program.client.work(1)
    assert program.call(Verb.COMMIT, value=1, body=operations).code == OK
    at.begin_again()
    program.until(lambda: "failover-completed" in program.events)
    for number, error in ((1, None), (2, TransactionEnded)):
        program.client.work(number)
        call = {"value": number, "body": operations, "repeated": True}
        if error is None:
            ok(program.call(Verb.COMMIT, **call))
        else:
            with pytest.raises(error):
                ok(program.call(Verb.COMMIT, **call))
    assert drained(queue) == [b"once"]


@pytest.mark.parametrize("verb", [Verb.COMMIT, Verb.SCHEDULE])
def test_what_is_asked_for_again_is_unknown_where_the_marks_cannot_be_read(
    at: Site, verb: Verb
) -> None:
    """Its token finds the mark when they can."""
    at.broker.declare_queue("q")
    program = at.program()
    is_commit = verb is Verb.COMMIT
    operations = msgpack.packb([["queue", "q", stream([b"once"])]])
    body = operations if is_commit else asked(queue="q", body=b"once", after=100.0)
    program.client.work(1)
    done = ok(program.call(verb, value=1, body=body))
    mark = at.broker.queue(MARKS).value(key := mark_of(program.client.session, 1))
    assert mark is not None
    at.broker.delete_queue(MARKS, force=True)
    at.broker.declare_queue(MARKS)  # it is no queue for marks
    program.client.work(1)
    outcome = program.call(verb, value=1, body=body, repeated=True)
    assert outcome.end is End.UNKNOWN
    at.broker.delete_queue(MARKS, force=True)
    marks(at.broker).publish(mark.body, key=key, confirm="shm")
    assert program.retry(outcome).value == done.value
    queue = at.broker.queue("q")
    assert (len(queue), len(queue.scheduled())) == ((1, 0) if is_commit else (0, 1))


@pytest.mark.parametrize("to", ["queue", "exchange"])
def test_a_scheduled_message_is_there_once_after_a_failover(at: Site, to: str) -> None:
    """Its broker is killed after it was carried out, and before its program has the answer."""
    queue = at.broker.declare_queue("q")
    at.broker.declare_exchange("x", "fanout")
    at.broker.bind("x", "q", "")
    program = at.program()
    name = {"queue": "q", "exchange": "x"}[to]
    body = asked(**{to: name}, body=b"later", after=100.0)
    call = program.begin(Verb.SCHEDULE, value=1, body=body)
    late = time.monotonic() + PATIENCE
    while not queue.scheduled():
        assert time.monotonic() < late
    assert call not in program.outcomes
    program.cut()
    at.begin_again()
    program.lost()
    assert program.outcome(call).end is End.OK
    (there,) = queue.scheduled()
    assert program.outcome(call).value == (there.id if to == "queue" else 1)
    assert "failover-completed" in program.events
    again = program.call(Verb.SCHEDULE, value=2, body=body)
    assert again.value == (there.id + 1 if to == "queue" else 1)
    assert len(queue.scheduled()) == 2


def test_a_link_that_is_cut_is_made_again_and_nothing_is_lost(at: Site) -> None:
    queue = at.broker.declare_queue("q", slots=1 << 16)
    program = at.program()
    load = Load(program, program.producer(queue="q"))
    for cuts in range(1, KILLS + 1):
        load.go_on(0.05)
        program.lost()
        load.go_on(0.05)
        program.until(lambda: program.events.count("reattached") == cuts)  # noqa: B023
    assert {each.end for each in load.outcomes().values()} == {End.OK}
    assert taken(queue) == list(range(load.next))
    assert program.client.generation == 1


def test_a_confirm_waits_for_the_disk_and_says_what_it_has(at: Site, tmp_path: Path) -> None:
    queue = at.broker.declare_queue("q", slots=1024, durable=True)
    program = at.program()
    producer = program.producer(queue="q")

    def confirmed(demand: Demand, wait_ms: int = -1) -> int:
        fields = publish(producer, NUMBER.pack(0))
        return program.begin(Verb.PUBLISH, demand=demand, wait_ms=wait_ms, **fields)

    assert program.outcome(confirmed(Demand.SHM)).level is Level.SHM
    assert program.outcome(confirmed(Demand.DISK, 20)).end is End.UNKNOWN
    waiting = [confirmed(each) for each in (Demand.EFFECTIVE, Demand.DISK)]
    program.turn(0.05)
    assert not any(each in program.outcomes for each in waiting)
    with journaling(at.broker.vhost, tmp_path / "journal"):
        for each in waiting:
            assert program.outcome(each).level is Level.DISK
        replicated = program.outcome(confirmed(Demand.REPLICATED, 20))
        assert replicated.end is End.UNKNOWN
        assert len(queue) == 5
