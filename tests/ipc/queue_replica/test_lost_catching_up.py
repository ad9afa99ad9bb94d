"""A link is lost, or its broker killed, before a moment was whole: what was taken of it by then
leaves nothing in the arena, where all queues have their messages."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.queue_replica.copy import Copies
from shmbroker.ipc.queue_replica.original import Originals
from shmbroker.perf.machine.process import Process
from tests.ipc.queue_replica.conftest import following

SLOTS, LARGE = 1024, 32 << 10
COUNT = 640
"""20 MiB of them: three times is as much as the arena has."""


@pytest.fixture
def here() -> Iterator[Broker]:
    with following(SLOTS) as made:
        yield made


def pieces(there: Broker, below: int) -> Iterator[bytes]:
    """What comes over a link until a moment is whole."""
    with Originals(there, room=1 << 20) as originals:
        originals.add(there.queue("q"), 0, below)
        while (found := originals.read()) is not None:
            yield bytes(found.memory)
            if found.whole:
                return


def takes(copies: Copies, there: Broker, queue: shmbroker.Queue) -> None:
    copies.add(queue, 0, 0)
    for piece in pieces(there, copies.stands(0).next):
        copies.take(piece)


def caught_up(there: Broker, here: Broker) -> None:
    with Copies(here) as copies:
        takes(copies, there, here.queue("q"))
        assert copies.show(), copies.stands(0).why


def filled(there: Broker) -> None:
    original = there.declare_queue("q", slots=SLOTS)
    for number in range(COUNT):
        original.publish(b"%08d" % number * (LARGE // 8))


def all_is_well(there: Broker, here: Broker) -> None:
    for _ in range(16):
        here.queue("other").publish(bytes(1 << 20))
    caught_up(there, here)
    assert [each.body for each in here.queue("q").browse()] == [
        each.body for each in there.queue("q").browse()
    ]


def test_a_lost_link_gives_back_what_was_not_shown(broker: Broker, here: Broker) -> None:
    filled(broker)
    with Copies(here) as copies:
        for _ in range(5):
            takes(copies, broker, here.queue("q"))
            copies.drop(0)
    here.repair()
    all_is_well(broker, here)


def test_what_was_there_before_stays(broker: Broker, here: Broker) -> None:
    original = broker.declare_queue("q", slots=SLOTS)
    original.publish(b"before")
    caught_up(broker, here)
    filled(broker)
    with Copies(here) as copies:
        takes(copies, broker, here.queue("q"))
    here.repair()
    here.queue("other").publish(b"FOREIGN." * 100000)
    assert [each.body for each in here.queue("q").browse()] == [b"before"]
    all_is_well(broker, here)


def test_the_next_link_gives_back_what_a_killed_one_has_taken(
    broker: Broker, here: Broker, tmp_path: Path
) -> None:
    filled(broker)
    taken = list(pieces(broker, 0))

    def dies() -> int:
        with (
            shmbroker.connect(f"shm://{here.vhost}", name="applier") as applier,
            Copies(applier) as copies,
        ):
            copies.add(applier.queue("q"), 0, 0)
            for piece in taken:
                copies.take(piece)
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    for number in range(5):
        process = Process(dies, tmp_path / f"errors {number}")
        assert process.has_ended(60)
        assert process.status == -signal.SIGKILL, process.errors.read_text()
        here.repair()
    all_is_well(broker, here)
