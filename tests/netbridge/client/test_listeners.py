"""Listeners of a program that raise, and a network thread that ends by an error."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import shmbroker
from shmbroker import ConnectionClosed, InvalidArgument
from shmbroker.netbridge.client import member
from shmbroker.netbridge.plan.text import heard
from shmbroker.netbridge.remote.topology import Node
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}
PATIENCE = 60.0


@pytest.fixture
def broker(served: Site) -> Any:
    uri = f"failover:(tcp://127.0.0.1:{served.port})?startup-max-reconnect-attempts=-1"
    made: Any = shmbroker.connect(uri, **LOGIN)
    yield made
    made.close()


def fails(broker: Any) -> RuntimeError:
    """Its network thread, by this error."""
    error = RuntimeError("a fault")

    def step() -> None:
        raise error

    broker._session._thread.call(step)
    return error


def waiting(broker: Any) -> None:
    """Its consumer asks for a message, by the time this returns."""
    session, is_there = broker._session, threading.Event()
    while not is_there.is_set():
        session._thread.ask(lambda: is_there.set() if session.receivers else None)


def test_a_listener_that_raises_is_logged_and_the_connection_goes_on(
    broker: Any, caplog: pytest.LogCaptureFixture
) -> None:
    told = threading.Event()

    def raises(event: Any, _: str) -> None:
        raise ValueError(f"told of {event.value}")

    def listens(event: Any, _: str) -> None:
        if event.value == "reattached":
            told.set()

    broker.on_event(raises)
    broker.on_event(listens)
    queue = broker.declare_queue("q")
    with caplog.at_level(logging.ERROR, logger="shmbroker"):
        session = broker._session
        session._thread.ask(session.link.disconnect)
        assert told.wait(PATIENCE), "the listener behind it is told"
        queue.publish(b"goes on")
    assert queue.receive(timeout=PATIENCE) == b"goes on"
    assert "told of failure-detected" in caplog.text


def test_a_listener_that_would_wait_for_its_own_thread_is_told_so(broker: Any) -> None:
    told: list[str] = []
    is_over = threading.Event()
    queue = broker.declare_queue("q")

    def listens(event: Any, _: str) -> None:
        for verb in (queue.purge, broker.close):
            with pytest.raises(InvalidArgument) as refused:
                verb()
            told.append(str(refused.value))
        is_over.set()

    broker.on_event(listens)
    session = broker._session
    session._thread.ask(session.link.disconnect)
    assert is_over.wait(PATIENCE)
    assert "closing: a listener of on_event cannot wait" in told[1]
    assert len(told) >= 2
    queue.publish(b"goes on")
    assert queue.receive(timeout=PATIENCE) == b"goes on"


def test_what_a_listener_is_refused_is_not_done_later(broker: Any) -> None:
    """Not by the network thread either, in which the listener was called."""
    is_over = threading.Event()
    queue = broker.declare_queue("q")
    queue.publish(b"here")
    message = queue.get(timeout=PATIENCE)
    transaction = broker.transaction()
    transaction.publish(queue, b"committed once")
    transaction.ack(message)

    def listens(event: Any, _: str) -> None:
        if event.value != "reattached":
            return
        for verb in (queue.purge, partial(queue.publish, b"refused"), transaction.commit):
            with pytest.raises(InvalidArgument):
                verb()
        is_over.set()

    broker.on_event(listens)
    session = broker._session
    session._thread.ask(session.link.disconnect)
    assert is_over.wait(PATIENCE)
    transaction.commit()
    assert queue.receive(timeout=PATIENCE) == b"committed once"
    assert queue.statistics().published == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_whoever_waits_gets_the_error_by_which_the_thread_ends(broker: Any) -> None:
    queue = broker.declare_queue("q")
    with ThreadPoolExecutor() as others:
        consumes = others.submit(lambda: next(iter(queue.consume())))
        receives = others.submit(lambda: queue.receive(timeout=None))
        waiting(broker)
        error = fails(broker)
        for each in (consumes, receives):
            raised = each.exception(PATIENCE)
            assert isinstance(raised, ConnectionClosed | shmbroker.Unconfirmed)
            assert raised.__cause__ is error
    with pytest.raises(ConnectionClosed) as late:
        queue.publish(b"too late")
    assert late.value.__cause__ is error


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_between_a_call_and_its_end_leaves_nobody_waiting(broker: Any) -> None:
    """What the machine has let go of is not told again by it."""
    queue, session = broker.declare_queue("q"), broker._session

    def forgets() -> None:
        session._client.calls.withdraw()
        raise RuntimeError("a fault")

    with ThreadPoolExecutor() as others:
        receives = others.submit(lambda: queue.receive(timeout=None))
        waits = threading.Event()
        while not waits.is_set():
            session._thread.ask(lambda: waits.set() if session._pending else None)
        session._thread.call(forgets)
        assert isinstance(receives.exception(PATIENCE), shmbroker.Error)


def test_the_topology_is_told_while_the_network_thread_learns_of_a_node(
    broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = broker._session.link.topology.nodes
    nodes[b"a" * 16] = node = Node(b"a" * 16, 0, "a", "tcp://a")

    def learns(uri: str) -> Any:
        nodes[b"b" * 16] = node
        return heard(uri)

    monkeypatch.setattr(member, "heard", learns)
    assert len(broker.topology()) == 1
    assert len(nodes) == 2
