"""How often a process has the disk synced, whatever it promises: counted by strace."""

import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from shmbroker.perf.machine import debian

CALLS = ("fsync", "fdatasync", "sync_file_range", "msync", "syncfs", "sync")
ATTACH_S = 10


class NotCounted(Exception):
    """strace does not do it; the message is its own."""


def syncs_during(pid: int, work: Callable[[], object]) -> int:
    """By all threads of this process, while the work is done, which takes longer than usual."""
    debian.install("strace")
    with tempfile.NamedTemporaryFile(prefix="shmbroker-perf-syncs-") as table:
        command = ["strace", "-f", "-c", "-e", f"trace={','.join(CALLS)}", "-o", table.name]
        strace = subprocess.Popen([*command, "-p", str(pid)], stderr=subprocess.PIPE, text=True)
        try:
            assert strace.stderr
            said = strace.stderr.readline()
            if "attached" not in said:
                raise NotCounted(said.strip())
            work()
        finally:
            strace.send_signal(signal.SIGINT)  # it lets go of the process, and writes the table
            strace.communicate(timeout=ATTACH_S)
        return counted(Path(table.name).read_text())


def counted(table: str) -> int:
    """The calls in a table of strace -c."""
    rows = (line.split() for line in table.splitlines())
    return sum(int(row[3]) for row in rows if len(row) >= 5 and row[-1] in CALLS)
