"""The worker: one thread for what may wait for a lock of the catalog, or take long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")
Told = Callable[[T | Exception], None]
_Work = tuple[Callable[[], object], Callable[[object], None]]


class Worker:
    def __init__(self, call: Callable[[Callable[[], None]], None]) -> None:
        """`call`: of the thread in which is told what came of it."""
        self._call = call
        self._given: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="shmbroker-net-worker", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], T], told: Told[T]) -> None:
        """One after the other, in the order in which they are given."""
        self._given.put((work, told))  # type: ignore[arg-type]  # told takes what work returns

    def close(self) -> None:
        """What was given before is done; nobody is told."""
        self._given.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (given := self._given.get()) is not None:
            work, told = given
            try:
                made: object = work()
            except Exception as error:  # noqa: BLE001  # whoever has asked is told
                made = error
            self._call(partial(told, made))
