"""python -m tests.support.left_behind COMMAND...: run a command, and end what it leaves behind.

A run that is interrupted, or whose main process is killed, cannot end what it began: its brokers,
servers and browsers go on without a parent.  They come to this process, which tells and ends them,
and removes what has their names in /dev/shm.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

PR_SET_CHILD_SUBREAPER: Final = 36
GRACE_SECONDS: Final = 10.0
"""For what is ending by itself."""
SHM: Final = Path("/dev/shm")
NAME: Final = re.compile(r"shmbroker\.test-(\d+)-")


def run(command: Sequence[str]) -> int:
    """The exit code of the command, as a shell has it."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    main = subprocess.Popen(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command as well
    signal.signal(signal.SIGTERM, lambda *_: os.kill(main.pid, signal.SIGTERM))
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == main.pid:
            break
    _end_the_rest()
    _remove_names()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _end_the_rest() -> None:
    ends_at = time.monotonic() + GRACE_SECONDS
    while _has_children() and time.monotonic() < ends_at:
        time.sleep(0.05)
    while _has_children():  # an end may make orphans, which come to us
        for pid, words in _children():
            sys.stderr.write(f"left behind, and ended: {pid} {words}\n")
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _has_children() -> bool:
    """After those that have ended are waited for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _children() -> list[tuple[int, str]]:
    """Pid and words of each that is there: a process may end while we read."""
    found = []
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            if each.name.isdecimal() and _parent(each) == os.getpid():
                words = (each / "cmdline").read_text(errors="replace").replace("\0", " ")
                found.append((int(each.name), words.strip()))
    return found


def _parent(process: Path) -> int:
    """Behind the name, which may hold anything."""
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])


def _remove_names() -> None:
    """Of processes that are no more."""
    for path in SHM.glob("shmbroker.test-*"):
        found = NAME.match(path.name)
        if found and not Path("/proc", found[1]).exists():
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
