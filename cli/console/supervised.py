"""The console beside a broker: begun with it, begun again if it fails, ended by an orderly stop.

It is a process of its own, in a session of its own, so that it goes on when the broker hangs or is
killed.  The next start of the broker ends the one that is there, and begins another one, which
listens where it did.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Final

from shmbroker.cli.console.server import RELOAD, running
from shmbroker.ipc.base.errors import Error, SystemRefused
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config.config import toml_value
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.readable import is_readable
from shmbroker.netbridge.broker.hosted import PROGRAM
from shmbroker.netbridge.config import users

NEEDED: Final = ("starlette", "uvicorn")
END_SECONDS: Final = 10.0
PAUSE: Final = 1.0
PAUSE_MAX: Final = 30.0


def missing() -> list[str]:
    """What it needs and is not installed."""
    return [each for each in NEEDED if find_spec(each) is None]


def check() -> None:
    """SystemRefused: what it needs is not installed."""
    if lacking := missing():
        raise SystemRefused(
            f"[console] needs {' and '.join(lacking)}: pip install 'shmbroker[console]', or remove "
            "the table"
        )


def end(folder: Path) -> bool:
    """Whether there was one; it has ended when this returns."""
    found = running(folder)
    file = None if found is None else found[0].descriptor()
    if found is None or file is None:
        return False
    try:
        signal.pidfd_send_signal(file, signal.SIGTERM)
        if not is_readable(file, END_SECONDS):
            found[0].kill()
    except ProcessLookupError:  # it was faster
        return True
    finally:
        os.close(file)
    return True


def reloaded(folder: Path) -> None:
    """By the broker, and its console with it; by the console alone, if it has outlived the broker.
    As `users.reload`."""
    users.reload(folder)
    if status.read(folder).process is None:
        _reads_again(folder)


def _reads_again(folder: Path) -> None:
    """Who may log in at the console that runs."""
    found = running(folder)
    file = None if found is None else found[0].descriptor()
    if file is None:
        return
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(file, RELOAD)
    finally:
        os.close(file)


def set_by(flags: Mapping[str, object]) -> list[str]:
    """What `--set` is to be given for the same again.  ConfigError."""
    return [f"{key}={toml_value(each)}" for key, each in flags.items()]


class Supervised:
    def __init__(self, folder: Path, flags: Mapping[str, object], log: Log) -> None:
        """`flags`: those that the broker was started with."""
        self._folder = folder
        self._flags = flags
        self._log = log
        self._ends = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        end(self._folder)
        threading.Thread(target=self._run, name="console", daemon=True).start()

    def reads_again(self) -> None:
        """Who may log in."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._process.send_signal(RELOAD)

    def end(self) -> None:
        with self._lock:
            self._ends.set()
            process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _run(self) -> None:
        pause, said, began = PAUSE, "", monotonic()
        while why := self._failure():
            if monotonic() > began + PAUSE_MAX:  # it ran meanwhile
                pause, said = PAUSE, ""
            if why != said:
                self._log.write("console failed", why=why)
            said = why
            if self._ends.wait(pause):
                return
            pause, began = min(2 * pause, PAUSE_MAX), monotonic()

    def _failure(self) -> str:
        """When it has ended; nothing, if it was to."""
        try:
            process = self._begun()
        except (Error, OSError) as error:  # no memory, no process or no file is left, for now
            return told(error)
        code = 0 if process is None else process.wait()
        if code == 0 or self._ends.is_set():
            return ""
        return f"it ended with {code}; this may say why: shmbroker console run {self._folder}"

    def _begun(self) -> subprocess.Popen[bytes] | None:
        settings = [word for each in set_by(self._flags) for word in ("--set", each)]
        with self._lock:
            if self._ends.is_set():
                return None
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM, "console", "run", str(self._folder),
                 *settings],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
            return self._process
