"""The one reader of a console: it reads once a second for all who look, and not if nobody does.

With so many queues that this would take more than its share of a processor, it reads less often.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from shmbroker.cli.console.memory import Memory
from shmbroker.cli.console.queue import Watched
from shmbroker.cli.console.rows import Moment
from shmbroker.cli.console.snapshot import Change, Row, Snapshot
from shmbroker.cli.console.standing import Standing, standing
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.queue.writer import without_writer

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.instance.config.config import Config

INTERVAL: Final = 1.0
INTERVAL_MAX: Final = 3.0
SHARE: Final = 0.05
"""Of a processor, at most, for readings of all queues."""
CRITICAL_INTERVAL: Final = 10.0
CRITICAL_SHARE: Final = 0.02
"""To see which queues are without their writer takes longer, with thousands of them; nobody waits
for it."""
COUNTED: Final = ("depth", "in_per_second", "out_per_second", "consumers", "producers")


class Reader:
    """From any thread."""

    def __init__(self, config: Config, others: Mapping[str, str]) -> None:
        """`others`: addresses of consoles of other members, by name."""
        self.config, self._others = config, others
        self.memory = Memory(config.vhost)
        self.standing: Standing = self.standing_now()
        self._lock = threading.RLock()
        self._snapshot = Snapshot()
        self._before: Moment | None = None
        self._sums = dict.fromkeys(COUNTED, 0.0) | {"critical": 0}
        self._why = ""
        self._critical: dict[str, str] = {}
        self._critical_due = float("-inf")
        self._read_at = float("-inf")
        self._pause = INTERVAL
        """Until all queues are read again, while somebody listens."""
        self._watched: Counter[str] = Counter()
        self._details: dict[str, Watched] = {}
        self._listeners: set[Callable[[], None]] = set()
        self._wakes = threading.Event()
        threading.Thread(target=self._run, name="console reader", daemon=True).start()

    # --- for who asks -------------------------------------------------------------------------

    def standing_now(self) -> Standing:
        return standing(self.config, self._others)

    def state(self) -> dict[str, Any]:
        """Of the instance, and the sums of all queues."""
        with self._lock:
            return {
                **self.standing.fields,
                "queues": len(self._snapshot.rows),
                "unread": self._why,
                **self._sums,
            }

    def since(self, number: int) -> Change:
        with self._lock:
            return self._snapshot.since(number)

    @property
    def has_read(self) -> bool:
        with self._lock:
            return self._snapshot.number > 0

    def rows(self) -> list[Row]:
        return self.since(0).rows

    def names(self) -> list[str]:
        """Of all queues."""
        with self._lock:
            return list(self._snapshot.rows)

    def critical(self, name: str) -> str | None:
        with self._lock:
            return self._critical.get(name)

    def detail(self, name: str) -> dict[str, Any] | None:
        """Of a queue that is watched."""
        with self._lock:
            found = self._details.get(name)
            return None if found is None else found.shown

    def fresh(self) -> None:
        """What is known is at most an interval old, with or without listeners."""
        with self._lock:
            if time.monotonic() - self._read_at >= INTERVAL:
                self._read()
            is_due = time.monotonic() >= self._critical_due
        if is_due:
            self._wakes.set()

    @contextmanager
    def listening(self, heard: Callable[[], None], queue: str | None) -> Iterator[None]:
        """`heard` is called, in the thread of the reader, after each reading."""
        with self._lock:
            self._listeners.add(heard)
            if queue is not None:
                self._watched[queue] += 1
        self._wakes.set()
        try:
            yield
        finally:
            with self._lock:
                self._listeners.discard(heard)
                if queue is not None:
                    self._watched[queue] -= 1
                    if self._watched[queue] <= 0:
                        del self._watched[queue]
                        self._details.pop(queue, None)

    # --- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._wakes.clear()
            with self._lock:
                listeners = list(self._listeners)
                if listeners:
                    self._read_or_look_closer()
            for heard in listeners:
                heard()
            self._look_for_critical()
            self._wakes.wait(self._pause if self._listeners else None)

    def _read_or_look_closer(self) -> None:
        """A page that opens has had all queues read a moment ago; it does not wait for the next
        reading."""
        if time.monotonic() - self._read_at >= self._pause:
            self._read()
        elif self._watched and self.standing.shows_queues:
            with suppress(Error, OSError), self.memory.opened() as broker:
                self._look_closer(broker)

    def _look_for_critical(self) -> None:
        """Without the lock: whoever asks meanwhile is answered."""
        if time.monotonic() < self._critical_due or not self.standing.shows_queues:
            return
        began, found = time.thread_time(), dict[str, str]()
        with suppress(Error, OSError), self.memory.opened() as broker:
            found = without_writer(broker)
        cost = time.thread_time() - began
        with self._lock:
            self._critical = found
            self._critical_due = time.monotonic() + max(CRITICAL_INTERVAL, cost / CRITICAL_SHARE)

    def _read(self) -> None:
        began = time.thread_time()
        self._read_all()
        used = time.thread_time() - began
        self._pause = max(INTERVAL, min(INTERVAL_MAX, used / SHARE))

    def _read_all(self) -> None:
        self.standing = self.standing_now()
        self._read_at = time.monotonic()
        self._why = ""
        found: dict[str, Row] = {}
        if self.standing.shows_queues:
            try:
                with self.memory.opened() as broker:
                    found = self._rows(broker)
                    self._look_closer(broker)
            except (Error, OSError) as error:  # what is shown stays, with this
                self._why, self._before = str(error), None
                return
        else:
            self._before, self._details = None, {}
        self._snapshot.take(found)
        self._sums = {
            name: round(sum(row[name] for row in found.values()), 1) for name in COUNTED
        } | {"critical": sum(row["critical"] is not None for row in found.values())}

    def _rows(self, broker: Broker) -> dict[str, Row]:
        moment = Moment(broker)
        if self._before is None:  # it was another one, or nobody has looked for long
            self._critical, self._critical_due = {}, moment.at
        before, self._before = self._before, moment
        return moment.rows(before, self._critical)

    def _look_closer(self, broker: Broker) -> None:
        for name in list(self._watched):
            detail = self._details.setdefault(name, Watched(name))
            detail.read(broker, self._critical.get(name))
