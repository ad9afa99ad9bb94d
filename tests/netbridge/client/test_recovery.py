"""Links that break and brokers that die, under programs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from queue import SimpleQueue
from typing import Any

import pytest

import shmbroker
from shmbroker import (
    ConnectionClosed,
    DeliveryRevoked,
    InvalidArgument,
    TransactionRolledBack,
    Unconfirmed,
)
from shmbroker.netbridge.client import producing
from shmbroker.perf.machine.port import free_port
from tests.netbridge.client.conftest import calm
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}
PATIENCE = 60.0


def connected(to: Site, **options: str) -> tuple[Any, SimpleQueue[str]]:
    """A connection, and what its listener is told."""
    named = "&".join(f"{name.replace('_', '-')}={value}" for name, value in options.items())
    uri = f"failover:({calm(to)})?startup-max-reconnect-attempts=-1&{named}"
    broker: Any = shmbroker.connect(uri.rstrip("&"), **LOGIN)
    told: SimpleQueue[str] = SimpleQueue()
    broker.on_event(lambda event, _: told.put(event.value))
    return broker, told


def cut(broker: Any) -> None:
    """The connection breaks, for both ends."""
    session = broker._session
    session._thread.ask(session.link.disconnect)


def taken(queue: Any, count: int, **options: int) -> Iterator[bytes]:
    """So many, by a loop that waits for them."""
    for message in islice(queue.consume(timeout=PATIENCE, **options), count):
        yield message.body


def test_a_cut_goes_unnoticed_but_for_the_listener(served: Site) -> None:
    broker, told = connected(served)
    with broker:
        queue = broker.declare_queue("q")
        queue.publish(b"1")
        message = queue.get(timeout=60)
        cut(broker)
        queue.publish(b"2")
        assert told.get(timeout=PATIENCE) == "failure-detected"
        assert told.get(timeout=PATIENCE) == "reattached"
        message.ack()
        assert queue.receive(timeout=60) == b"2"
        assert queue.statistics().depth == 0


def test_a_close_in_good_order_is_one_line_at_the_broker(served: Site) -> None:
    with connected(served)[0] as broker:
        broker.declare_queue("q").publish(b"1")
    said = [served.said.get(timeout=PATIENCE) for _ in range(2)]
    assert [each["state"] for each in said] == ["up", "stopped"]
    assert served.said.empty()
    assert {each["level"] for each in said} == {"info"}


def test_a_loop_goes_on_behind_a_cut(served: Site) -> None:
    broker, _ = connected(served)
    with broker:
        queue = broker.declare_queue("q")
        queue.publish_many([b"%d" % number for number in range(100)])
        got = []
        for body in taken(queue, 100, prefetch=10):
            got.append(body)
            if len(got) in (5, 50, 51):
                cut(broker)
        assert got == [b"%d" % number for number in range(100)]


def test_a_broker_that_is_killed_and_comes_again_loses_nothing(mortal: Any) -> None:
    broker, told = connected(mortal)
    with broker:
        queue = broker.declare_queue("q", slots=4096)
        queue.publish(b"first")
        held = queue.get(timeout=60)
        half = threading.Event()

        def publish() -> None:
            for number in range(200):
                queue.publish(b"%d" % number)
                if number == 50:
                    half.set()

        publishing = threading.Thread(target=publish)
        publishing.start()
        assert half.wait(PATIENCE)
        mortal.process.kill()
        mortal.begin()
        publishing.join(60)
        assert told.get(timeout=PATIENCE) == "failure-detected"
        assert told.get(timeout=PATIENCE) == "failover-completed"
        with pytest.raises(DeliveryRevoked):
            held.ack()
        got = list(taken(queue, 201, prefetch=50))
        assert got == [b"first", *(b"%d" % number for number in range(200))]


def test_a_transaction_of_a_session_that_is_gone_was_rolled_back(mortal: Any) -> None:
    broker, told = connected(mortal)
    with broker:
        queue = broker.declare_queue("q")
        transaction = broker.transaction()
        transaction.publish(queue, b"x")
        mortal.process.kill()
        mortal.begin()
        while told.get(timeout=PATIENCE) != "failover-completed":
            pass
        with pytest.raises(TransactionRolledBack):
            transaction.commit(timeout=60)
        assert queue.statistics().depth == 0
        queue.publish(b"the session stays usable")


def test_what_such_a_transaction_has_taken_in_the_next_session_comes_again(mortal: Any) -> None:
    broker, told = connected(mortal)
    with broker:
        queue, answers = broker.declare_queue("q"), broker.declare_queue("answers")
        queue.publish(b"taken")
        with pytest.raises(TransactionRolledBack), broker.transaction() as transaction:
            transaction.publish(answers, b"of the first session")
            mortal.process.kill()
            mortal.begin()
            while told.get(timeout=PATIENCE) != "failover-completed":
                pass
            message = transaction.queue(queue).get(timeout=PATIENCE)
            message.ack()
        assert not message.is_in_hand
        again = queue.get(timeout=PATIENCE)
        assert (again.body, again.deliveries) == (b"taken", 1)
        again.ack()
        assert (queue.statistics().taken, answers.statistics().depth) == (0, 0)


def test_after_the_deadline_every_call_ends(mortal: Any) -> None:
    broker, told = connected(mortal, reconnect_deadline="3s")
    with broker:
        queue, exchange = broker.declare_queue("q"), broker.declare_exchange("e", "fanout")
        queue.publish(b"1")
        mortal.process.kill()
        with pytest.raises((ConnectionClosed, Unconfirmed)):
            queue.publish(b"2")
        assert told.get(timeout=PATIENCE) == "failure-detected"
        assert told.get(timeout=PATIENCE) == "failover-failed"
        with pytest.raises(ConnectionClosed):
            queue.publish(b"3")
        with pytest.raises(ConnectionClosed, match="it was not done"):
            exchange.publish(b"4")
        assert broker.is_closed


def test_a_program_that_decides_itself_is_told_and_retries(mortal: Any) -> None:
    broker, told = connected(mortal, failover_mode="application")
    with broker:
        queue = broker.declare_queue("q", slots=8)
        for number in range(8):
            queue.publish(b"%d" % number)
        caught: list[Unconfirmed] = []

        def publish() -> None:
            with pytest.raises(Unconfirmed) as error:
                queue.publish(b"in doubt")  # it waits for room
            caught.append(error.value)

        waiting = threading.Thread(target=publish)
        waiting.start()
        while not broker._session._client.calls.sent:
            pass
        mortal.process.kill()
        waiting.join(PATIENCE)
        assert told.get(timeout=PATIENCE) == "lost"
        mortal.begin()
        broker.reconnect()
        assert queue.receive(timeout=60) == b"0"
        broker.retry(caught[0].token)
        assert list(taken(queue, 8)) == [*(b"%d" % number for number in range(1, 8)), b"in doubt"]


@pytest.mark.parametrize("asks", ["retry", "confirm"])
def test_one_token_names_all_pieces_that_are_unknown(
    mortal: Any, monkeypatch: pytest.MonkeyPatch, asks: str
) -> None:
    monkeypatch.setattr(producing, "PIECE_BYTES", 0)  # a piece has one message
    broker, told = connected(mortal, failover_mode="application")
    with broker:
        queue = broker.declare_queue("q", slots=8)
        queue.publish_many([b"earlier"] * 7)
        caught: list[Unconfirmed] = []

        def publish() -> None:
            with pytest.raises(Unconfirmed) as error:
                queue.publish_many([b"%d" % number for number in range(4)])
            caught.append(error.value)

        waiting = threading.Thread(target=publish)
        waiting.start()
        client = broker._session._client
        while len(queue) < 8 or len(client.calls.sent) < 3:  # the others wait for room
            pass
        mortal.process.kill()
        waiting.join(PATIENCE)
        assert told.get(timeout=PATIENCE) == "lost"
        (error,) = caught
        assert error.published == 1
        with pytest.raises(Unconfirmed) as nobody_answers:
            broker.retry(error.token)
        assert nobody_answers.value.token == error.token
        assert nobody_answers.value.token.behind == error.token.behind
        mortal.begin()
        broker.reconnect()
        assert queue.receive_many(8, timeout=60) == [*[b"earlier"] * 7, b"0"]
        broker.retry(error.token) if asks == "retry" else error.confirm()
        assert queue.receive_many(8, timeout=60) == [b"1", b"2", b"3"]
        assert not client.doubt.is_open


def test_another_session_at_another_member_retries_what_was_unknown(mortal: Any) -> None:
    """`reconnect(uri)`: the same program, and its tokens stay valid."""
    broker, _ = connected(mortal, failover_mode="application")
    with broker:
        queue = broker.declare_queue("q")
        queue.publish(b"1")
        former = broker.uri
        mortal.process.kill()
        mortal.port = free_port()
        with pytest.raises((ConnectionClosed, Unconfirmed)):
            for _ in range(100):
                queue.publish(b"2", timeout=PATIENCE)
        mortal.begin()
        with pytest.raises(ConnectionClosed, match="cannot be reached"):
            broker.reconnect(former)
        with pytest.raises(InvalidArgument, match="stands for 2 links"):
            broker.reconnect("static:(tcp://a,tcp://b)")
        there = f"tcp://127.0.0.1:{mortal.port}"
        broker.reconnect(f"failover:({there})?startup-max-reconnect-attempts=-1")
        assert broker.uri.endswith(str(mortal.port))
        queue.publish(b"3")


def test_all_that_reconnect_at_the_same_time_are_answered(mortal: Any) -> None:
    broker, told = connected(mortal, failover_mode="application")
    with broker:
        mortal.process.kill()
        assert told.get(timeout=PATIENCE) == "lost"
        begun, ended = threading.Semaphore(0), threading.Semaphore(0)
        session = broker._session
        reconnects = session._reconnect

        def counted(*told: Any) -> None:
            reconnects(*told)
            begun.release()

        def reconnect() -> None:
            broker.reconnect()
            ended.release()

        session._reconnect = counted
        for _ in range(3):
            threading.Thread(target=reconnect, daemon=True).start()
        for _ in range(3):
            assert begun.acquire(timeout=PATIENCE)
        mortal.begin()
        for _ in range(3):
            assert ended.acquire(timeout=PATIENCE)


def test_a_listener_that_reconnects_only_begins(mortal: Any) -> None:
    """It is called in the network thread, which it would wait for."""
    broker, _ = connected(mortal, failover_mode="application")
    begun = threading.Event()

    def listen(event: Any, _: str) -> None:
        if event.value == "lost":
            broker.reconnect(f"failover:({former})?startup-max-reconnect-attempts=-1")
            begun.set()

    with broker:
        former = broker.uri
        broker.on_event(listen)
        queue = broker.declare_queue("q")
        mortal.process.kill()
        assert begun.wait(PATIENCE)
        mortal.begin()
        queue.publish(b"goes on")
