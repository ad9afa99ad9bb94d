"""What a link makes of connections that end before keys were exchanged: a proxy whose broker is
away, a far end that stands still or dies, and another password."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from shmbroker.netbridge.carrier.greeting import greets
from shmbroker.netbridge.carrier.link import AWAY, ENDED_EARLY, Link
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.wire.words import Standing
from shmbroker.perf.machine.port import free_port
from tests.support.link import PATIENCE, SITE, credential_of
from tests.support.until import until

ATTEMPTS = 12
"""More than are taken for a wrong password."""
NEAR = Identity(b"n" * 16, os.urandom(16), "near", Standing.LIVE, 0)
FAR = Identity(b"f" * 16, os.urandom(16), "far", Standing.LIVE, 0)
SOON = LinkTimes(connect_timeout=0.05)
SIGNATURE = b"\xff\0\0\0\0\0\0\0\1\x7f"


@contextmanager
def front(port: int, *words: bytes, stays: bool = False) -> Iterator[None]:
    """Accepts connections, says that, and ends them: or keeps them, and says nothing more."""
    came: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                there, _ = listening.accept()
            except OSError:
                return
            came.append(there)
            with suppress(OSError):  # it has gone
                there.sendall(b"".join(words))
            if not stays:
                there.close()

    listening = socket.create_server(("127.0.0.1", port))
    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        listening.close()
        for each in came:
            each.close()


@contextmanager
def broker(port: int, credential: Credential = SITE) -> Iterator[None]:
    with (
        NetworkThread() as thread,
        Listener(
            thread, f"tcp://127.0.0.1:{port}", credential.keys[0], Credentials([credential]), FAR
        ),
    ):
        yield


class Linked:
    """A link that tries a refused member again after an hour."""

    def __init__(self, opened: ExitStack, port: int, times: LinkTimes | None = None) -> None:
        self.states: list[str] = []
        uri = f"failover:(tcp://127.0.0.1:{port})?initial-reconnect-delay=1ms"
        self.link = opened.enter_context(
            Link(
                opened.enter_context(NetworkThread()), "link", f"{uri}&max-reconnect-delay=20ms",
                SITE, NEAR, (), times=times, refused_retry=3600,
                tell=lambda line: self.states.append(line["state"]),
            )
        )  # fmt: skip

    def tries(self, more: int = ATTEMPTS) -> None:
        wanted = self.link.attempts + more
        until(lambda: self.link.attempts >= wanted)

    def is_up(self) -> None:
        until(lambda: self.link.state == "up")
        assert "refused" not in self.states


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def test_a_proxy_whose_broker_is_away_is_no_wrong_password(opened: ExitStack) -> None:
    port = free_port()
    with front(port):
        link = Linked(opened, port)
        link.tries()
        until(lambda: link.link.why == AWAY)
    opened.enter_context(broker(port))
    link.is_up()


@pytest.mark.parametrize("words", [(), (SIGNATURE,)], ids=["silent", "greets"])
def test_who_stands_still_or_loses_packets_is_no_wrong_password(
    opened: ExitStack, words: tuple[bytes, ...]
) -> None:
    port = free_port()
    with front(port, *words, stays=True):
        link = Linked(opened, port, SOON)
        link.tries()
        until(lambda: link.link.why.startswith("connect-timeout"))
    assert "refused" not in link.states


def test_a_member_that_was_met_is_tried_on(opened: ExitStack) -> None:
    port = free_port()
    with broker(port):
        link = Linked(opened, port)
        link.is_up()
    with front(port, SIGNATURE):  # it dies over and over
        link.tries()
        until(lambda: link.link.why == ENDED_EARLY)
    with broker(port):
        link.is_up()
    with broker(port, credential_of("another horse battery")):
        until(lambda: link.link.why == ENDED_EARLY)
        assert "password" in link.link.why


def test_another_password_is_refused_where_nobody_was_met(opened: ExitStack) -> None:
    port = free_port()
    opened.enter_context(broker(port, credential_of("another horse battery")))
    link = Linked(opened, port)
    until(lambda: link.states == ["refused"])
    assert "credentials" in link.link.why


def test_who_speaks_zeromq_greets_first() -> None:
    port = free_port()
    for words, is_one in (((SIGNATURE,), True), ((b"HTTP/1.1 400",), False), ((), False)):
        with front(port, *words):
            assert greets("127.0.0.1", port, PATIENCE) is is_one
    assert not greets("127.0.0.1", port, PATIENCE), "nobody listens"


def test_a_connection_has_the_times_that_its_member_says() -> None:
    with ExitStack() as opened:
        port = opened.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        uri = (
            f"failover:(tcp://127.0.0.1:{port}?heartbeat-interval=7s&handshake-timeout=50s)"
            "?nested.window-messages=5&nested.check-period=3s"
        )
        thread = opened.enter_context(NetworkThread())
        link = opened.enter_context(Link(thread, "link", uri, SITE, NEAR, ()))
        connection = thread.ask(lambda: link._connection)
        assert connection is not None
        times = connection.end.machine.times
        assert (times.heartbeat_interval, times.handshake_timeout) == (7.0, 50.0)
        assert times.window_messages == 5
        assert link.times == LinkTimes()
