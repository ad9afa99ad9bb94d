"""What a queue should do, whatever its settings: a list of messages, and what each setting adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from shmbroker.core.layout import DUPLICATE_IDS, MAX_DELIVERIES
from tests.support.settings_model.groups import GroupsModel
from tests.support.settings_model.message import ID, SELECTORS, MessageModel
from tests.support.settings_model.once import OnceModel

SLOTS = 8
SCHEDULED = 3
OLDEST = -1
CARRIED_PART, REPLACED_PART = 16, 8
"""One slot of so many is kept for what is carried, and for what was replaced."""


@dataclass(eq=False)
class QueueModel:
    name: str
    settings: dict[str, Any]
    slots: int = SLOTS
    dead_letter: QueueModel | None = None
    expiry_queue: QueueModel | None = None
    groups: GroupsModel | None = None
    log: list[MessageModel] = field(default_factory=list)
    """Every message that there ever was, by position."""
    scheduled: list[MessageModel] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    is_paused: bool = False
    vanishes_with: int | None = None

    def __post_init__(self) -> None:
        self.levels: int = self.settings.get("priorities", 0)
        self.is_last_value: bool = self.settings.get("last_value", False)
        self.is_kept: bool = self.settings.get("non_destructive", False)
        self.when_full: str = self.settings.get(
            "when_full", "drop-oldest" if self.is_kept else "block"
        )
        self.delays = self.settings.get("redelivery_delay") is not None
        self.max_deliveries: int | None = self.settings.get("max_deliveries", MAX_DELIVERIES)
        self.once = OnceModel(
            0 if self.is_kept or self.is_last_value
            else self.settings.get("duplicate_ids", DUPLICATE_IDS)
        )  # fmt: skip

    # --- what is there ------------------------------------------------------------------------

    @property
    def head(self) -> int:
        done = (message.position for message in self.log if message.state != "done")
        return next(done, len(self.log))

    def there(self) -> list[MessageModel]:
        return [message for message in self.log if message.state != "done"]

    def ready(self) -> list[MessageModel]:
        return [message for message in self.log if message.state == "ready"]

    def level(self, message: MessageModel) -> int:
        return min(message.level, self.levels - 1) if self.levels else 0

    def newest(self, key: str) -> MessageModel | None:
        mine = [message for message in self.there() if message.key == key]
        return max(mine, key=lambda message: (message.age, message.position), default=None)

    # --- limits -------------------------------------------------------------------------------

    @property
    def window(self) -> int:
        return len(self.log) - self.head

    def part(self, part: int) -> int:
        return self.slots - -(-self.slots // part)

    @property
    def most(self) -> int:
        """So many positions, for what does not replace."""
        slots = self.part(REPLACED_PART) if self.is_last_value else self.slots
        return min(slots, self.settings.get("max_messages") or slots)

    @property
    def most_of_all(self) -> int:
        """So many, if some of it replaces."""
        return self.part(CARRIED_PART) if self.is_last_value else self.slots

    def is_update(self, key: str | None) -> bool:
        return self.is_last_value and key is not None and self.newest(key) is not None

    def most_for(self, key: str | None) -> int:
        return self.most_of_all if self.is_update(key) else self.most

    def has_room(self, message: MessageModel) -> bool:
        return self.window < self.most_for(message.key)

    def find_room(self, message: MessageModel) -> bool:
        """Make some, if there is none."""
        while not self.has_room(message):
            if not self.make_room(message.key):
                return False
        return True

    def make_room(self, key: str | None) -> bool:
        return self.make_room_for(self.most_for(key), 1)

    def make_room_for(self, most: int, count: int) -> bool:
        return self.expire() > 0 or self.carry(most, count) or self.drop_oldest()

    def drop_oldest(self) -> bool:
        if self.when_full != "drop-oldest" or self.window == 0:
            return False
        oldest = self.log[self.head]
        if oldest.state != "ready":
            return False
        self.done(oldest, "dropped")
        return True

    def carry(self, most: int, count: int) -> bool:
        """The oldest go to the end, until half of what was replaced is free again, or so many."""
        live = len(self.there())
        if not self.is_last_value or live + count > most:
            return False
        wanted = min(live + (most - live) // 2, most - count)
        for _ in range(live + 1):
            if self.window <= wanted or self.window >= self.slots:
                break
            oldest = self.log[self.head]
            if oldest.state != "ready" or oldest.key is None:
                break
            copy = oldest.copy()
            self.append(copy)
            copy.age, copy.carried_from = oldest.age, oldest.position
            self.done(oldest, "carried")
        return self.window + count <= most

    # --- publishing ---------------------------------------------------------------------------

    def lifetime(self, ttl: float | None) -> float | None:
        ttl = ttl or self.settings.get("ttl")
        least, most = self.settings.get("ttl_min"), self.settings.get("ttl_max")
        if ttl is not None and least is not None:
            ttl = max(ttl, least)
        if most is not None:
            ttl = most if ttl is None else min(ttl, most)
        return ttl

    def append(self, message: MessageModel) -> None:
        message.position = message.age = len(self.log)
        self.log.append(message)

    def place(self, message: MessageModel, producer: tuple[str, int] | None = None) -> int:
        """There is room; the newest replaces those of its key that nobody has."""
        self.append(message)
        self.once.note(message.properties.get(ID), producer)
        self.settle(message)
        return message.position

    def settle(self, message: MessageModel) -> None:
        if not self.is_last_value or message.key is None:
            return
        newest = self.newest(message.key)
        for other in self.ready():
            if other.key == message.key and other is not newest:
                self.done(other, "replaced")

    def offer(self, message: MessageModel, *, returned: bool = False) -> bool:
        """Publish a copy that has no lifetime so far but its own, whatever its id.

        What is returned is older than all others of its key."""
        copy = message.copy()
        copy.ttl = self.lifetime(message.ttl)
        if not self.find_room(copy):
            return False
        self.append(copy)
        if returned:
            copy.age = OLDEST
        self.settle(copy)
        return True

    # --- taking -------------------------------------------------------------------------------

    def next(self, who: int, selector: str | None = None) -> MessageModel | None:
        """What is taken now; what is found on the way and may not be delivered is dead-lettered."""
        while (message := self.find(who, selector)) is not None:
            if self.decide(message):
                self.hold(message, who)
                return message
        return None

    def next_many(self, who: int, count: int) -> list[MessageModel]:
        """Taken first, decided upon afterwards; where the order is plain they are neighbours."""
        while True:
            taken: list[MessageModel] = []
            while len(taken) < count and (found := self.find(who, None)) is not None:
                is_plain = self.groups is None and not self.levels
                if taken and is_plain and found.position != taken[-1].position + 1:
                    break
                self.hold(found, who)
                taken.append(found)
            kept = [message for message in taken if self.decide(message)]
            if kept or not taken:
                return kept

    def find(self, who: int, selector: str | None) -> MessageModel | None:
        if self.is_paused:
            return None
        wants: Callable[[MessageModel], bool] = (
            SELECTORS[selector] if selector is not None else lambda message: True
        )
        if self.groups is not None:
            return self.groups.find(self.there(), who, wants)
        wanted = [message for message in self.ready() if wants(message)]
        return min(wanted, key=lambda each: (-self.level(each), each.position), default=None)

    def hold(self, message: MessageModel, who: int) -> None:
        message.state, message.holder = "held", who

    def decide(self, message: MessageModel) -> bool:
        """Whether it may be delivered; else it goes elsewhere."""
        if message.is_expired:
            self.dead_letter_one(message, "expired")
        elif self.is_spent(message.deliveries):
            self.dead_letter_one(message, "deliveries")
        elif not (message.came_back and self.delay(message, message.deliveries)):
            return True
        return False

    # --- dealing with what was taken ----------------------------------------------------------

    def done(self, message: MessageModel, count: str) -> None:
        message.state, message.holder = "done", None
        self.counts[count] += 1

    def is_spent(self, deliveries: int) -> bool:
        return self.max_deliveries is not None and deliveries >= self.max_deliveries

    def dead_letter_one(
        self, message: MessageModel, reason: str, deliveries: int | None = None
    ) -> None:
        """The dead-letter queue has room for all."""
        if message.state == "ready":
            message.state = "held"  # by whoever dead-letters it
        to = self.expiry_queue if reason == "expired" else self.dead_letter
        if to is not None:
            dead = message.copy()
            dead.ttl = None
            dead.properties |= {
                "dead.origin": self.name,
                "dead.reason": reason,
                "dead.count": message.properties.get("dead.count", 0) + 1,
                "dead.deliveries": message.deliveries if deliveries is None else deliveries,
            }
            assert to.offer(dead)
        self.done(message, "expired" if reason == "expired" else "dead_lettered")

    def delay(self, message: MessageModel, deliveries: int) -> bool:
        """It is redelivered later, if that is wanted and there is room for it."""
        if not self.delays or len(self.scheduled) >= SCHEDULED:
            return False
        later = message.copy()
        later.deliveries = deliveries
        self.scheduled.append(later)
        self.done(message, "delayed")
        return True

    def give_back(self, message: MessageModel) -> None:
        deliveries = message.counted()
        if self.is_spent(deliveries):
            self.dead_letter_one(message, "deliveries", deliveries)
        elif self.delay(message, deliveries):
            self.counts["redelivered"] += 1
        else:
            self.put_back(message)

    def put_back(self, message: MessageModel) -> None:
        message.deliveries, message.came_back = message.counted(), True
        self.untake(message)

    def untake(self, message: MessageModel) -> None:
        """It comes back, and that was no delivery."""
        message.state, message.holder = "ready", None
        self.counts["redelivered"] += 1
        self.settle(message)

    def reject(self, message: MessageModel) -> None:
        self.dead_letter_one(message, "rejected", message.counted())

    def leave(self, who: int) -> None:
        """The connection is closed: what it held comes back, and is decided upon later."""
        mine = [each for each in self.there() if each.state == "held" and each.holder == who]
        for message in mine:
            message.deliveries, message.came_back = message.counted(), True
            message.state, message.holder = "ready", None
            self.counts["redelivered"] += 1
        for message in mine:
            if message.state == "ready":
                self.settle(message)
        if self.groups is not None:
            self.groups.leave(who)

    # --- managing -----------------------------------------------------------------------------

    def expire(self) -> int:
        if self.is_paused:
            return 0
        over = [message for message in self.ready() if message.is_expired]
        for message in over:
            self.dead_letter_one(message, "expired")
        return len(over)

    def purge(self) -> int:
        ready = self.ready()
        for message in ready:
            self.done(message, "dropped")
        dropped = len(ready) + len(self.scheduled)
        self.scheduled.clear()
        return dropped

    def pass_over(
        self, to: QueueModel, limit: int | None, selector: str | None, moves: bool
    ) -> int:
        """Move or copy: how many."""
        done = 0
        for message in self.ready():
            if done == limit:
                break
            wanted = selector is None or SELECTORS[selector](message)
            if message.state != "ready" or message.is_expired or not wanted:
                continue
            if moves and not to.find_room(message):
                break
            if moves and self.is_paused:
                continue
            if not to.offer(message):
                break
            done += 1
            if moves:
                self.done(message, "acked")
        return done

    @property
    def published(self) -> int:
        return len(self.log) - self.counts["withdrawn"] - self.counts["carried"]
