"""How far a benchmark has got: a line on a terminal, which goes away; nowhere else."""

from __future__ import annotations

import sys
import time

ERASE = "\r\x1b[K"
BAR = 24


class Steps:
    def __init__(self, what: str) -> None:
        self._what = what
        self._is_shown = sys.stderr.isatty()
        self._expected = self._done = 0
        self._began = time.monotonic()

    def expect(self, count: int) -> None:
        """So many steps from now on."""
        self._expected, self._done, self._began = count, 0, time.monotonic()

    def next(self, doing: str) -> None:
        """The step that begins now."""
        if self._is_shown:
            sys.stderr.write(f"{ERASE}{self._what} {self._bar()}{doing}")
            sys.stderr.flush()
        self._done += 1

    def say(self, text: str) -> None:
        """What is to stay, to whomever reads."""
        sys.stderr.write(f"{ERASE if self._is_shown else ''}{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._is_shown:
            sys.stderr.write(ERASE)
            sys.stderr.flush()

    def _bar(self) -> str:
        if not self._expected:
            return ""
        share = min(self._done / self._expected, 1.0)
        bar = ("#" * int(BAR * share)).ljust(BAR)
        left = ""
        if self._done:
            seconds = (time.monotonic() - self._began) * (1 / share - 1)
            left = f"{seconds / 60:.0f} min left, " if seconds > 90 else f"{seconds:.0f} s left, "
        return f"[{bar}] {self._done} of {self._expected}, {left}"
