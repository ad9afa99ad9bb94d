"""A program: a process that a benchmark starts and ends, by its pid.

It has a session of its own, and dies with whoever started it (PR_SET_PDEATHSIG): a benchmark that
is killed leaves no server behind.
"""

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

END_S = 30
SAID_LINES = 5
_PR_SET_PDEATHSIG = 1


class ProgramEnded(Exception):
    """It should run; the message has its last words."""


class Program:
    """A context manager."""

    def __init__(
        self, command: Sequence[str], said: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._said = said
        self._command = command
        with said.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                env=os.environ | dict(environment or {}),
                cwd=said.parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_die_with_the_parent,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """ProgramEnded if it has."""
        if (code := self._process.poll()) is not None:
            words = self._said.read_text(errors="replace").splitlines()[-SAID_LINES:]
            raise ProgramEnded(f"{self._command[0]} ended with {code}: {' | '.join(words)}")

    def signal(self, number: signal.Signals) -> None:
        """All its threads stand still when this returns, if it is to stop."""
        self._process.send_signal(number)
        if number is signal.SIGSTOP and self._process.returncode is None:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def end(self) -> None:
        """SIGTERM; then, if it takes too long, SIGKILL to all of its session that are left."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


def _die_with_the_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
