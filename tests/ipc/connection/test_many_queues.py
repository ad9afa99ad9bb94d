"""A participant that uses more queues than its list in the table of participants holds."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, InUse
from shmbroker.core.layout import CATALOG_HIGH_AT, PARTICIPANT_LIST
from shmbroker.perf.machine.process import Process
from tests.conftest import SHM
from tests.support.host import PATIENCE

SLOTS = 16
MANY = PARTICIPANT_LIST + 20


@pytest.fixture
def busy(vhost: str) -> Iterator[Broker]:
    """Takes from and publishes to many queues."""
    with shmbroker.connect(f"shm://{vhost}", name="busy") as broker:
        for number in range(MANY):
            queue = broker.declare_queue(f"busy {number}", slots=SLOTS)
            queue.publish(b"x")
            queue.receive()
        yield broker


@pytest.fixture
def other(vhost: str, busy: Broker) -> Iterator[Broker]:
    assert busy.participant
    with shmbroker.connect(f"shm://{vhost}", name="other") as broker:
        yield broker


def rows(vhost: str) -> int:
    """How many of the table of queues were ever used."""
    with Path(SHM / f"shmbroker.{vhost}.catalog").open("rb") as file:
        file.seek(CATALOG_HIGH_AT)
        return int(struct.unpack("q", file.read(8))[0])


def test_it_keeps_no_row_of_others(other: Broker, vhost: str) -> None:
    for number in range(100):
        queue = other.declare_queue(f"q {number}", slots=SLOTS)
        queue.publish(b"x")
        other.delete_queue(queue.name)
    assert rows(vhost) == MANY + 1


def test_it_keeps_no_memory_of_others(other: Broker) -> None:
    """More than the arena, one after the other."""
    for number in range(10):
        queue = other.declare_queue(f"q {number}", slots=SLOTS)
        for _ in range(10):
            queue.publish(bytes(1 << 20), timeout=0)
        other.delete_queue(queue.name)


def test_what_it_uses_is_in_use(busy: Broker, other: Broker) -> None:
    last = f"busy {MANY - 1}"
    with pytest.raises(InUse, match="1 other participant"):
        other.delete_queue(last)
    (used,) = (queue for queue in other.queues() if queue.name == last)
    assert (used.consumers, used.producers) == (1, 1)
    told = other.queue(last).statistics()
    assert (told.consumers, told.producers) == (1, 1)
    (info,) = (each for each in other.participants() if each.id == busy.participant)
    assert set(info.queues) == {f"busy {number}" for number in range(MANY)}


def test_nobody_gets_a_row_that_it_still_uses(busy: Broker, other: Broker, vhost: str) -> None:
    other.delete_queue(f"busy {MANY - 1}", force=True)
    other.declare_queue("new", slots=SLOTS)
    assert rows(vhost) == MANY + 1
    busy.declare_exchange("looks for a route", "fanout").publish(b"anew")


def test_what_it_has_in_its_hand_comes_back_when_it_dies(
    other: Broker, vhost: str, tmp_path: Path
) -> None:
    def work() -> int:
        broker = shmbroker.connect(f"shm://{vhost}")
        for number in range(MANY):
            broker.declare_queue(f"busy {number}", slots=SLOTS).publish(b"%d" % number)
        held = [broker.queue(f"busy {number}").get() for number in range(MANY)]
        assert len(held) == MANY
        os.kill(os.getpid(), 9)
        return 1

    process = Process(work, tmp_path / "errors")
    process.has_ended(PATIENCE)
    assert process.kill() == -9, process.errors.read_text()
    other.repair()
    for number in range(MANY):
        assert other.queue(f"busy {number}").receive(timeout=0) == b"%d" % number


def test_its_number_is_given_away_without_what_it_used(busy: Broker, vhost: str) -> None:
    number = busy.participant
    busy.close()
    with shmbroker.connect(f"shm://{vhost}") as next_one:
        assert next_one.participant == number
        for each in range(PARTICIPANT_LIST + 1):
            next_one.queue(f"busy {each}").publish(b"x")
        told = next_one.queue(f"busy {MANY - 1}").statistics()
        assert (told.consumers, told.producers) == (0, 0)
