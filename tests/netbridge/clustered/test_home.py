"""What was for a node that is gone: it finds no room where it is to go; its broker is killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker import Broker
from shmbroker.core import codes
from shmbroker.ipc.base.errors import ArenaFull
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.cluster.balancing import HERE
from shmbroker.netbridge.clustered import home
from shmbroker.netbridge.clustered.anew import Anew
from shmbroker.netbridge.clustered.home import Home
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.wire.words import Standing


def test_what_cannot_be_set_aside_is_told_and_not_tried_without_a_pause(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its thread would run in a circle, and say nothing."""
    queue, here = broker.declare_queue("ways"), SimpleNamespace(_is_closed=threading.Event())
    at = SimpleNamespace(sb_reject_at=lambda *_: codes.ARENA_FULL)
    monkeypatch.setattr(home, "lib", at)
    monkeypatch.setattr(home, "position_in", lambda records: 1)
    nobody: Any = None
    with pytest.raises(ArenaFull, match="'ways'"):
        Home._refused(here, queue, memoryview(b"record"), nobody)  # type: ignore[arg-type]
    here._is_closed.set()
    at.sb_reject_at = lambda *_: codes.FULL
    left = Home._refused(here, queue, memoryview(b"record"), nobody)  # type: ignore[arg-type]
    assert left == b"record", "it is closed: the next one reads it again"


NODE = b"w" * 16
OURS = Identity(b"e" * 16, bytes(16), "east", Standing.LIVE, 0)
WAY = "$sf.town." + NODE.hex()


def comes_home(broker: Broker, emptied: Callable[[bytes], None]) -> Home:
    return Home(broker, NODE, WAY, OURS, emptied, lambda _: None)


def is_restored(broker: Broker, emptied: Callable[[bytes], None]) -> Home:
    return Home(broker, NODE, WAY, replace(OURS, history=7), emptied, lambda _: None)


def goes_anew(broker: Broker, emptied: Callable[[bytes], None]) -> Home:
    return Anew(
        broker, NODE, WAY, OURS, emptied, lambda _: None,
        lambda: {target_of("orders"): (HERE,)}, lambda _: WAY, lambda: None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("begin", "goes_on", "count"),
    [(comes_home, comes_home, 5), (goes_anew, goes_anew, 5), (comes_home, is_restored, 10)],
)
def test_what_was_poured_by_one_that_was_killed_leaves_the_queue(
    broker: Broker, begin: Any, goes_on: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not said any more that it is there; the next one reads nothing of it, unless a backup
    was restored meanwhile: then these positions are those of other messages."""
    orders, way = broker.declare_queue("orders"), broker.declare_queue(WAY)
    made = broker.declare_queue("to send")
    for number in range(5):
        made.publish(b"%d" % number)
    pass_over(made, way, None, None, 0, copies=False, towards=target_of("orders"))

    def killed(self: Home, sink: object) -> bool:
        self._is_closed.set()
        return False

    with monkeypatch.context() as patched:
        patched.setattr(Home, "_confirm", killed)
        patched.setattr(Anew, "_confirm", killed)
        patched.setattr(Anew, "_go_on", Home._go_on)  # which says it at its end
        first = begin(broker, lambda _: None)
        first._thread.join(60)
        first.close()
    assert (len(orders), way.statistics().depth) == (5, 5)
    emptied = threading.Event()
    second = goes_on(broker, lambda _: emptied.set())
    second.patience = 0.0
    assert emptied.wait(60)
    second.close()
    assert (len(orders), way.statistics().depth) == (count, 0)
