"""The worker: threads of its own for what may wait for a lock of the catalog, or take long.

What is of one thing is done in the order in which it is given; what is of another one does not
wait for it while there is a thread.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")
Told = Callable[[T | Exception], None]
_Work = tuple[Callable[[], object], Callable[[object], None]]


class Worker:
    def __init__(
        self, call: Callable[[Callable[[], None]], None], threads: int = 1, *, nice: int = 0
    ) -> None:
        """`call`: of the thread in which is told what came of it.

        `nice`: so far it stands back behind other threads, as in nice(1).  Its threads begin with
        the first work.
        """
        self._call, self._nice = call, nice
        self._given: dict[Hashable, deque[_Work]] = {}
        """What is to be done, by what it is of: there as long as a thread has it, or is to."""
        self._begins: SimpleQueue[tuple[Hashable] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False
        self._count = threads
        self._threads: list[threading.Thread] = []

    def do(self, work: Callable[[], T], told: Told[T], of: Hashable = None) -> None:
        given: _Work = work, told  # type: ignore[assignment]  # told takes what work returns
        with self._lock:
            self._begin()
            if of in self._given:
                self._given[of].append(given)
            else:
                self._given[of] = deque([given])
                self._begins.put((of,))

    def _begin(self) -> None:
        while len(self._threads) < self._count and not self._is_closed:
            new = threading.Thread(target=self._run, name="shmbroker-net-worker", daemon=True)
            self._threads.append(new)
            new.start()

    def close(self) -> None:
        """What was given before is done; nobody is told."""
        with self._lock:
            self._is_closed = True
        for _ in self._threads:
            self._begins.put(None)
        for each in self._threads:
            each.join()

    def _run(self) -> None:
        if self._nice:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._nice)
        while (begins := self._begins.get()) is not None:
            (of,) = begins
            while (given := self._next(of)) is not None:
                work, told = given
                try:
                    made: object = work()
                except Exception as error:  # noqa: BLE001  # whoever has asked is told
                    made = error
                self._call(partial(told, made))

    def _next(self, of: Hashable) -> _Work | None:
        with self._lock:
            if self._given[of]:
                return self._given[of].popleft()
            del self._given[of]
            return None
