"""Waits that spin before they sleep: which ones do, in threads that are pinned and that are not.

What is counted is decisions (sb_spun), not times.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import shmbroker
from shmbroker.core.layout import SPINNING_PATIENCE_MAX
from shmbroker.core.spinning import REST_MAX_NS
from shmbroker.ipc._native import ffi, lib

WAITS = 200
LATE_MAX = WAITS // 10
"""Waits whose time was over before they looked, because somebody else had the processor."""
TINY_S = 1e-4  # longer than Python takes to ask again what is left of it
WATCHDOG_S = 60
ALLOWED = sorted(os.sched_getaffinity(0))

two_processors = pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two processors")


def on(processors: set[int], call: Callable[[], Any]) -> Any:
    """What a thread answers that is pinned before it does anything else."""

    def pinned() -> Any:
        os.sched_setaffinity(0, processors)
        return call()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(pinned).result(WATCHDOG_S)


def spun(queue: shmbroker.Queue) -> tuple[int, int]:
    told = ffi.new("int64_t[2]")
    lib.sb_spun(queue._queue, told, told + 1)
    return told[0], told[1]


def wait_in_vain(queue: shmbroker.Queue) -> None:
    with pytest.raises(shmbroker.Empty):
        queue.get(timeout=TINY_S)


def spins_of(vhost: str, wait: Callable[[shmbroker.Queue], None], **how: Any) -> tuple[int, float]:
    """Connect, wait so many times in vain: how many of them spun, and how long all took."""
    with shmbroker.connect(f"shm://{vhost}", **how) as broker:
        queue = broker.declare_queue("q", slots=2)
        before, began = spun(queue)[0], time.monotonic()
        for _ in range(WAITS):
            wait(queue)
        return spun(queue)[0] - before, time.monotonic() - began


@two_processors
def test_a_thread_that_may_run_anywhere_always_spins(vhost: str) -> None:
    spins, _ = on(set(ALLOWED), lambda: spins_of(vhost, wait_in_vain))
    assert WAITS - LATE_MAX <= spins <= WAITS


@two_processors
def test_a_pinned_thread_spins_until_that_is_in_vain(vhost: str) -> None:
    spins, seconds = on({ALLOWED[0]}, lambda: spins_of(vhost, wait_in_vain))
    rests = 4 + int(seconds * 1e9) // REST_MAX_NS  # 8, 16, 32 ms, and then REST_MAX
    assert SPINNING_PATIENCE_MAX <= spins <= SPINNING_PATIENCE_MAX + rests


@two_processors
def test_a_pinned_thread_that_waits_for_room_does_the_same(vhost: str) -> None:
    def wait(queue: shmbroker.Queue) -> None:
        with pytest.raises(shmbroker.QueueFull):
            for _ in range(3):
                queue.publish(b"x", timeout=TINY_S)

    spins, seconds = on({ALLOWED[0]}, lambda: spins_of(vhost, wait))
    rests = 4 + int(seconds * 1e9) // REST_MAX_NS
    assert SPINNING_PATIENCE_MAX <= spins <= SPINNING_PATIENCE_MAX + rests


@two_processors
def test_a_thread_that_is_freed_spins_each_time_again(vhost: str) -> None:
    def freed() -> int:
        with shmbroker.connect(f"shm://{vhost}") as broker:
            queue = broker.declare_queue("q", slots=2)
            for _ in range(WAITS):
                wait_in_vain(queue)
            os.sched_setaffinity(0, ALLOWED)
            deadline, before = time.monotonic() + WATCHDOG_S, spun(queue)[0]
            while spun(queue)[0] == before:  # the rest that it is in comes to its end
                assert time.monotonic() < deadline
                wait_in_vain(queue)
            before = spun(queue)[0]
            for _ in range(WAITS):
                wait_in_vain(queue)
            return spun(queue)[0] - before

    assert WAITS - LATE_MAX <= on({ALLOWED[0]}, freed) <= WAITS


@pytest.mark.parametrize(("spin", "wanted"), [(1e-6, WAITS), (0.0, 0)])
def test_who_has_said_how_long_is_obeyed(vhost: str, spin: float, wanted: int) -> None:
    spins, _ = on({ALLOWED[0]}, lambda: spins_of(vhost, wait_in_vain, spin=spin))
    assert wanted - LATE_MAX <= spins <= wanted


def test_who_does_not_wait_does_not_spin(vhost: str) -> None:
    def look(queue: shmbroker.Queue) -> None:
        with pytest.raises(shmbroker.Empty):
            queue.get(timeout=0)

    assert on({ALLOWED[0]}, lambda: spins_of(vhost, look))[0] == 0


@two_processors
def test_spins_that_find_something_are_counted(vhost: str) -> None:
    """Two threads, each pinned to a processor of its own before it connects, until one has won."""
    deadline, ended = time.monotonic() + WATCHDOG_S, threading.Event()
    with shmbroker.connect(f"shm://{vhost}") as broker:
        for name in ("forth", "back"):
            broker.declare_queue(name, slots=16)

    def answer() -> None:
        with shmbroker.connect(f"shm://{vhost}") as broker:
            forth, back = broker.queue("forth"), broker.queue("back")
            while not ended.is_set():
                try:
                    back.publish(forth.receive(timeout=0.1))
                except shmbroker.Empty:
                    continue

    def ask() -> int:
        with shmbroker.connect(f"shm://{vhost}") as broker:
            forth, back = broker.queue("forth"), broker.queue("back")
            while spun(back)[1] == 0:
                assert time.monotonic() < deadline
                forth.publish(b"x")
                back.receive(timeout=WATCHDOG_S)
            return spun(back)[1]

    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(on, {ALLOWED[1]}, answer)
        try:
            assert on({ALLOWED[0]}, ask) > 0
        finally:
            ended.set()
            answering.result(WATCHDOG_S)
