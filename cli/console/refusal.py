"""What is refused: why, with which status, and its line in the log of the instance.

However often somebody tries, the log grows slowly: of each kind only the first in a minute
are written, and then how many were left out.  The same holds for warnings of the HTTP server, which
are of requests that are none, and of too many connections.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

LINES_MAX: Final = 20
"""In a minute."""
MINUTE: Final = 60.0
TEXT_MAX: Final = 200
"""Characters of what somebody else has sent."""
WARNING_MAX: Final = 4000


class Refused(Exception):
    """An answer that is none: its status, a word for programs, and a sentence for people."""

    def __init__(self, status: int, word: str, why: str, **more: object) -> None:
        super().__init__(why)
        self.status, self.word, self.why = status, word, why
        self.more = more
        """Further keys of the answer."""
        self.headers: dict[str, str] = {}

    @property
    def content(self) -> dict[str, object]:
        return {"error": self.word, "why": self.why, **self.more}


class Refusals:
    """Writes them down; from any thread."""

    def __init__(self, write: Callable[..., Any], clock: Callable[[], float]) -> None:
        self._write, self._clock = write, clock
        self._lock = threading.Lock()
        self._began = clock()
        self._counts: Counter[tuple[str, str]] = Counter()
        """In this minute, by event and kind: many of one kind do not hide another one."""

    def tell(self, word: str, **fields: object) -> None:
        cut = {
            name: each[:TEXT_MAX] if isinstance(each, str) else each
            for name, each in fields.items()
        }
        self._append("console refused", word, {"why": word, **cut})

    def warn(self, kind: str, why: str) -> None:
        """`kind`: the message without what it is about."""
        self._append("console warning", kind, {"why": why[:WARNING_MAX]})

    def _append(self, event: str, kind: str, fields: dict[str, object]) -> None:
        with self._lock:
            now = self._clock()
            if now - self._began >= MINUTE:
                self._begin(now)
            self._counts[event, kind] += 1
            if self._counts[event, kind] <= LINES_MAX:
                self._write(event, **fields)

    def _begin(self, now: float) -> None:
        for (event, kind), count in self._counts.items():
            if count > LINES_MAX:
                self._write(event, why=kind, more=count - LINES_MAX)
        self._began, self._counts = now, Counter()

    def close(self) -> None:
        with self._lock:
            self._begin(self._clock())
