"""A child of ours: forked, so that it is there in a millisecond, and signalled through its pidfd.

It dies with us, whatever ends us.  What it has to say of an error stands in a file of its own.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

PR_SET_PDEATHSIG = 1
RAISED = 70
_prctl = ctypes.CDLL(None).prctl


class Process:
    def __init__(self, work: Callable[[], int], errors: Path) -> None:
        self.errors = errors
        self.status: int | None = None
        """How it ended: its exit code, or the negative number of the signal that killed it."""
        self.is_stopped = False
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _live(work, errors, parent)
        self._pidfd = os.pidfd_open(self.pid)

    def send(self, number: signal.Signals) -> None:
        if self.status is None:
            signal.pidfd_send_signal(self._pidfd, number)

    def stop(self) -> None:
        """SIGSTOP, and all its threads stand still when this returns."""
        self.is_stopped = True
        self.send(signal.SIGSTOP)
        if self.status is None:
            os.waitid(os.P_PIDFD, self._pidfd, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def go_on(self) -> None:
        self.is_stopped = False
        self.send(signal.SIGCONT)

    def has_ended(self, timeout: float = 0) -> bool:
        """Wait for its end for so many seconds."""
        if self.status is None:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if poll.poll(timeout * 1000):
                self._reap()
        return self.status is not None

    def kill(self) -> int:
        """kill -9, and how it ended: by that, unless it was faster."""
        self.send(signal.SIGKILL)
        self._reap()
        assert self.status is not None
        return self.status

    def _reap(self) -> None:
        if self.status is None:
            _, status = os.waitpid(self.pid, 0)
            self.status = os.waitstatus_to_exitcode(status)
            os.close(self._pidfd)


def _live(work: Callable[[], int], errors: Path, parent: int) -> None:
    """The child's life: never returns."""
    code = RAISED
    try:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(code)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        file = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, 2)
        code = work()
    except BaseException:  # noqa: BLE001  # whatever it is, the parent is to see it
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)
