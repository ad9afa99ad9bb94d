"""A target whose arena is full is poured into again after a nap: no bell tells of that room."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import pytest

import shmbroker
from shmbroker import ArenaFull
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.carrier.target import Target
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.wire.words import Standing
from tests.conftest import vhost_for_a_while
from tests.support.link import PATIENCE, SITE, SOURCE, TARGET

FAR = Identity(b"f" * 16, b"F" * 16, "far", Standing.LIVE, 0)
NEAR = Identity(b"n" * 16, b"N" * 16, "near", Standing.LIVE, 0)
POURS = 8
NAPS_S = 0.06
"""Seven naps, which are doubled from 1 ms to 16."""
LARGE = bytes(100_000)


def test_a_full_arena_is_not_tried_all_the_time(
    vhost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    poured: list[float] = []
    pour = Target.pour

    def counted(self: Target, *records: Any, **how: Any) -> Any:
        poured.append(time.monotonic())
        return pour(self, *records, **how)

    monkeypatch.setattr(Target, "pour", counted)
    with vhost_for_a_while() as small, ExitStack() as opened:
        vhosts.create(small, arena_bytes=1 << 20)
        near, far, other = (
            opened.enter_context(shmbroker.connect(f"shm://{name}"))
            for name in (vhost, small, small)
        )
        source, target = near.declare_queue(SOURCE), far.declare_queue(TARGET)
        hog = other.declare_queue("hog")
        with pytest.raises(ArenaFull):
            while True:
                hog.publish(bytes(10_000))
        with (
            NetworkThread(near) as here,
            NetworkThread(far) as there,
            Listener(
                there, "tcp://127.0.0.1:*", SITE.keys[0], Credentials([SITE]), FAR,
                tell=lambda _: None,
            ) as listener,
            Link(here, "link", listener.address, SITE, NEAR, (Shipped(SOURCE, TARGET),)),
        ):  # fmt: skip
            source.publish(LARGE)
            until = time.monotonic() + PATIENCE
            while len(poured) < POURS:
                assert time.monotonic() < until
                time.sleep(0.001)
            assert poured[POURS - 1] - poured[0] > NAPS_S
            far.queue("hog").purge()
            other.close()
            with target.get(timeout=PATIENCE) as message:
                assert message.body == LARGE
