"""Settings of queues together, against a plain model: any of them, in any combination and order.

Two participants publish to, take from and look at queues that were declared at random with:
priorities, limits, deliveries and dead letters, expiry, selectors, redelivery after a delay; they
schedule messages as well, and cancel some.  After each step the answer, and what can be looked at,
is what the model says.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import shmbroker
from shmbroker.core.layout import LEVEL_DEFAULT, MAX_DELIVERIES
from shmbroker.ipc import vhost as vhosts
from tests.conftest import vhost_for_a_while

PARTICIPANTS = 2
SLOTS = 8
AT_ONCE = 1e-9
"""A time to live that is over when the message is looked at."""

NOT_TODAY = 7 * 86400.0
SCHEDULED = 3

who = st.integers(0, PARTICIPANTS - 1)
anything = st.integers(0, 1000)
priorities = st.none() | st.integers(0, 9)
selectors = st.sampled_from(["n = 1", "n > 1", "n IS NULL", "$priority > 4", "n = 99"])


@dataclass(eq=False)
class MessageModel:
    position: int
    body: bytes
    level: int
    n: int | None
    is_expired: bool
    origin: str | None = None
    deaths: int = 0
    state: str = "ready"
    deliveries: int = 0
    holder: int | None = None
    came_back: bool = False
    """In its place, without a delay."""

    def is_selected(self, selector: str) -> bool:
        match selector:
            case "n = 1":
                return self.n == 1
            case "n > 1":
                return self.n is not None and self.n > 1
            case "n IS NULL":
                return self.n is None
            case "$priority > 4":
                return self.level > 4
        return False


@dataclass(eq=False)
class QueueModel:
    name: str
    levels: int = 0
    max_deliveries: int | None = MAX_DELIVERIES
    dead_letter: QueueModel | None = None
    expiry_queue: QueueModel | None = None
    max_messages: int | None = None
    when_full: str = "block"
    slots: int = SLOTS
    log: list[MessageModel] = field(default_factory=list)
    expired: int = 0
    dead_lettered: int = 0
    dropped: int = 0
    returned: int = 0
    delays: bool = False
    scheduled: list[MessageModel] = field(default_factory=list)

    @property
    def head(self) -> int:
        done = (message.position for message in self.log if message.state != "done")
        return next(done, len(self.log))

    @property
    def is_full(self) -> bool:
        return len(self.log) - self.head >= min(self.slots, self.max_messages or self.slots)

    def there(self) -> list[MessageModel]:
        return [message for message in self.log if message.state != "done"]

    def place(self, message: MessageModel) -> int:
        level = min(message.level, self.levels - 1) if self.levels else 0
        return -level * 1_000_000 + message.position

    def waiting(self) -> list[MessageModel]:
        """In the order in which they are taken."""
        ready = [message for message in self.log if message.state == "ready"]
        return sorted(ready, key=self.place)

    def add(self, message: MessageModel) -> int:
        message.position = len(self.log)
        self.log.append(message)
        return message.position

    def bury(self, message: MessageModel, to: QueueModel | None) -> None:
        message.state, message.holder = "done", None
        if to is not None:
            to.add(
                MessageModel(
                    0, message.body, message.level, message.n, False, self.name, message.deaths + 1
                )
            )

    def bury_dead(self, message: MessageModel) -> None:
        self.dead_lettered += 1
        self.bury(message, self.dead_letter)

    def bury_expired(self, message: MessageModel) -> None:
        self.expired += 1
        self.bury(message, self.expiry_queue)

    def is_spent(self, message: MessageModel) -> bool:
        return self.max_deliveries is not None and message.deliveries >= self.max_deliveries

    def next(self, selector: str | None = None) -> MessageModel | None:
        """What is taken now; what is found on the way and may not be delivered is buried."""
        for message in self.waiting():
            if selector is not None and not message.is_selected(selector):
                continue
            if message.is_expired:
                self.bury_expired(message)
            elif self.is_spent(message):
                self.bury_dead(message)
            elif not (message.came_back and self.delay(message)):
                return message
        return None

    def delay(self, message: MessageModel) -> bool:
        """It is redelivered later, if that is wanted and there is room for it."""
        if not self.delays or len(self.scheduled) >= SCHEDULED:
            return False
        message.state, message.holder = "done", None
        self.scheduled.append(message)
        return True

    def make_room(self) -> bool:
        if self.is_full:
            self.expire()
        while self.is_full and self.when_full == "drop-oldest":
            oldest = self.log[self.head]
            if oldest.state != "ready":
                break
            oldest.state = "done"
            self.dropped += 1
        return not self.is_full

    def expire(self) -> int:
        over = [each for each in self.log if each.state == "ready" and each.is_expired]
        for message in over:
            self.bury_expired(message)
        return len(over)


class Machine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.stack = ExitStack()
        self.vhost = self.stack.enter_context(vhost_for_a_while())
        vhosts.create(self.vhost, arena_bytes=16 << 20)
        self.brokers = [self.connect() for _ in range(PARTICIPANTS)]
        self.queues: list[QueueModel] = []
        self.held: list[tuple[QueueModel, MessageModel, Any]] = []
        self.numbers = 0

    def connect(self) -> shmbroker.Broker:
        return shmbroker.connect(f"shm://{self.vhost}")

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.held.clear()
            for broker in self.brokers:
                broker.close()
            self.stack.close()

    def pick(self, number: int) -> QueueModel:
        return self.queues[number % len(self.queues)]

    def real(self, who: int, queue: QueueModel) -> shmbroker.Queue:
        return self.brokers[who].queue(queue.name)

    # --- steps --------------------------------------------------------------------------------

    @precondition(lambda self: len(self.queues) < 6)
    @rule(
        who=who,
        levels=st.sampled_from([0, 0, 2, 10]),
        max_deliveries=st.sampled_from([None, 1, 2, 3, MAX_DELIVERIES]),
        has_dead_letter=st.booleans(),
        has_expiry_queue=st.booleans(),
        max_messages=st.sampled_from([None, None, 1, 3, 20]),
        when_full=st.sampled_from(["block", "fail", "drop-oldest"]),
        delays=st.sampled_from([False, False, True]),
    )
    def declare(
        self,
        who: int,
        levels: int,
        max_deliveries: int | None,
        has_dead_letter: bool,
        has_expiry_queue: bool,
        max_messages: int | None,
        when_full: Any,
        delays: bool,
    ) -> None:
        name = f"q{len(self.queues)}"
        made = QueueModel(name, levels, max_deliveries)
        made.max_messages, made.when_full, made.delays = max_messages, when_full, delays
        broker = self.brokers[who]
        for wanted, setting in (
            (has_dead_letter, "dead_letter"),
            (has_expiry_queue, "expiry_queue"),
        ):
            if wanted:  # large enough for all that may die in a run
                grave = QueueModel(f"{name}.{setting}", max_deliveries=None, slots=4096)
                broker.declare_queue(
                    grave.name, slots=4096, max_deliveries=None, max_scheduled=SCHEDULED
                )
                setattr(made, setting, grave)
                self.queues.append(grave)
        for _ in range(2):  # twice is once
            broker.declare_queue(
                name,
                slots=SLOTS,
                priorities=levels,
                max_deliveries=max_deliveries,
                dead_letter=f"{name}.dead_letter" if has_dead_letter else None,
                expiry_queue=f"{name}.expiry_queue" if has_expiry_queue else None,
                max_messages=max_messages,
                when_full=when_full,
                max_scheduled=SCHEDULED,
                redelivery_delay=NOT_TODAY if delays else None,
            )
        self.queues.append(made)

    @precondition(lambda self: self.queues)
    @rule(
        who=who,
        number=anything,
        priority=priorities,
        n=st.none() | st.integers(1, 3),
        expires=st.sampled_from([False, False, False, True]),
    )
    def publish(
        self, who: int, number: int, priority: int | None, n: int | None, expires: bool
    ) -> None:
        queue = self.pick(number)
        self.numbers += 1
        body = str(self.numbers).encode()

        def call() -> int:
            return self.real(who, queue).publish(
                body,
                priority=priority,
                properties=None if n is None else {"n": n},
                ttl=AT_ONCE if expires else None,
                timeout=0,
            )

        if not queue.make_room():
            with pytest.raises(shmbroker.QueueFull):
                call()
            return
        level = LEVEL_DEFAULT if priority is None else priority
        assert call() == queue.add(MessageModel(0, body, level, n, expires))

    @precondition(lambda self: self.queues)
    @rule(who=who, number=anything, priority=priorities)
    def schedule(self, who: int, number: int, priority: int | None) -> None:
        queue = self.pick(number)
        self.numbers += 1
        body = str(self.numbers).encode()
        level = LEVEL_DEFAULT if priority is None else priority
        real = self.real(who, queue)
        if len(queue.scheduled) >= SCHEDULED:
            with pytest.raises(shmbroker.QueueFull):
                real.publish(body, priority=priority, deliver_after=NOT_TODAY, timeout=0)
            return
        assert real.publish(body, priority=priority, deliver_after=NOT_TODAY, timeout=0) > 0
        queue.scheduled.append(MessageModel(0, body, level, None, False))

    @precondition(lambda self: any(queue.scheduled for queue in self.queues))
    @rule(who=who, number=anything)
    def cancel(self, who: int, number: int) -> None:
        queue = next(each for each in self.queues if each.scheduled)
        real = self.real(who, queue)
        chosen = queue.scheduled.pop(number % len(queue.scheduled))
        (found,) = (each.id for each in real.scheduled() if each.body == chosen.body)
        assert real.cancel_scheduled(found)
        assert not real.cancel_scheduled(found)

    @precondition(lambda self: self.queues)
    @rule(who=who, number=anything, selector=st.none() | selectors)
    def take(self, who: int, number: int, selector: str | None) -> None:
        queue = self.pick(number)
        expected = queue.next(selector)
        taken = next(self.real(who, queue).consume(selector=selector, timeout=0), None)
        # the generator is dropped, the message is not: it is ours until it is dealt with
        if expected is None:
            assert taken is None
            return
        assert taken is not None
        assert (taken.position, taken.body) == (expected.position, expected.body)
        assert taken.deliveries == expected.deliveries
        expected.state, expected.holder = "held", who
        self.held.append((queue, expected, taken))

    @precondition(lambda self: self.queues)
    @rule(who=who, number=anything)
    def receive(self, who: int, number: int) -> None:
        queue = self.pick(number)
        expected = queue.next()
        if expected is None:
            with pytest.raises(shmbroker.Empty):
                self.real(who, queue).receive(timeout=0)
            return
        assert self.real(who, queue).receive(timeout=0) == expected.body
        expected.state = "done"

    @precondition(lambda self: self.held)
    @rule(number=anything, how=st.sampled_from(["ack", "give_back", "give_back", "reject"]))
    def deal_with(self, number: int, how: str) -> None:
        queue, message, real = self.held.pop(number % len(self.held))
        getattr(real, how)()
        if how == "ack":
            message.state = "done"
        elif how == "reject":
            message.deliveries += 1
            queue.bury_dead(message)
        else:
            message.deliveries += 1
            if queue.is_spent(message):
                queue.bury_dead(message)
                return
            queue.returned += 1
            if not queue.delay(message):
                message.state, message.came_back = "ready", True

    @precondition(lambda self: self.queues)
    @rule(who=who, number=anything)
    def expire(self, who: int, number: int) -> None:
        queue = self.pick(number)
        assert self.real(who, queue).expire() == queue.expire()

    @precondition(lambda self: self.queues)
    @rule(who=who, number=anything)
    def purge(self, who: int, number: int) -> None:
        queue = self.pick(number)
        ready = [message for message in queue.log if message.state == "ready"]
        assert self.real(who, queue).purge() == len(ready) + len(queue.scheduled)
        queue.scheduled.clear()
        for message in ready:
            message.state = "done"
            queue.dropped += 1

    @rule(who=who)
    def reconnect(self, who: int) -> None:
        """What it held comes back, and is found to be spent when it is taken next."""
        self.brokers[who].close()
        for queue, message, _ in self.held:
            if message.holder == who:
                message.state, message.holder, message.came_back = "ready", None, True
                message.deliveries += 1
                queue.returned += 1
        self.held = [each for each in self.held if each[1].state == "held"]
        self.brokers[who] = self.connect()

    @precondition(lambda self: self.queues)
    @rule(who=who, number=anything)
    def look(self, who: int, number: int) -> None:
        queue = self.pick(number)
        real = self.real(who, queue)
        found = [(each.position, each.body, each.properties) for each in real.browse()]
        assert [each[:2] for each in found] == [(m.position, m.body) for m in queue.there()]
        for message, (_, _, properties) in zip(queue.there(), found, strict=True):
            assert properties.get("n") == message.n
            assert properties.get("dead.origin") == message.origin
            assert properties.get("dead.count", 0) == message.deaths
        told = real.statistics()
        assert (told.depth, told.published) == (len(queue.there()), len(queue.log))
        assert (told.expired, told.dead_lettered) == (queue.expired, queue.dead_lettered)
        assert (told.dropped, told.redelivered) == (queue.dropped, queue.returned)
        later = sorted((each.body, each.deliveries) for each in real.scheduled())
        assert later == sorted((each.body, each.deliveries) for each in queue.scheduled)
        assert told.scheduled == len(later)
        waiting = {level.priority: level.waiting for level in told.levels}
        assert sum(waiting.values()) == (len(queue.waiting()) if queue.levels else 0)


TestSettings = Machine.TestCase
TestSettings.settings = settings(
    max_examples=200,
    stateful_step_count=160,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
