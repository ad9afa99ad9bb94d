"""Running another program one machine instruction at a time (ptrace)."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import subprocess
import tempfile
import traceback
from collections.abc import Callable
from types import TracebackType

from tests.support.compiler import NATIVE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

TRACEME, CONTINUE = 0, 7


def _ptrace(request: int, pid: int, data: int = 0) -> None:
    if _libc.ptrace(request, pid, None, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


@functools.cache
def _stepping() -> ctypes.CDLL:
    """The loop over single instructions, in C: Python's takes five times as long."""
    with tempfile.TemporaryDirectory() as folder:
        library, source = f"{folder}/stepping.so", str(NATIVE / "stepping.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
        return ctypes.CDLL(library)


def _begun(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=os.environ | {"LD_BIND_NOW": "1"},  # not to step through the dynamic linker
        preexec_fn=lambda: _ptrace(TRACEME, 0),
    )


class Forked:
    """A child of ours that does this, and is not awaited."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _ptrace(TRACEME, 0)
                signal.raise_signal(signal.SIGSTOP)
                work()
            except BaseException:  # noqa: BLE001  # whatever it is, the tests are not its to go on with
                traceback.print_exc()
            finally:
                os._exit(1)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class Stepped:
    """A program, or what a child of ours does, that stops itself (SIGSTOP) where the interesting
    part begins and where it ends."""

    def __init__(self, command: list[str] | Callable[[], None]) -> None:
        self._process: Forked | subprocess.Popen[bytes] = (
            Forked(command) if callable(command) else _begun(command)
        )
        self.pid = self._process.pid
        os.waitpid(self.pid, 0)  # the stop after exec, or as a child
        self.run_to_stop()

    def run_to_stop(self) -> None:
        """Go on to the next stop."""
        _ptrace(CONTINUE, self.pid)
        _, status = os.waitpid(self.pid, 0)
        assert os.WIFSTOPPED(status), status
        assert os.WSTOPSIG(status) == signal.SIGSTOP, status

    def step(self, instructions: int) -> bool:
        """So many instructions; False if the program reached its next stop before."""
        answer: int = _stepping().step(self.pid, ctypes.c_long(instructions))
        assert answer >= 0, "it ended"
        return answer == 1

    def kill(self) -> None:
        self._process.kill()
        os.waitpid(self.pid, 0)
        self._process.returncode = -signal.SIGKILL

    def finish(self) -> int:
        """Go on to the end: the exit status."""
        while True:
            _ptrace(CONTINUE, self.pid)
            _, status = os.waitpid(self.pid, 0)
            if not os.WIFSTOPPED(status):
                self._process.returncode = os.waitstatus_to_exitcode(status)
                return self._process.returncode

    def __enter__(self) -> Stepped:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._process.returncode is None:
            self.kill()
