"""A program opens a session with a real broker: it publishes, takes, settles, and leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shmbroker import Empty, NotFound
from shmbroker.core.codes import OK, REVOKED
from shmbroker.ipc.paging.pager import Pager
from shmbroker.netbridge.remote.call import Call
from shmbroker.netbridge.remote.outcome import End, Outcome, Token, Why
from shmbroker.netbridge.wire.words import Level, Verb
from tests.support.program import PATIENCE, Program, ok, publish
from tests.support.serving import Site
from tests.support.until import until


def contents(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_what_is_published_is_in_the_queue_and_its_position_is_told(at: Site) -> None:
    queue = at.broker.declare_queue("q")
    program = at.program()
    producer = program.producer(queue="q")
    first = program.publish(producer, b"a")
    last = program.publish(producer, b"b", b"c")
    assert (first.value, last.value, last.level) == (0, 2, Level.SHM)
    assert queue.receive_many() == [b"a", b"b", b"c"]
    program.close()
    until(lambda: not queue.origins())  # it is answered before that is done


def test_a_get_takes_what_is_there_and_an_ack_ends_it(at: Site) -> None:
    queue = at.broker.declare_queue("q")
    queue.publish_many(contents(5))
    program = at.program()
    first, got = program.get("q", 3)
    assert got == contents(3)
    assert queue.statistics().taken == 3
    assert program.settle(Verb.ACK, first, 2).code == OK
    assert program.settle(Verb.GIVE_BACK, first + 2).code == OK
    assert program.settle(Verb.ACK, first + 2).code == REVOKED
    assert queue.receive_many() == [b"2", b"3", b"4"]


def test_a_get_waits_for_a_message(at: Site) -> None:
    queue = at.broker.declare_queue("q")
    program = at.program()
    with pytest.raises(Empty):
        program.get("q")
    with pytest.raises(Empty):
        program.get("q", wait=0.05)
    call = program.begin(Verb.GET, wait_ms=-1, body=b"\x81\xa5queue\xa1q")
    program.turn(0.05)
    queue.publish(b"late")
    assert program.outcome(call).code == 1


def test_a_consumer_gets_what_its_prefetch_allows(at: Site) -> None:
    queue = at.broker.declare_queue("q")
    program = at.program()
    program.consumer(4, queue="q")
    queue.publish_many(contents(10))
    assert program.handed(4) == contents(4)
    program.settle(Verb.ACK, 0, 4)
    assert program.handed(8) == contents(8)
    program.settle(Verb.ACK, 4, 4)
    assert program.handed(10) == contents(10)
    program.close()
    assert [queue.receive(timeout=PATIENCE) for _ in range(2)] == contents(10)[8:]


def lost(program: Program, producer: int, body: bytes) -> Outcome:
    """A publish that has its number and never comes."""
    call = Call(program.client.next_id(), Verb.PUBLISH, **publish(producer, body))
    producing = program.client.producers[producer]
    producing.number(call)
    token = Token(producer, call.value, call.count)
    producing.unknown[token] = call
    return Outcome(End.UNKNOWN, Why.LATE, token=token)


@pytest.mark.parametrize("settings", [{}, {"slots": 4, "when_full": "page"}], ids=["ring", "page"])
def test_what_never_came_is_there_once_after_a_retry(
    at: Site, tmp_path: Path, settings: dict[str, Any]
) -> None:
    program = at.program()
    with Pager(at.broker, tmp_path / "pages"):
        queue = at.broker.declare_queue("q", **settings)
        producer = program.producer(queue="q")
        program.publish(producer, *contents(4))
        fifth = lost(program, producer, b"five")
        program.publish(producer, *contents(4))
        at.begin_again()
        assert ok(program.retry(fifth)).value >= 0
        program.publish(producer, b"last")
        got: list[bytes] = []
        while b"last" not in got:
            got += queue.receive_many(100, timeout=60)
    assert got == [*contents(4), *contents(4), b"five", b"last"]


def test_what_never_came_goes_through_an_exchange_once_after_a_retry(
    at: Site, tmp_path: Path
) -> None:
    with Pager(at.broker, tmp_path / "pages"):
        settings: list[dict[str, Any]] = [{}, {"slots": 4, "when_full": "page"}]
        queues = [at.broker.declare_queue(f"q{each}", **settings[each]) for each in range(2)]
        at.broker.declare_exchange("t", "topic")
        for queue in queues:
            at.broker.bind("t", queue.name, "#")
        program = at.program()
        producer = program.producer(exchange="t")
        program.publish(producer, *contents(4))
        fifth = lost(program, producer, b"five")
        program.publish(producer, *contents(4))
        at.begin_again()
        assert ok(program.retry(fifth)).value == 2
        program.publish(producer, b"last")
        for queue in queues:
            got: list[bytes] = []
            while b"last" not in got:
                got += queue.receive_many(100, timeout=60)
            assert got == [*contents(4), *contents(4), b"five", b"last"]


def test_an_error_has_the_name_that_it_has_at_the_broker(at: Site) -> None:
    program = at.program()
    with pytest.raises(NotFound, match="queue 'none'"):
        program.producer(queue="none")
    with pytest.raises(NotFound, match="queue 'none'"):
        program.consumer(1, queue="none")
    with pytest.raises(NotFound, match="queue 'none'"):
        program.get("none")


def test_a_publish_to_a_full_queue_waits_for_room_and_keeps_its_order(at: Site) -> None:
    queue = at.broker.declare_queue("q", slots=64)
    program = at.program()
    producer = program.producer(queue="q")
    calls = [program.begin(Verb.PUBLISH, **publish(producer, *contents(50))) for _ in range(4)]
    program.outcome(calls[0])
    got: list[bytes] = []
    while len(got) < 200:
        got += queue.receive_many(7, timeout=60)
        program.turn(0)
    assert got == contents(50) * 4
    for call in calls:
        assert program.outcome(call).code == OK
