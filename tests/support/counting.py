"""Programs that publish and consume all the time while brokers are struck, and count."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

import shmbroker
from shmbroker import Broker, Empty, Error, Message, Queue, QueueFull
from shmbroker.ipc.message.confirm import Confirm

PATIENCE = 60.0
GROUPS = 4
"""Of who publishes, in queues with groups."""


@dataclass
class Programs:
    """In shared memory, beside each broker.  A publisher counts what was confirmed, and a consumer
    what it has acknowledged; of a call that failed nobody knows whether it was carried out."""

    vhosts: dict[str, str]
    queues: Mapping[str, Mapping[str, Any]]
    """Their settings: in those with groups who publishes has several."""
    confirm: Confirm | None = None
    """What is asked for."""
    is_over: Event = field(default_factory=Event)
    confirmed: set[bytes] = field(default_factory=set)
    tried: set[bytes] = field(default_factory=set)
    acknowledged: list[bytes] = field(default_factory=list)
    in_doubt: Counter[bytes] = field(default_factory=Counter)
    """Taken, and not known to be acknowledged."""
    takers: dict[bytes, list[str]] = field(default_factory=lambda: defaultdict(list))
    flagged: set[bytes] = field(default_factory=set)
    """Delivered again, as they say themselves."""
    of_groups: dict[bytes, list[int]] = field(default_factory=lambda: defaultdict(list))
    faults: list[BaseException] = field(default_factory=list)
    _threads: list[Thread] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def publish(self, name: str, *queues: str) -> None:
        self._begin(lambda: self._publish(name, queues))

    def consume(self, name: str, queue: str, leaves: Event) -> None:
        self._begin(lambda: self._consume(name, queue, leaves))

    def join(self) -> None:
        for each in self._threads:
            each.join(PATIENCE)
            assert not each.is_alive()

    def missing(self) -> set[bytes]:
        with self._lock:
            return self.confirmed - set(self.acknowledged) - self.in_doubt.keys()

    def drain(self, patience: float) -> None:
        """Wait until all that was confirmed has come, and a moment longer for what comes twice."""
        late = time.monotonic() + patience
        while self.missing() and time.monotonic() < late:
            time.sleep(0.05)  # they are consumed in other threads
        time.sleep(0.3)

    def verdict(self) -> list[str]:
        """What is wrong, after the end."""
        times = Counter(self.acknowledged)
        out_of_order = {group: found for group, found in self.of_groups.items()
                        if found != sorted(found)}  # fmt: skip
        wrong: dict[str, Collection[Any]] = {
            "failed": self.faults,
            "missing": self.missing(),
            "twice": [(body, self.takers[body]) for body, count in times.items()
                      if count > 1 and body not in self.flagged],
            "never published": times.keys() - self.tried,
            "out of order": out_of_order.items(),
        }  # fmt: skip
        return [f"{len(found)} {what}: {sorted(map(str, found))[:20]}"
                for what, found in wrong.items() if found]  # fmt: skip

    def _begin(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as fault:
                self.faults.append(fault)
                raise

        self._threads.append(Thread(target=run, daemon=True))
        self._threads[-1].start()

    def _publish(self, name: str, queues: Sequence[str]) -> None:
        numbers: Counter[str] = Counter()
        while not self.is_over.is_set():
            with suppress(Error), self._connected(name) as broker:
                opened = [broker.declare_queue(each, **self.queues[each]) for each in queues]
                while not self.is_over.wait(0.002):
                    for queue in opened:
                        numbers[queue.name] += 1  # whatever comes of it
                        self._publish_one(name, queue, numbers[queue.name])
            self.is_over.wait(0.05)  # nothing tells that one may connect again

    def _publish_one(self, name: str, queue: Queue, number: int) -> None:
        has_groups = self.queues[queue.name].get("groups", False)
        body = f"{queue.name} {name} {number}".encode()
        self.tried.add(body)
        with suppress(QueueFull):
            group = f"{name} {number % GROUPS}" if has_groups else None
            queue.publish(body, group=group, timeout=0.1, confirm=self.confirm)
            with self._lock:
                self.confirmed.add(body)

    def _consume(self, name: str, queue: str, leaves: Event) -> None:
        while not leaves.is_set():
            with suppress(Error), self._connected(name) as broker:
                found = broker.queue(queue)
                while not leaves.is_set():
                    with suppress(Empty), found.get(timeout=0.1) as message:
                        self._take(name, message)
            leaves.wait(0.05)  # nothing tells that one may connect again

    def _take(self, name: str, message: Message) -> None:
        body = bytes(message.body)
        with self._lock:
            self.in_doubt[body] += 1
            self.takers[body].append(f"{name} {time.time():.3f}")
            if message.redelivered:
                self.flagged.add(body)
            if message.group is not None and not message.redelivered:
                self.of_groups[message.group.encode()].append(int(body.split()[2]))
        message.ack()
        with self._lock:
            self.acknowledged.append(body)
            self.in_doubt -= Counter([body])

    def _connected(self, name: str) -> Broker:
        return shmbroker.connect(f"shm://{self.vhosts[name]}", name="program")
