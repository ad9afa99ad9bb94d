"""Handing over: what takes long is done while the old live still confirms, so that publishers wait
for the next live's first frame only.  Who dies on the way is replaced as any live is."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

import shmbroker
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.instance.lock.file_lock import FileLock
from shmbroker.ipc.instance.lock.live_lock import LiveLock
from shmbroker.ipc.instance.lock.record import Record
from shmbroker.ipc.instance.lock.sql_lock import SqlLock
from shmbroker.ipc.paging.pager import Pager
from tests.ipc.instance.conftest import Make
from tests.ipc.instance.test_pair import eventually, is_announced
from tests.support.runs import PATIENCE_SECONDS, Run

READY = ["pages end", "nothing is ready", "says handed over"]
ENDS = ["last frame", "lets go"]


def before(owner: type, name: str, note: Callable[..., object]) -> None:
    """Of this process: note it, then do it."""
    method = getattr(owner, name)

    @wraps(method)
    def noted(self: object, *more: Any) -> Any:
        note(*more)
        return method(self, *more)

    setattr(owner, name, noted)


def tells_its_steps(run: Run) -> None:
    """What it does to let go, a line each, in the order in which it begins with it."""

    def told(step: str) -> Callable[..., object]:
        def tell(*more: object) -> None:
            with (run.folder / "steps").open("a") as file:
                said = f" {more[0].state}" if more and isinstance(more[0], Record) else ""
                file.write(f"{step}{said}\n")

        return tell

    def watched() -> None:
        before(Pager, "stop", told("pages end"))
        before(Journaler, "quiet", told("nothing is ready"))
        before(Journaler, "stop", told("last frame"))
        for lock in (FileLock, SqlLock):
            before(lock, "write", told("says"))
            before(lock, "release_live", told("lets go"))

    run.before = watched


def steps(run: Run) -> list[str]:
    """Those since it was live."""
    all_of_it = (run.folder / "steps").read_text().splitlines()
    return all_of_it[len(all_of_it) - all_of_it[::-1].index("says live") :]


def put(vhost: str, *bodies: bytes) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True)
        for body in bodies:
            queue.publish(body, timeout=PATIENCE_SECONDS)


def bodies(vhost: str) -> list[bytes]:
    with shmbroker.connect(f"shm://{vhost}", observe=True) as broker:
        return [bytes(each.body) for each in broker.queue("orders").browse()]


def test_a_stop_for_another_is_one_frame(make: Make, vhost: str) -> None:
    live = make("a", failover_on_shutdown=True)
    tells_its_steps(live)
    live.start().becomes("live")
    backup = make("b", "backup").start().becomes("passive")
    put(vhost, b"1")
    assert live.stop() == 0
    backup.becomes("live")
    assert steps(live) == READY + ENDS
    put(vhost, b"2")
    assert bodies(vhost) == [b"1", b"2"]


def test_a_failback_is_one_frame(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    backup = make("b", "backup")
    tells_its_steps(backup)
    backup.start().becomes("passive")
    put(vhost, b"1")
    live.kill()
    backup.becomes("live")
    put(vhost, b"2")
    live.start().becomes("live")
    backup.becomes("passive")
    assert steps(backup) == READY + ENDS
    assert bodies(vhost) == [b"1", b"2"]


def test_a_stop_for_nobody_says_so_behind_its_last_frame(make: Make, vhost: str) -> None:
    live = make("a")
    tells_its_steps(live)
    live.start().becomes("live")
    put(vhost, b"1")
    assert live.stop() == 0
    assert steps(live) == [*READY[:2], ENDS[0], "says stopped", ENDS[1]]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_who_dies_or_hangs_before_its_last_frame_is_replaced(
    make: Make, vhost: str, number: signal.Signals
) -> None:
    """It has said by then that it hands over."""
    live = make("a", failover_on_shutdown=True)
    live.before = lambda: before(Journaler, "stop", lambda: os.kill(os.getpid(), number))
    live.start().becomes("live")
    backup = make("b", "backup", stall_limit="3s").start().becomes("passive")
    put(vhost, b"1")
    confirmed = threading.Thread(target=put, args=(vhost, b"2", b"3"))
    assert live.process is not None
    live.process.send(signal.SIGTERM)
    confirmed.start()
    assert live.ends() == -signal.SIGKILL
    backup.becomes("live")
    confirmed.join(PATIENCE_SECONDS)
    assert bodies(vhost) == [b"1", b"2", b"3"]
    lock: LiveLock = backup.lock()
    assert lock.record().epoch == 2
    lock.close()


def test_a_question_of_before_is_removed_before_anybody_else_can_ask(make: Make) -> None:
    """It has one name: who removes it later removes that of the next one who is announced."""
    live, backup = make("a").start().becomes("live"), make("b", "backup")
    steps = backup.folder / "steps"

    def noted(step: str) -> Callable[..., object]:
        def note(*_: object) -> None:
            with steps.open("a") as file:
                file.write(f"{step}\n")

        return note

    def watched() -> None:
        for lock in (FileLock, SqlLock):
            before(lock, "failback_done", noted("removed"))
            before(lock, "release_announced", noted("the next one is announced"))

    backup.before = watched
    is_announced(backup.start())
    live.kill()
    backup.becomes("live")
    eventually(lambda: len(steps.read_text().splitlines()) == 2)
    assert steps.read_text().splitlines() == ["removed", "the next one is announced"]
