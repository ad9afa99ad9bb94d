"""A commit that is decided, finds no room any more, and is waited for by nobody: it happens as soon
as there is room, and nothing of it is left then."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import shmbroker
from shmbroker import Broker
from shmbroker.core import layout
from shmbroker.core.codes import UNFINISHED
from tests.ipc.transaction.test_commit_stopped import pytestmark
from tests.ipc.transaction.test_commit_without_room import fill
from tests.support.host import PATIENCE
from tests.support.tracer import Stepped

__all__ = ["pytestmark"]
LANES = 64
SLOTS = 128


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def decided(vhost: str) -> bytes:
    """How many commits were, on durable queues and on others."""
    counts = layout.TRANSACTIONS_BEGUN_AT, layout.TRANSACTIONS_PLAIN_AT
    with Path(f"/dev/shm/shmbroker.{vhost}.transactions").open("rb", buffering=0) as file:
        return b"".join(os.pread(file.fileno(), 8, at) for at in counts)


def step_until_it_is_decided(commit: Stepped, vhost: str) -> None:
    before = decided(vhost)
    while decided(vhost) == before:
        assert commit.step(20), "it had happened before"


def drained(broker: Broker, name: str, count: int) -> list[bytes]:
    return [broker.queue(name).receive(timeout=PATIENCE) for _ in range(count)]


def test_it_keeps_no_lane_and_is_no_open_transaction(
    broker: Broker, url: str, vhost: str
) -> None:
    queue = broker.declare_queue("q", slots=SLOTS)

    def interrupted() -> None:
        with shmbroker.connect(url, name="interrupted") as program, ExitStack() as loans:
            theirs = program.queue("q")
            transaction = program.transaction()
            transaction.publish(theirs, b"decided")
            stop()
            assert transaction._commit(0) == UNFINISHED
            del transaction
            stop()
            program.repair()
            for _ in range(LANES - 1):
                loans.enter_context(theirs.loan(1))
            theirs.publish(b"in the last lane", timeout=0)
            stop()

    with Stepped(interrupted) as commit:
        step_until_it_is_decided(commit, vhost)
        fill(queue)
        commit.run_to_stop()
        (who,) = broker._participants.with_transactions().values()
        assert who == (commit.pid, "interrupted")
        assert drained(broker, "q", SLOTS) == [b"other"] * SLOTS
        commit.run_to_stop()
        assert not broker._participants.with_transactions()
        assert drained(broker, "q", 2) == [b"decided", b"in the last lane"]
