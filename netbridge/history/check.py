"""What must be true of a history; each rule says what is wrong, in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, TypeVar

from shmbroker.netbridge.history.event import (
    Ack,
    Call,
    Commit,
    Delete,
    Delivery,
    History,
    Outcome,
    Publish,
    Queue,
)
from shmbroker.netbridge.wire.words import Level

Kind = TypeVar("Kind")
Name = tuple[Queue, str]


class Checked:
    def __init__(self, history: History) -> None:
        self.history = history
        self.publishes = self._of(Publish)
        self.deliveries = self._of(Delivery)
        self.acks = self._of(Ack)
        self.commits = self._of(Commit)
        self.deletes = self._of(Delete)
        self.remains = {
            (queue, message) for queue, messages in history.remains.items() for message in messages
        }
        self.delivered = {(each.queue, each.message) for each in self.deliveries}
        self.gone = {each.queue for each in self.deletes if each.call.outcome is not Outcome.FAILED}
        """Queues that somebody wanted to delete."""

    def _of(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self.history.events if isinstance(each, kind)]

    def wrong(self, rules: Iterable[str]) -> Iterator[str]:
        for rule in rules:
            yield from getattr(self, rule)()

    # --- the rules ----------------------------------------------------------------------------

    def one_member_an_epoch(self) -> Iterator[str]:
        members: dict[int, set[str]] = defaultdict(set)
        for call in self._calls():
            if call.answered is not None and call.outcome is Outcome.OK:
                members[call.answered.epoch].add(call.answered.member)
        for epoch, names in sorted(members.items()):
            if len(names) > 1:
                yield f"epoch {epoch} was confirmed in by {' and '.join(sorted(names))}"

    def nothing_invented(self) -> Iterator[str]:
        """What comes was sent, and its sending has not failed."""
        sent = {(each.queue, each.message): each.call for each in self.publishes}
        for commit in self.commits:
            sent |= dict.fromkeys(commit.puts, commit.call)
        for name in sorted(self.remains | self.delivered, key=str):
            if name not in sent:
                yield f"{_told(name)} was never sent"
            elif sent[name].outcome is Outcome.FAILED:
                yield f"{_told(name)} has failed, and is there"

    def nothing_lost(self) -> Iterator[str]:
        acked = {(each.queue, each.message) for each in self.acks}
        acked |= {name for commit in self.commits for name in commit.acks}
        for each in self.publishes:
            if self._must_last(each.call, each.queue, each.message):
                name = each.queue, each.message
                if name not in self.remains and name not in acked:
                    yield f"{_told(name)} was confirmed ({_level(each.call)}), and is lost"

    def nothing_twice(self) -> Iterator[str]:
        for queue, messages in self.history.remains.items():
            for message, times in Counter(messages).items():
                if times > 1:
                    yield f"{_told((queue, message))} is there {times} times"
        seen: set[Name] = set()
        for each in sorted(self.deliveries, key=lambda each: each.time):
            name = each.queue, each.message
            if name in seen and not each.is_redelivered:
                yield f"{_told(name)} was delivered again, and not flagged"
            seen.add(name)

    def nothing_back_after_its_ack(self) -> Iterator[str]:
        last = self._last_deliveries()
        calls = [((each.queue, each.message), each.call) for each in self.acks]
        calls += [(name, commit.call) for commit in self.commits for name in commit.acks]
        for name, call in calls:
            if call.outcome is not Outcome.OK:
                continue
            delivery = last.get(name)
            if delivery is not None and delivery.time > call.ended:
                if not delivery.is_redelivered:
                    yield f"{_told(name)} came back after its ack, not flagged"
                elif self._must_last(call, *name):
                    yield f"{_told(name)} came back after its ack ({_level(call)})"
            if name in self.remains and self._must_last(call, *name):
                yield f"{_told(name)} was acknowledged ({_level(call)}), and is there"

    def order_of_producers(self) -> Iterator[str]:
        """First deliveries, and what is left."""
        who = {(each.queue, each.message): (each.producer, each.number) for each in self.publishes}
        came: dict[tuple[Queue, str], list[int]] = defaultdict(list)
        for each in sorted(self.deliveries, key=lambda each: each.time):
            name = each.queue, each.message
            if not each.is_redelivered and name in who:
                producer, number = who[name]
                came[each.queue, producer].append(number)
        left: dict[tuple[Queue, str], list[int]] = defaultdict(list)
        for queue, messages in self.history.remains.items():
            for message in messages:
                if (queue, message) in who:
                    producer, number = who[queue, message]
                    left[queue, producer].append(number)
        for numbers in (came, left):
            for (queue, producer), found in numbers.items():
                for first, second in pairwise(found):
                    if second < first:
                        yield f"{queue.name}: {producer}'s {second} comes behind its {first}"

    def deleted_stays_deleted(self) -> Iterator[str]:
        for each in self.deletes:
            if each.call.outcome is not Outcome.OK:
                continue
            if not self._is_lasting(each.call):
                continue
            for delivery in self.deliveries:
                if delivery.queue == each.queue and delivery.time > each.call.ended:
                    name = _told((delivery.queue, delivery.message))
                    yield f"{name} comes from a queue that was deleted"
            for left in sorted(self.remains, key=str):
                if left[0] == each.queue:
                    yield f"{_told(left)} is there, and its queue was deleted"

    def transactions_are_whole(self) -> Iterator[str]:
        acked = {(each.queue, each.message) for each in self.acks}
        acked |= {name for commit in self.commits for name in commit.acks}
        for commit in self.commits:
            puts = [name for name in commit.puts if name[0] not in self.gone]
            there = [name for name in puts if name in self.remains | self.delivered | acked]
            aside = any(message in self.history.set_aside for _, message in puts)
            if there and len(there) < len(puts) and not aside:
                missing = next(name for name in puts if name not in there)
                yield f"a transaction is there in part: {_told(missing)} is not"
            if not there and puts and commit.call.outcome is Outcome.OK:
                if self._must_last(commit.call, *puts[0]):
                    yield f"{_told(puts[0])} was committed ({_level(commit.call)}), and is lost"

    # --- what they share ----------------------------------------------------------------------

    def _calls(self) -> Iterator[Call]:
        for each in self.history.events:
            if not isinstance(each, Delivery):
                yield each.call

    def _must_last(self, call: Call, queue: Queue, message: str) -> bool:
        aside = message in self.history.set_aside
        return self._is_lasting(call) and not aside and queue not in self.gone

    def _is_lasting(self, call: Call) -> bool:
        """It was confirmed, and by more than one disk unless there was no more than one copy."""
        if call.outcome is not Outcome.OK:
            return False
        return call.asked is not Level.DISK or self.history.disk_alone_lasts

    def _last_deliveries(self) -> dict[Name, Delivery]:
        last: dict[Name, Delivery] = {}
        for each in sorted(self.deliveries, key=lambda each: each.time):
            last[each.queue, each.message] = each
        return last


RULES: Final = (
    "one_member_an_epoch",
    "nothing_invented",
    "nothing_lost",
    "nothing_twice",
    "nothing_back_after_its_ack",
    "order_of_producers",
    "deleted_stays_deleted",
    "transactions_are_whole",
)
AFTER_A_SPLIT: Final = ("nothing_invented", "nothing_lost", "transactions_are_whole")
"""Two members served, as `on-partition = "continue-alone"` lets them: what holds all the same."""


def check(history: History, rules: Iterable[str] = RULES) -> list[str]:
    """What is wrong; nothing, if it is empty."""
    return list(Checked(history).wrong(rules))


def _told(name: Name) -> str:
    queue, message = name
    return f"{queue.name}: {message}"


def _level(call: Call) -> str:
    return call.answered.level.value if call.answered is not None else "no level"
