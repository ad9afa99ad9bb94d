"""Threads that C starts in a program, the pager's, and the process beside it: they get none of its
signals.

A signal that such a thread takes interrupts none of the program's waits.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import shmbroker
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.paging.pager import Pager

SEGMENT = 1 << 20
# SIGKILL and SIGSTOP cannot be blocked; 32 and 33 are the C library's own
ALWAYS_OPEN = {signal.SIGKILL, signal.SIGSTOP, 32, 33}
WANTED = set(range(1, 65)) - ALWAYS_OPEN


def blocked(status: Path) -> set[int]:
    (line,) = (each for each in status.read_text().splitlines() if each.startswith("SigBlk"))
    mask = int(line.split()[1], 16)
    return {number for number in range(1, 65) if mask >> number - 1 & 1}


def of_c() -> dict[str, Path]:
    """The threads of this process that no program has started."""
    known = {str(thread.native_id) for thread in threading.enumerate() if thread.name != "pager"}
    tasks = Path("/proc/self/task").iterdir()
    return {task.name: task / "status" for task in tasks if task.name not in known}


def test_no_thread_of_c_gets_signals(vhost: str, tmp_path: Path) -> None:
    before = of_c()
    (tmp_path / "journal").mkdir()
    with (
        shmbroker.connect(f"shm://{vhost}", name="broker") as broker,
        Journaler(tmp_path / "journal", segment_bytes=SEGMENT) as journaler,
    ):
        journaler.begin(1)
        journaler.start(broker, 1)
        with Pager(broker, tmp_path / "pages", epoch=1):
            queue = broker.declare_queue("q", slots=16)
            queue.publish(b"later", deliver_after=3600)  # the thread of what is scheduled
            mine = {task: status for task, status in of_c().items() if task not in before}
            # journaler, its segments, pager, schedule
            assert len(mine) >= 4
            open_to = {task: WANTED - blocked(status) for task, status in mine.items()}
    assert not any(open_to.values()), open_to


KEEPS = """
import sys
from shmbroker.ipc.broker.journaler import keep_memory
keep_memory()
print(flush=True)
sys.stdin.read()
"""


def test_the_exit_helper_gets_no_signals_either() -> None:
    command = [sys.executable, "-c", KEEPS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        children = [each for task in tasks for each in (task / "children").read_text().split()]
        assert children
        for child in children:
            assert not WANTED - blocked(Path(f"/proc/{child}/status"))
    assert process.returncode == os.EX_OK
