"""Brokers as an operator has them: folders, and the command `shmbroker`."""

from __future__ import annotations

import resource
import signal
import subprocess
import sysconfig
from pathlib import Path

COMMAND = f"{sysconfig.get_path('scripts')}/shmbroker"


def command(*words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """A command to its end."""
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, timeout=timeout)


class Instance:
    """A broker that can be started, stopped, killed and frozen."""

    def __init__(self, folder: Path, vhost: str, store: Path, *options: str) -> None:
        self.folder = folder
        made = command(
            "create", str(folder), "--vhost", vhost, "--store", str(store),
            "--set", "store.segment=1MiB", *options,
        )  # fmt: skip
        if made.returncode:
            raise RuntimeError(made.stderr)
        self._process: subprocess.Popen[bytes] | None = None
        self._said = folder / "stderr"

    def start(self, files_max: int | None = None) -> None:
        def limit() -> None:
            if files_max:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))

        with self._said.open("ab") as said:
            self._process = subprocess.Popen(
                [COMMAND, "run", str(self.folder)], stdout=said, stderr=said, preexec_fn=limit
            )

    def wait(self, state: str, timeout: float = 60) -> bool:
        try:
            told = command("status", str(self.folder), "--wait", state, timeout=timeout)
        except subprocess.TimeoutExpired:
            return False
        return told.returncode == 0

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self, timeout: float = 30) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"{self.folder} does not stop within {timeout} s") from None
            self._process = None

    def freeze(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    @property
    def ended(self) -> int | None:
        """Its exit code, if it has ended by itself."""
        return None if self._process is None else self._process.poll()

    def said(self) -> str:
        return self._said.read_text(errors="replace")[-2000:] if self._said.exists() else ""

    def logged(self) -> str:
        log = self.folder / "log" / "shmbroker.log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else ""
