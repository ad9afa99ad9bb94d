"""A vhost with several participants, the model of it, and the steps that are taken in both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import shmbroker
from shmbroker.ipc._native import lib
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.decided import is_decided
from tests.support.settings_model.exchange import EXCHANGES, RoutesModel
from tests.support.settings_model.groups import GroupsModel
from tests.support.settings_model.message import MessageModel
from tests.support.settings_model.queue import QueueModel
from tests.support.settings_model.transaction import TransactionModel

PARTICIPANTS = 3


class Deviation(AssertionError):
    """The queues do something else than the model."""


def same(what: str, real: object, expected: object) -> None:
    if real != expected:
        raise Deviation(f"{what}: {real!r:.999}, and the model says {expected!r:.999}")


@contextmanager
def raises(error: type[Exception], what: str) -> Iterator[None]:
    try:
        yield
    except error:
        return
    raise Deviation(f"{what}: no {error.__name__}, which the model expects")


@dataclass(eq=False)
class Held:
    """A message in somebody's hand."""

    who: int
    queue: QueueModel
    model: MessageModel
    real: Any


@dataclass(eq=False)
class Loop:
    """A consume loop that is in the middle of a message, or before its first."""

    who: int
    queue: QueueModel
    selector: str | None
    real: Iterator[Any]
    priority: int = 0
    exclusive: bool = False
    has_begun: bool = False
    current: Held | None = None
    start: int = 0
    place: int = 0
    seen: frozenset[int] = frozenset()


class World:
    def __init__(self, story: list[str]) -> None:
        self.story = story
        self.stack = ExitStack()
        self.vhost = self.stack.enter_context(vhost_for_a_while())
        vhosts.create(self.vhost, arena_bytes=16 << 20)
        self.brokers = [self.connect() for _ in range(PARTICIPANTS)]
        for name in EXCHANGES:
            self.brokers[0].declare_exchange(name, "topic")
        self.routes = RoutesModel()
        self.queues: list[QueueModel] = []
        self.held: list[Held] = []
        self.loops: list[Loop] = []
        self.transactions: list[TransactionModel] = []
        self.last: QueueModel | None = None
        self.bodies = 0
        self.names = 0
        self.changed: list[QueueModel] = []

    def connect(self) -> shmbroker.Broker:
        return shmbroker.connect(f"shm://{self.vhost}")

    def close(self) -> None:
        for loop in self.loops:
            loop.real.close()  # type: ignore[attr-defined]
        self.loops.clear()
        self.held.clear()
        self.transactions.clear()
        for broker in self.brokers:
            broker.close()
        self.stack.close()

    def is_committing(self) -> bool:
        """Something that is decided has not happened as a whole."""
        return any(is_decided(self.vhost, broker.participant) for broker in self.brokers)

    def tell(self, text: str) -> None:
        self.story.append(text)

    # --- choosing -----------------------------------------------------------------------------

    def who(self, random: Random) -> int:
        return random.randrange(PARTICIPANTS)

    def some(
        self, random: Random, wanted: Callable[[QueueModel], bool] = lambda queue: True
    ) -> QueueModel | None:
        """As often as not the one of the last step: more happens to one queue then."""
        queues = [queue for queue in self.queues if wanted(queue)]
        if not queues:
            return None
        again = self.last in queues and random.random() < 0.5
        chosen = self.last = self.last if self.last and again else random.choice(queues)
        self.changed.append(chosen)
        return chosen

    def real(self, who: int, queue: QueueModel) -> shmbroker.Queue:
        return self.brokers[who].queue(queue.name)

    def new_body(self, random: Random, queue: QueueModel | None = None) -> bytes:
        self.bodies += 1
        size = 0
        if queue is not None and counts_bytes(queue):
            size = random.choice([0, 700, 3000])
        elif random.random() < 0.05:
            size = 2000  # more than is copied at once
        return (b"%d " % self.bodies).ljust(size, b".")

    def add(self, name: str, settings: dict[str, Any], **more: Any) -> QueueModel:
        made = QueueModel(name, settings, **more)
        if settings.get("groups") or settings.get("single_active"):
            real = self.brokers[0].queue(name)
            made.groups = GroupsModel(
                settings.get("groups", 1),
                settings.get("single_active", False),
                settings.get("rebalance", False),
                lambda group: lib.sb_group_bucket(real._queue, group.encode(), len(group)),
            )
        self.queues.append(made)
        return made

    def forget(self, queue: QueueModel) -> None:
        self.queues.remove(queue)
        self.routes.forget(queue)
        self.held = [held for held in self.held if held.queue is not queue]
        for loop in [loop for loop in self.loops if loop.queue is queue]:
            self.loops.remove(loop)
            loop.real.close()  # type: ignore[attr-defined]


def counts_bytes(queue: QueueModel) -> bool:
    """Whether it is full is a matter of bytes, and not quite certain beforehand."""
    return "max_bytes" in queue.settings or "max_producer_bytes" in queue.settings


# --- steps ----------------------------------------------------------------------------------------

Step = Callable[[World, Random], bool | None]
STEPS: list[tuple[int, Step]] = []
"""How often, and what; False: it makes no sense just now, and another is tried."""

TRIES = 20


def step(weight: int) -> Callable[[Step], Step]:
    def register(function: Step) -> Step:
        STEPS.append((weight, function))
        return function

    return register


def take_steps(world: World, seed: str, numbers: Iterable[int], look: Step) -> int:
    """How many; each has chances of its own, so leaving some out does not change the others."""
    weights = [weight for weight, _ in STEPS]
    done = 0
    for number in numbers:
        random = Random(f"{seed}.{number}")
        world.changed.clear()
        for _, chosen in random.choices(STEPS, weights, k=TRIES):
            world.tell(f"{number}. {chosen.__name__}")
            if chosen(world, random) is not False:
                done += 1
                break
            world.story.pop()
        look(world, random)
    return done
