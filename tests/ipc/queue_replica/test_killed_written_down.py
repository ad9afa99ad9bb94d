"""Whoever shows a moment is killed as soon as it is written down.  Somebody repairs, and others
want memory, before somebody shows the rest: it has its own messages all the same."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.queue_replica.copy import Copies
from shmbroker.ipc.queue_replica.moment import Moment
from shmbroker.ipc.queue_replica.original import Originals
from shmbroker.perf.machine.process import Process
from tests.ipc.queue_replica.conftest import following

SLOTS = 64


@pytest.fixture
def here() -> Iterator[Broker]:
    with following(SLOTS) as made:
        yield made


def news(there: Broker, below: int) -> bytes:
    with Originals(there, room=1 << 20) as originals:
        originals.add(there.queue("q"), 0, below)
        found = originals.read()
        assert found is not None
        return bytes(found.memory)


def shown(here: Broker, taken: bytes) -> None:
    with Copies(here) as copies:
        copies.add(here.queue("q"), 0, 0)
        copies.take(taken)
        assert copies.show()


def bodies(broker: Broker) -> list[bytes]:
    return [each.body for each in broker.queue("q").browse()]


@pytest.mark.parametrize("before", [0, 5])
def test_what_is_written_down_keeps_its_memory(
    broker: Broker, here: Broker, before: int, tmp_path: Path
) -> None:
    original = broker.declare_queue("q", slots=SLOTS)
    for number in range(before):
        original.publish(b"old %d" % number * 20)
    if before:
        shown(here, news(broker, 0))
    for number in range(10):
        original.publish(b"new %d" % number * 20)
    taken = news(broker, before)

    def dies() -> int:
        def killed(*_: object, **more: object) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        pytest.MonkeyPatch().setattr(Moment, "_shown", killed)
        with shmbroker.connect(f"shm://{here.vhost}", name="applier") as applier:
            shown(applier, taken)
        return 0

    process = Process(dies, tmp_path / "errors")
    assert process.has_ended(60)
    assert process.status == -signal.SIGKILL
    here.repair()
    for _ in range(3):
        here.queue("other").publish(b"FOREIGN." * 12500)
    with Copies(here):
        assert bodies(here) == bodies(broker)
    for _ in range(before):  # head passes what was there before: the rest is there still
        original.get(timeout=0).ack()
    shown(here, news(broker, before + 10))
    for _ in range(3):
        here.queue("other").publish(b"FOREIGN." * 12500)
    for number in range(30):
        original.publish(b"last %d" % number * 20)
    shown(here, news(broker, before + 10))
    assert bodies(here) == bodies(broker)
