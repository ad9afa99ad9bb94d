"""Writes for people what was said last of each thing, a little later, in a thread of its own.

Whoever says it waits for no disk.  While a live is lost and another one takes over, all states come
within 20 ms: the last one is written, and neither the disk nor the interpreter is taken from what
programs wait for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Final

from shmbroker.ipc.base.closable import Closable

LATER_SECONDS: Final = 0.05


class Latest(Closable):
    """From any thread."""

    def __init__(self, name: str) -> None:
        self._wanted: dict[Hashable, Callable[[], object]] = {}
        self._said = self._written = self._waiting = 0
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def say(self, what: Hashable, write: Callable[[], object]) -> None:
        """That is done instead of what was last said of the same."""
        with self._changed:
            self._wanted[what] = write
            self._said += 1
            self._changed.notify_all()

    def wait(self) -> None:
        """Until all that was said before is there to be read; at once."""
        with self._changed:
            said = self._said
            self._waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._written >= said)
            self._waiting -= 1

    def close(self) -> None:
        """What was said before is written."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while (due := self._due()) is not None:
            said, wanted = due
            for write in wanted:
                with suppress(OSError):  # what it says is no reason to end
                    write()
            with self._changed:
                self._written = said
                self._changed.notify_all()

    def _due(self) -> tuple[int, list[Callable[[], object]]] | None:
        """None: it is closed, and nothing is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted or self._is_closed)
            self._changed.wait_for(lambda: self._waiting or self._is_closed, LATER_SECONDS)
            wanted, self._wanted = list(self._wanted.values()), {}
            return (self._said, wanted) if wanted else None
