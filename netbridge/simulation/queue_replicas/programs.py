"""Programs that use the originals: single messages, and transactions over all queues."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.queue_replicas.memory import Memory
from shmbroker.netbridge.simulation.queue_replicas.queue import Queue
from shmbroker.netbridge.simulation.queue_replicas.watch import NAMES, Watch

USE_SECONDS: Final = 0.005, 0.12
STEP_SECONDS: Final = 0.0001, 0.02
DEAD_SECONDS: Final = 0.8
"""Until a transaction is ended whose program was killed in it."""
DIES: Final = 0.03
DEPTH_MAX: Final = 9
DEPTH_AT_REST: Final = 3
BURSTS: Final = (1, 1, 2, 4)

Step = Callable[[], None]


class Programs:
    def __init__(self, host: Host, memory: Memory, watch: Watch, durable: frozenset[str]) -> None:
        self._host, self._world, self._memory, self._watch = host, host.world, memory, watch
        self._durable = durable
        self.published = 0
        self.ends_at = 0.0
        self._away_until: dict[str, float] = {}
        self._taken: dict[int, int] = {}
        """Messages that a transaction has, and nobody else, and in which life of the memory."""

    # --- queues -------------------------------------------------------------------------------

    def begin(self) -> None:
        for name in NAMES:
            self._queue(name)
        self._use()

    def _queue(self, name: str) -> Queue | None:
        found = self._memory.queues.get(name)
        if found is None and self._world.now >= self._away_until.get(name, 0.0):
            found = self._memory.declare(name, is_durable=name in self._durable)
            self._memory.changed()
        return found

    def deletes(self, name: str, seconds: float) -> None:
        if self._memory.queues.pop(name, None) is not None:
            self._away_until[name] = self._world.now + seconds
            self._memory.changed()

    # --- what they do -------------------------------------------------------------------------

    def _use(self) -> None:
        """They go on while their broker is killed, or stands still."""
        if self._world.now >= self.ends_at:
            return
        self._world.later(self._world.between(*USE_SECONDS), self._use)
        if self._host.is_up:
            does = self._world.random.choice((self._publish, self._take, self._transact))
            does()

    def _publish(self) -> None:
        queue = self._queue(self._world.random.choice(NAMES))
        for _ in range(self._world.random.choice(BURSTS) if queue is not None else 0):
            assert queue is not None
            self._put(queue)
        self._memory.changed()

    def _put(self, queue: Queue) -> None:
        if not queue.is_full and len(queue.content) < DEPTH_MAX:
            self.published += 1
            self._watch.published(queue, self.published)
            queue.publish(self.published)

    def _ready(self, queue: Queue) -> list[int]:
        """Positions of messages that may be taken, in order."""
        if not self._memory.is_delivered(queue):
            return []
        end, life = self._memory.end(queue), self._memory.life
        free = {at: each for at, each in queue.content.items() if self._taken.get(each) != life}
        return [at for at in free if at < end]

    def _take(self) -> None:
        """From the front, or what has expired somewhere."""
        random = self._world.random
        queue = self._queue(random.choice(NAMES))
        ready = self._ready(queue) if queue is not None else []
        for _ in range(min(random.choice(BURSTS), len(ready))):
            assert queue is not None
            at = ready.pop(random.choice((0, 0, random.randrange(len(ready)))))
            self._take_singly(queue, at)
        self._memory.changed()

    def _take_singly(self, queue: Queue, at: int) -> None:
        self._watch.singly.add(queue.bodies[at])
        queue.retire(at)

    def _transact(self) -> None:
        """Publish to some queues, or take from some, or both; a program may be killed in it."""
        random = self._world.random
        steps: list[Step] = []
        for name in random.sample(NAMES, random.randint(2, len(NAMES))):
            queue = self._queue(name)
            if queue is None:
                continue
            ready = self._ready(queue)
            if ready and random.random() < 0.5:
                number = queue.bodies[ready[0]]
                self._taken[number] = self._memory.life
                steps.append(partial(self._settle, queue, ready[0], number))
            else:
                steps.append(partial(self._put, queue))
        self._memory.under_way += 1
        self._memory.committed += 1
        self._goes_on(steps, self._memory.life)

    def _settle(self, queue: Queue, at: int, number: int) -> None:
        if queue.content.get(at) == number:
            queue.retire(at)

    def _goes_on(self, steps: list[Step], life: int) -> None:
        """Step after step, in this memory."""
        if life != self._memory.life:
            return
        if steps:
            steps.pop()()
            dies = self._world.random.random() < DIES
            seconds = DEAD_SECONDS if dies else self._world.between(*STEP_SECONDS)
            self._world.later(seconds, partial(self._goes_on, steps, life))
        else:
            self._memory.under_way -= 1
        self._memory.changed()

    # --- at rest ------------------------------------------------------------------------------

    def rest(self) -> None:
        """Little is left in the queues, and so close together that a small replica has a place."""
        for name in NAMES:
            queue = self._queue(name)
            for at in self._ready(queue) if queue is not None else []:
                assert queue is not None
                if at < queue.tail - DEPTH_AT_REST:
                    self._take_singly(queue, at)
        self._memory.changed()
