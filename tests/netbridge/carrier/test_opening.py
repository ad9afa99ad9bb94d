"""Opening a target may wait for a repair; the network thread does not."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from threading import enumerate as threads

import shmbroker
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.opening import Opening
from shmbroker.netbridge.link.action import OpenSink
from shmbroker.netbridge.wire.words import Level, TargetKind
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.support.link import PATIENCE, SOURCE, TARGET, Pair
from tests.support.repairing import in_repair

AT_ONCE = 4.0
"""What waits for the repair waits for five seconds."""


def answers_at_once(listener: Listener) -> bool:
    asked = time.monotonic()
    listener._thread.ask(lambda: None)
    return time.monotonic() - asked < AT_ONCE


def wait_for_opening(listener: Listener) -> None:
    until = time.monotonic() + PATIENCE
    while not any(each.name == "shmbroker-net-worker" for each in threads()):
        assert answers_at_once(listener)
        assert time.monotonic() < until


def another_stream_is_opened(listener: Listener) -> bool:
    """Whether that is done while the first one still waits."""
    said = OpenSink(0, TargetKind.QUEUE, TARGET, b"another stream..", Level.SHM, True, 0)
    opening = Opening(listener._thread.broker, said, 60.0)
    found: SimpleQueue[tuple[object, bool]] = SimpleQueue()

    def told(failure: Exception | None) -> None:
        found.put((failure, any(end._opening for end in listener._ids)))

    listener._thread.worker.do(opening.begin, told, of=said.origin)
    failure, is_first_waiting = found.get(timeout=PATIENCE)
    assert failure is None
    opening.drop()
    return is_first_waiting


def test_while_the_death_of_the_last_owner_is_repaired_the_thread_answers(tmp_path: Path) -> None:
    with (
        vhost_for_a_while() as near_name,
        vhost_for_a_while() as far_name,
        shmbroker.connect(f"shm://{near_name}", create=True) as near,
        shmbroker.connect(f"shm://{far_name}", create=True) as far,
    ):
        pair = Pair(near_name, far_name, free_port(), tmp_path)
        source, target = near.declare_queue(SOURCE), far.declare_queue(TARGET)
        source.publish(b"first")
        first = pair.process("far")
        with pair.linked():
            assert target.receive_many(1, timeout=PATIENCE) == [b"first"]
            (pourer,) = (each.id for each in far.participants() if each.name == "far")
            first.kill()
            repair = ExitStack()
            repair.enter_context(in_repair(far_name, pourer))
            with repair, pair.listening() as listener:
                wait_for_opening(listener)
                source.publish(b"second")
                for _ in range(10):
                    assert answers_at_once(listener)
                assert len(target) == 0
                assert another_stream_is_opened(listener), "before the one that waits"
                repair.close()
                assert target.receive_many(1, timeout=PATIENCE) == [b"second"]
