"""What is due takes no room that others take meanwhile: what is decided, and has none, would wait,
and with it all that its connection moves and commits."""

from __future__ import annotations

import os
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import shmbroker
from shmbroker import Broker, QueueFull
from shmbroker.core import layout
from tests.ipc.vhost.test_hostile_vhost import segment
from tests.support.host import PATIENCE, journaling

SLOTS = 64
SOON = 0.2


def word(file: BinaryIO, at: int) -> int:
    return int.from_bytes(os.pread(file.fileno(), 8, at), "little")


def test_other_queues_get_what_is_due(vhost: str, tmp_path: Path) -> None:
    url = f"shm://{vhost}"
    state_at = layout.PARTICIPANTS_AT + layout.PARTICIPANT_TRANSACTION_AT
    with (
        shmbroker.connect(url) as broker,
        shmbroker.connect(url) as other,
        journaling(vhost, tmp_path),
        segment(vhost, "participants").open("rb") as participants,
        segment(vhost, "transactions").open("rb+") as transactions,
    ):
        full = broker.declare_queue("full", slots=SLOTS, durable=True)
        behind = broker.declare_queue("behind", durable=True)
        theirs = other.queue("full")
        begun = word(transactions, layout.TRANSACTIONS_BEGUN_AT)
        due = time.time() + SOON
        for _ in range(SLOTS):
            full.publish(b"due", deliver_at=due, timeout=PATIENCE, confirm="shm")
        behind.publish(b"also due", deliver_at=due + SOON, timeout=PATIENCE)
        state_at += broker.participant * layout.PARTICIPANT_BYTES
        state, ends_at = 0, time.monotonic() + PATIENCE
        while (
            state != layout.TRANSACTION_PREPARED
            and word(transactions, layout.TRANSACTIONS_BEGUN_AT) == begun
        ):  # whoever commits waits a moment before it decides
            assert time.monotonic() < ends_at, "nobody moves what is due"
            os.pwrite(transactions.fileno(), struct.pack("<q", 1), layout.TRANSACTIONS_CLOSED_AT)
            state = word(participants, state_at)
        with suppress(QueueFull):
            theirs.publish(b"theirs", timeout=0, confirm="shm")
        assert behind.receive(timeout=PATIENCE) == b"also due"
        with broker.transaction(timeout=PATIENCE) as transaction:
            transaction.publish(behind, b"committed")


def test_a_transaction_that_fills_the_ring_does_not_close_it_till_its_oldest_is_due(
    broker: Broker,
) -> None:
    few = broker.declare_queue("few", max_scheduled=10)
    with broker.transaction() as transaction:
        for number in range(16):
            transaction.publish(few, b"", deliver_after=3600 if number == 0 else 0.01)
    for _ in range(15):
        few.receive(timeout=60)
    few.publish(b"x", deliver_after=0.01, timeout=60)
    assert few.receive(timeout=60) == b"x"
