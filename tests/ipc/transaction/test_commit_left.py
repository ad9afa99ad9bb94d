"""A commit that is decided, finds no room any more, and is waited for by nobody: it happens as soon
as there is room, and nothing of it is left then."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.core import layout
from shmbroker.core.codes import UNFINISHED
from tests.ipc.transaction.test_commit_stopped import pytestmark
from tests.ipc.transaction.test_commit_without_room import fill
from tests.support.host import PATIENCE, journaling
from tests.support.tracer import Stepped

__all__ = ["pytestmark"]
LANES = 64
SLOTS = 128
SOON = 0.2


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


@pytest.mark.parametrize("timeout", [0, SOON])
def test_who_moves_waits_no_longer_than_it_wants(
    broker: Broker, url: str, vhost: str, timeout: float
) -> None:
    source, target = (broker.declare_queue(name, slots=SLOTS) for name in ("source", "target"))
    source.publish_many([b"1", b"2"])
    told, tell = os.pipe()

    def moves() -> None:
        with shmbroker.connect(url, name="mover") as program:
            theirs = program.queue("source"), program.queue("target")
            signal.alarm(PATIENCE)
            stop()
            moved = theirs[0].move_to(theirs[1], timeout=timeout)
            os.write(tell, b"%d" % moved)
            stop()
            program.repair()
            stop()

    with Stepped(moves) as commit:
        step_until_it_is_decided(commit, vhost)
        fill(target)
        commit.run_to_stop()
        assert os.read(told, 8) == b"1"
        assert [(each.body, each.deliveries) for each in source.browse()] == [(b"2", 0)]
        assert drained(broker, "target", SLOTS) == [b"other"] * SLOTS
        commit.run_to_stop()
        assert not broker._participants.with_transactions()
        assert drained(broker, "target", 1) == [b"1"]
    os.close(told)
    os.close(tell)


def test_who_moves_goes_on_when_there_is_room(broker: Broker, url: str, vhost: str) -> None:
    source, target = (broker.declare_queue(name, slots=SLOTS) for name in ("source", "target"))
    source.publish_many([b"1", b"2"])

    def moves() -> None:
        with shmbroker.connect(url, name="mover") as program:
            theirs = program.queue("source"), program.queue("target")
            stop()
            assert theirs[0].move_to(theirs[1], timeout=None) == 2
            stop()

    with Stepped(moves) as commit:
        step_until_it_is_decided(commit, vhost)
        fill(target)
        with ThreadPoolExecutor() as consumer:
            came = consumer.submit(drained, broker, "target", SLOTS + 2)
            commit.run_to_stop()
            assert came.result() == [b"other"] * SLOTS + [b"1", b"2"]
    assert source.statistics().depth == 0


def test_who_retries_waits_for_no_room(
    broker: Broker, url: str, vhost: str, tmp_path: Path
) -> None:
    full = broker.declare_queue("full", slots=SLOTS, durable=True, dead_letter="dead")
    other = broker.declare_queue("other", durable=True, dead_letter="dead")
    with journaling(vhost, tmp_path):
        for queue in (full, full, other):
            queue.publish(b"x", timeout=PATIENCE)
            queue.get(timeout=PATIENCE).reject()
        broker.queue("dead").confirm(timeout=PATIENCE)
    told, tell = os.pipe()

    def retries() -> None:
        with shmbroker.connect(url, name="retrying") as program:
            dead = program.queue("dead")
            signal.alarm(PATIENCE)
            stop()
            done = dead.retry()
            os.write(tell, repr((done.sent, done.stayed)).encode())
            stop()

    with Stepped(retries) as commit:
        step_until_it_is_decided(commit, vhost)
        fill(full)
        commit.run_to_stop()
        assert os.read(told, 100).decode() == repr((1, {"queue 'full' is full": 2}))
        commit.finish()
    assert broker.queue("dead").statistics().depth == 2
    with journaling(vhost, tmp_path, 2):
        while full.receive(timeout=PATIENCE) == b"other":
            broker.repair()
    os.close(told)
    os.close(tell)


def test_others_move_what_is_due_in_other_queues(broker: Broker, url: str, vhost: str) -> None:
    """Nothing of its connection is decided meanwhile, so nothing is moved by it."""
    queue, later = broker.declare_queue("q", slots=SLOTS), broker.declare_queue("later")

    def interrupted() -> None:
        with shmbroker.connect(url) as program:
            transaction = program.transaction()
            transaction.publish(program.queue("q"), b"decided")
            stop()
            assert transaction._commit(0) == UNFINISHED
            program.queue("later").publish(b"due", deliver_after=SOON)
            stop()  # but for its mover

    with Stepped(interrupted) as commit:
        step_until_it_is_decided(commit, vhost)
        fill(queue)
        commit.run_to_stop()
        assert later.receive(timeout=PATIENCE) == b"due"
        assert drained(broker, "q", SLOTS) == [b"other"] * SLOTS
