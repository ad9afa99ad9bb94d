"""A terminal to run the command in: what it draws, and keys to press."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.cli.command import COMMAND, PATIENCE_SECONDS, Shell


class Terminal:
    def __init__(self, process: subprocess.Popen[bytes], keyboard: int) -> None:
        self.process = process
        self._keyboard = keyboard
        self.drawn = b""

    def press(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def until(self, is_there: Callable[[bytes], bool]) -> bytes:
        """Read on until what was drawn satisfies."""
        ends_at = time.monotonic() + PATIENCE_SECONDS
        while not is_there(self.drawn):
            assert time.monotonic() < ends_at, self.drawn
            if select.select([self._keyboard], [], [], 0.1)[0]:
                self.drawn += self._read()
        return self.drawn

    @property
    def settings(self) -> int:
        """Whether it echoes, waits for whole lines, and so on."""
        local_modes: int = termios.tcgetattr(self._keyboard)[3]
        return local_modes

    def end(self) -> int:
        """Its exit code."""
        while chunk := self._read():
            self.drawn += chunk
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def _read(self) -> bytes:
        try:
            return os.read(self._keyboard, 65536)
        except OSError:  # EIO: nobody is at the other end any more
            return b""


def own_the_terminal() -> None:
    """Ctrl-C goes to whoever has the terminal as its own."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def terminal(shell: Shell, *arguments: str) -> Iterator[Terminal]:
    keyboard, screen = os.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    process = subprocess.Popen(
        [COMMAND, *arguments],
        env={**shell.environment, "TERM": "xterm"},
        stdin=screen,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
        preexec_fn=own_the_terminal,
    )
    os.close(screen)
    try:
        yield Terminal(process, keyboard)
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)
