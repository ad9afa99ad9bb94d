"""A link to a broker that is passive waits for what that says, and does not ask over and over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.netbridge.carrier import link as links
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.wire.frame import Frame
from shmbroker.netbridge.wire.words import Standing
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.support.link import PATIENCE, SITE, SOURCE, TARGET
from tests.support.until import until

ATTEMPTS = 50
BACKUP = Identity(b"f" * 16, os.urandom(16), "far", Standing.BACKUP, 0)
LIVE = Identity(b"f" * 16, os.urandom(16), "far", Standing.LIVE, 0)
NEAR = Identity(b"n" * 16, os.urandom(16), "near", Standing.LIVE, 0)
PATIENT = LinkTimes(heartbeat_misses=300, connect_timeout=PATIENCE, handshake_timeout=PATIENCE)
"""A connection that waits is not lost because this machine is slow."""


class Counted(Listener):
    connections = 0

    def _came(self, peer: bytes, part: Any) -> None:
        self.connections += 1
        super()._came(peer, part)


class Served:
    """Who has a link that is dialled."""

    def came(self, end: End) -> None: ...

    def heard(self, end: End, frame: Frame) -> None: ...

    def gone(self, end: End) -> None: ...


@contextmanager
def linked(
    make: Callable[..., Link] = Link, live: str = ""
) -> Iterator[tuple[Counted, Link]]:
    """To a broker that is passive, and says that `live` is not."""
    address = f"tcp://127.0.0.1:{free_port()}"
    uri = f"failover:({address})?initial-reconnect-delay=1ms&max-reconnect-delay=10ms"
    with ExitStack() as opened:
        near, far = (opened.enter_context(NetworkThread()) for _ in range(2))
        passive = opened.enter_context(
            Counted(
                far, address, SITE.keys[0], Credentials([SITE]), BACKUP,
                tell=lambda _: None, is_active=False, times=PATIENT,
            )
        )  # fmt: skip
        passive.live = live
        yield passive, opened.enter_context(
            make(near, "link", uri, SITE, NEAR, (), times=PATIENT)
        )


def test_who_is_passive_is_asked_once_in_a_while_and_says_when_it_serves() -> None:
    with linked() as (passive, link):
        until(lambda: link.attempts >= ATTEMPTS)
        assert passive.connections <= ATTEMPTS / 5, "one in a second, however slow this machine is"
        passive.serve(BACKUP, None)
        until(lambda: link.state == "up")


@pytest.mark.parametrize("make", [Link, partial(Dialled, Served())], ids=["link", "dialled"])
def test_who_was_passive_serves_on_the_connection_that_is_there(
    make: Callable[..., Link], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "WAITS_SECONDS", PATIENCE)
    with linked(make) as (passive, link):
        until(lambda: link.attempts >= 2)
        passive.serve(BACKUP, None)
        until(lambda: link.state == "up")
        assert passive.connections == 1


@pytest.mark.parametrize("make", [Link, partial(Dialled, Served())], ids=["link", "dialled"])
@pytest.mark.parametrize("told", ["no address", "tcp://127.0.0.1:1?of-a-later-version=1"])
def test_an_address_that_another_broker_tells_stops_no_link(
    make: Callable[..., Link], told: str
) -> None:
    """It is none, or one of a later version."""
    with linked(make, live=told) as (passive, link):
        until(lambda: link.attempts >= 2)
        passive.serve(BACKUP, None)
        until(lambda: link.state == "up")
        losses = link.losses

        def moved() -> None:
            for end in list(passive._ids):
                end.does(end.machine.move(told, time.monotonic()))

        passive._thread.ask(moved)
        until(lambda: link.losses > losses)
        until(lambda: link.state == "up")


class Shipping:
    """A queue that is shipped to a pair: the first member is passive, and the second one is live,
    of the same vhost."""

    def __init__(self, opened: ExitStack, *, knows_live: bool = True) -> None:
        self.near, self.far = (
            opened.enter_context(shmbroker.connect(f"shm://{vhost}", create=True, name=name))
            for vhost, name in (
                (opened.enter_context(vhost_for_a_while()), name) for name in ("near", "far")
            )
        )
        here, there = (
            opened.enter_context(NetworkThread(broker)) for broker in (self.near, self.far)
        )
        self.passive, self.live = (
            opened.enter_context(
                Counted(
                    there, "tcp://127.0.0.1:*", SITE.keys[0], Credentials([SITE]), ours,
                    tell=lambda _: None, is_active=ours is LIVE, times=PATIENT,
                )
            )
            for ours in (BACKUP, LIVE)
        )  # fmt: skip
        members = self.passive.address + f",{self.live.address}" * knows_live
        pace = "randomize=false&initial-reconnect-delay=1ms&max-reconnect-delay=10ms"
        self.link = opened.enter_context(
            Link(
                here, "link", f"failover:({members})?{pace}", SITE, NEAR, self.ships(self.near),
                times=PATIENT,
            )
        )  # fmt: skip

    def ships(self, near: Broker) -> tuple[Shipped, ...]:
        near.declare_queue(SOURCE)
        self.far.declare_queue(TARGET)
        return (Shipped(SOURCE, TARGET),)

    def send(self, body: bytes) -> None:
        self.near.queue(SOURCE).publish(body)

    def came(self) -> bytes:
        with self.far.queue(TARGET).get(timeout=PATIENCE) as message:
            return message.body

    def is_empty(self) -> bool:
        return not self.near.queue(SOURCE).statistics().depth


def test_a_queue_is_shipped_to_the_live_while_the_first_member_is_passive() -> None:
    with ExitStack() as opened:
        pair = Shipping(opened)
        pair.send(b"a")
        assert pair.came() == b"a"
        assert pair.passive.connections, "it was asked first"


def test_what_the_former_live_has_is_not_shipped_to_who_was_passive_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "WAITS_SECONDS", PATIENCE)
    with ExitStack() as opened:
        pair = Shipping(opened)
        pair.send(b"a")
        assert pair.came() == b"a"
        until(pair.is_empty)
        pair.live.close()
        until(lambda: pair.link.losses > 0)  # one that is up needs no other connection
        pair.send(b"b")
        pair.passive.serve(LIVE, None)
        assert pair.came() == b"b"
        until(pair.is_empty)
        assert pair.passive.connections == 1, "over the connection that is there"
        assert pair.far.queue(TARGET).statistics().published == 2


def test_a_queue_that_is_gone_when_the_passive_one_serves_ends_the_attempt_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "WAITS_SECONDS", PATIENCE)
    with ExitStack() as opened:
        pair = Shipping(opened, knows_live=False)
        until(lambda: pair.link.state == "peer-passive")
        pair.near.queue(SOURCE).delete()
        pair.passive.serve(LIVE, None)
        until(lambda: SOURCE in pair.link.why)
        pair.near.declare_queue(SOURCE)
        pair.send(b"a")
        assert pair.came() == b"a"
