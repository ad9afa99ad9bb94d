"""A link to a broker that is passive waits for what that says, and does not ask over and over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest

from shmbroker.netbridge.carrier import link as links
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.wire.frame import Frame
from shmbroker.netbridge.wire.words import Standing
from shmbroker.perf.machine.port import free_port
from tests.support.link import PATIENCE, SITE

ATTEMPTS = 50
BACKUP = Identity(b"f" * 16, os.urandom(16), "far", Standing.BACKUP, 0)
NEAR = Identity(b"n" * 16, os.urandom(16), "near", Standing.LIVE, 0)


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
def linked(make: Callable[..., Link] = Link) -> Iterator[tuple[Counted, Link]]:
    """To a broker that is passive."""
    address = f"tcp://127.0.0.1:{free_port()}"
    uri = f"failover:({address})?initial-reconnect-delay=1ms&max-reconnect-delay=10ms"
    with ExitStack() as opened:
        near, far = (opened.enter_context(NetworkThread()) for _ in range(2))
        passive = opened.enter_context(
            Counted(
                far, address, SITE.keys[0], Credentials([SITE]), BACKUP,
                tell=lambda _: None, is_active=False,
            )
        )  # fmt: skip
        yield passive, opened.enter_context(make(near, "link", uri, SITE, NEAR, ()))


def until(what: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < ends_at
        time.sleep(0.001)


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
