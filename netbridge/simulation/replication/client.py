"""Programs on other hosts: they publish, commit, delete and consume, and note what is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shmbroker.netbridge.history.event import (
    Ack,
    Answered,
    Call,
    Commit,
    Delete,
    Delivery,
    Event,
    Outcome,
    Publish,
    Queue,
)
from shmbroker.netbridge.simulation.replication.log import Made, Op, Put, Taken
from shmbroker.netbridge.wire.words import Level

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.replication.member import MemberProcess
    from shmbroker.netbridge.simulation.replication.scene import Scene

DELAY_SECONDS = 0.0005, 0.01
TRY_SECONDS = 0.6
"""Until the next member is tried."""
AGAIN_SECONDS = 0.05
PATIENCE_SECONDS = 3.0
THINK_SECONDS = 0.01, 0.2
LEVELS = (None, None, None, Level.DISK, Level.REPLICATED, Level.DISK_AND_REPLICATED)
QUEUES = ("orders", "events", "scratch")
Ended = Callable[[Call], None]


class Asking:
    """One call: it is said to one member after the other until it is answered, or too long."""

    def __init__(
        self, client: Client, ops: tuple[Op, ...], level: Level | None, ended: Ended
    ) -> None:
        self.client, self.ops, self.level, self.ended = client, ops, level, ended
        self.world = client.scene.world
        self.began = self.world.now
        self.tries = 0
        self.is_over = False
        self._say()

    def _say(self) -> None:
        if self.is_over:
            return
        if self.world.now > self.began + PATIENCE_SECONDS:
            self.is_over = True
            self.ended(Call(self.began, asked=self.level))
            return
        self.tries += 1
        tries, member = self.tries, self.client.member
        self.world.later(self.world.between(*DELAY_SECONDS), lambda: self._arrives(member, tries))
        self.world.later(TRY_SECONDS, lambda: self._late(tries))

    def _arrives(self, member: str, tries: int) -> None:
        process = self.client.scene.members.get(member)
        if process is None or not process.host.is_up:
            self._elsewhere(tries)
            return

        def asked() -> None:
            if not process.write(self.ops, self.level, self._answered):
                self._elsewhere(tries)

        process.soon(asked)

    def _elsewhere(self, tries: int) -> None:
        if tries == self.tries:
            self.client.tries_another()
            self.world.later(AGAIN_SECONDS, self._say)

    def _late(self, tries: int) -> None:
        if tries == self.tries and not self.is_over:
            self._elsewhere(tries)

    def _answered(self, by: Answered) -> None:
        def comes() -> None:
            if not self.is_over:
                self.is_over = True
                now = self.world.now
                self.ended(Call(self.began, now, Outcome.OK, by, self.level))

        self.world.later(self.world.between(*DELAY_SECONDS), comes)


class Client:
    def __init__(self, scene: Scene, name: str) -> None:
        self.scene, self.name = scene, name
        self.member = scene.names_of_members[0]
        self.is_busy = False
        self.count = 0
        self.acking = 0
        """Acknowledgements that have not ended."""

    @property
    def events(self) -> list[Event]:
        return self.scene.history.events

    def tries_another(self) -> None:
        names = self.scene.names_of_members
        self.member = names[(names.index(self.member) + 1) % len(names)]

    def begin(self) -> None:
        world = self.scene.world
        world.later(world.between(*THINK_SECONDS), self._turn)

    def _turn(self) -> None:
        if self.scene.world.now < self.scene.busy_until:
            self.is_busy = True
            self.acts()

    def over(self) -> None:
        self.is_busy = False
        self.begin()

    def acts(self) -> None:
        raise NotImplementedError


class Publisher(Client):
    def __init__(self, scene: Scene, name: str, queue: str) -> None:
        super().__init__(scene, name)
        self.queue = queue

    def acts(self) -> None:
        random = self.scene.world.random
        kind = random.randrange(12)
        level = random.choice(LEVELS)
        self.count += 1
        self.scene.published += 1
        if self.queue == "scratch" and kind == 0:
            self._delete(level)
        elif kind == 1:
            self._commit(level)
        else:
            self._publish(level)

    def _publish(self, level: Level | None) -> None:
        queue = self.scene.queues[self.queue]
        put = Put(queue, f"{self.name}-{self.count}", self.name, self.count)

        def ended(call: Call) -> None:
            event = Publish(call, queue, put.message, self.name, put.number)
            self.events.append(event)
            self.over()

        Asking(self, (put,), level, ended)

    def _commit(self, level: Level | None) -> None:
        queues = (self.scene.queues["orders"], self.scene.queues["events"])
        puts = tuple(
            Put(queue, f"{self.name}-t{self.count}", f"{self.name} t", self.count)
            for queue in queues
        )

        def ended(call: Call) -> None:
            self.events.append(Commit(call, tuple((put.queue, put.message) for put in puts)))
            self.over()

        Asking(self, puts, level, ended)

    def _delete(self, level: Level | None) -> None:
        """And make it again."""
        former = self.scene.queues[self.queue]
        made = Queue(self.queue, former.incarnation + 1)

        def ended(call: Call) -> None:
            self.events.append(Delete(call, former))
            self.over()

        self.scene.queues[self.queue] = made
        Asking(self, (Made(made),), level, ended)


class Founder(Client):
    """Makes the queues at the beginning."""

    def acts(self) -> None:
        def ended(call: Call) -> None:
            if call.outcome is not Outcome.OK:
                self.acts()
                return
            self.is_busy = False
            for client in self.scene.clients:
                client.begin()

        Asking(self, tuple(Made(queue) for queue in self.scene.queues.values()), None, ended)


class Consumer(Client):
    def __init__(self, scene: Scene, name: str, queue: str) -> None:
        super().__init__(scene, name)
        self.queue = queue

    def acts(self) -> None:
        process = self.scene.members.get(self.member)
        if process is None or not process.serves:
            self.tries_another()
            self.over()
            return
        process.soon(lambda: self._takes(process))
        self.over()

    def _takes(self, process: MemberProcess) -> None:
        put, was_delivered = process.deliver(self.queue)
        if put is None:
            return
        world = self.scene.world
        self.events.append(Delivery(world.now, put.queue, put.message, was_delivered))
        if world.random.randrange(4):
            self.acking += 1
            world.later(world.between(0.0, 0.1), lambda: self._acks(put))

    def _acks(self, put: Put) -> None:
        level = self.scene.world.random.choice(LEVELS)
        taken = Taken(put.queue, put.message)

        def ended(call: Call) -> None:
            self.events.append(Ack(call, put.queue, put.message))
            self.acking -= 1

        Asking(self, (taken,), level, ended)
