"""sb_wait_any: what it is asked for is checked, and its time-out holds whatever it is woken for."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker.core.codes import DISCONNECTED, EMPTY, INVALID, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of
from tests.support.holding import holding

WATCHDOG_S = 60
SHORT_NS = 2_000_000
CONTROL = ffi.new("int64_t *")


@pytest.fixture
def queue(vhost: str) -> Iterator[shmbroker.Queue]:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        yield broker.declare_queue("q", slots=16)


def wait_any(*waits: tuple[Any, int, int], timeout_ns: int = SHORT_NS) -> tuple[int, list[int]]:
    """What it answers, and the code of each wait."""
    array = ffi.new("sb_wait[]", [(*each, EMPTY) for each in waits])
    return lib.sb_wait_any(array, len(waits), CONTROL, 0, timeout_ns), [each.code for each in array]


# it never returned: a process of its own is killed by the watchdog
ASKS = """
import sys
import shmbroker
from shmbroker.ipc._native import ffi, lib
queue = shmbroker.connect("shm://" + sys.argv[1]).queue("q")
waits = ffi.new("sb_wait[]", [(queue._queue, int(sys.argv[2]), int(sys.argv[3]), 0)])
print(lib.sb_wait_any(waits, 1, ffi.new("int64_t *"), 0, 2_000_000))
"""


@pytest.mark.parametrize("position", [lib.SB_A_MESSAGE, 0])
@pytest.mark.parametrize("returned", [-2, lib.SB_CONFIRMED_BOTH - 1, -(1 << 63)])
def test_returned_is_a_count_or_one_of_the_names(
    queue: shmbroker.Queue, vhost: str, position: int, returned: int
) -> None:
    command = [sys.executable, "-c", ASKS, vhost, str(position), str(returned)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S, check=True)
    assert int(done.stdout) == INVALID


NONE_AT_ALL = """
from shmbroker.ipc._native import ffi, lib
print(lib.sb_wait_any(ffi.NULL, 0, ffi.new("int64_t *"), 0, 2_000_000))
"""


def test_without_a_queue_it_waits_for_the_control_word() -> None:
    """As the pager does while the disk is full."""
    command = [sys.executable, "-c", NONE_AT_ALL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S, check=True)
    assert int(done.stdout) == 0


def test_each_number_means_one_thing() -> None:
    numbers = [lib.SB_A_MESSAGE, lib.SB_ROOM, lib.SB_CONFIRMED]
    assert len(set(numbers)) == 3
    assert lib.SB_ANY_NUMBER not in (lib.SB_ROOM, lib.SB_CONFIRMED)


@pytest.mark.parametrize(
    ("position", "returned", "why"),
    [
        (-3, -1, "wait 1: position -3 is none: SB_A_MESSAGE, SB_ROOM, or 0 or more"),
        (-(1 << 63), 0, "is none"),
        (0, -2, "wait 1: returned -2 is none: SB_ANY_NUMBER, SB_CONFIRMED, or 0 or more"),
        (lib.SB_A_MESSAGE, lib.SB_CONFIRMED, "at a position, not of SB_A_MESSAGE"),
        (lib.SB_ROOM, lib.SB_CONFIRMED, "at a position, not of SB_ROOM"),
    ],
)
def test_what_there_is_not_is_refused_by_name(
    queue: shmbroker.Queue, position: int, returned: int, why: str
) -> None:
    good = (queue._queue, lib.SB_A_MESSAGE, lib.SB_ANY_NUMBER)
    code, _ = wait_any(good, (queue._queue, position, returned))
    assert code == INVALID
    assert why in detail_of(code)


def test_a_wait_without_a_queue_and_fewer_waits_than_none(queue: shmbroker.Queue) -> None:
    code, _ = wait_any((ffi.NULL, lib.SB_A_MESSAGE, lib.SB_ANY_NUMBER))
    assert (code, detail_of(code)) == (INVALID, "wait 0: there is no queue")
    assert lib.sb_wait_any(ffi.NULL, -1, CONTROL, 0, 0) == INVALID


@pytest.mark.parametrize("timeout_ns", [0, SHORT_NS])
@pytest.mark.parametrize(
    "returned", [lib.SB_ANY_NUMBER, 0, lib.SB_CONFIRMED, lib.SB_CONFIRMED_BOTH]
)
@pytest.mark.parametrize("position", [lib.SB_A_MESSAGE, lib.SB_ROOM, 0, 5])
def test_whatever_is_waited_for_the_time_out_holds(
    queue: shmbroker.Queue, position: int, returned: int, timeout_ns: int
) -> None:
    """The watchdog is that of pytest: this call came back, or not."""
    if position < 0 and returned <= lib.SB_CONFIRMED:
        return
    for _ in range(16):
        queue.publish(b"full")
    if position == lib.SB_A_MESSAGE:
        queue.purge()
    code, codes = wait_any((queue._queue, position, returned), timeout_ns=timeout_ns)
    assert code == sum(each != EMPTY for each in codes)


def test_the_time_out_holds_though_somebody_wakes_it_all_the_time(queue: shmbroker.Queue) -> None:
    """Its bell is taken again at once, as by wake-ups that others make use of."""
    ended = threading.Event()
    port = ffi.new("sb_port **")
    assert lib.sb_queue_port(queue._queue, port) == OK

    def disturb() -> None:
        while not ended.is_set():
            lib.sb_port_wake_all(port[0])

    disturber = threading.Thread(target=disturb)
    disturber.start()
    try:
        answer = wait_any((queue._queue, lib.SB_A_MESSAGE, lib.SB_ANY_NUMBER))
    finally:
        ended.set()
        disturber.join()
        lib.sb_queue_port_return(queue._queue, port[0])
    assert answer == (0, [EMPTY])


@pytest.mark.parametrize("how", ["killed", "expelled"])
def test_who_waits_for_long_hears_of_a_death(
    broker: shmbroker.Broker, url: str, tmp_path: Path, how: str
) -> None:
    """Also of its own, and nobody else is there who repairs."""
    queue = broker.declare_queue("held", slots=16)
    queue.publish(b"x")
    wait = (queue._queue, lib.SB_A_MESSAGE, lib.SB_ANY_NUMBER)
    with holding(url, ["held"], tmp_path) as holder, shmbroker.connect(url) as operator:
        (us,) = (each for each in operator.participants() if each.id == broker.participant)
        wait_any(wait, timeout_ns=0)  # it repairs, and the next one does not at once
        if how == "killed":
            holder.kill()
        else:
            lib.sb_participant_disconnect(operator._connection, us.id, us.connected_at)
        answer = wait_any(wait, timeout_ns=WATCHDOG_S * 1_000_000_000)
        assert answer == (1, [OK if how == "killed" else DISCONNECTED])


HOLDS = """
import os, sys
import shmbroker
message = shmbroker.connect("shm://" + sys.argv[1]).queue("held").get()
os._exit(0)
"""


def test_what_the_dead_have_left_is_repaired_beside_a_queue_that_is_always_ready(
    broker: shmbroker.Broker, vhost: str
) -> None:
    ready, held = broker.declare_queue("ready", slots=16), broker.declare_queue("held", slots=16)
    for each in (ready, held):
        each.publish(b"x")
    subprocess.run([sys.executable, "-c", HOLDS, vhost], timeout=WATCHDOG_S, check=True)
    waits = [(each._queue, lib.SB_A_MESSAGE, lib.SB_ANY_NUMBER) for each in (ready, held)]
    until = time.monotonic() + WATCHDOG_S / 2
    codes = [OK, EMPTY]
    while codes == [OK, EMPTY] and time.monotonic() < until:
        _, codes = wait_any(*waits, timeout_ns=WATCHDOG_S * 1_000_000_000)  # it is never over
    assert codes == [OK, OK]
