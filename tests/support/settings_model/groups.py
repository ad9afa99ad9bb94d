"""Whose each bucket of groups is; with a single active consumer all messages are in one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.support.settings_model.message import GROUP, MessageModel

EXCLUSIVE = 101


@dataclass
class Bucket:
    owner: int
    rank: int
    is_settled: bool = False


@dataclass(eq=False)
class GroupsModel:
    count: int
    is_single: bool
    rebalances: bool
    number_of: Callable[[str], int]
    """In which bucket a group is: a hash decides, which is none of our business."""
    buckets: dict[int, Bucket] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    joined: set[int] = field(default_factory=set)

    def bucket_of(self, message: MessageModel) -> int | None:
        if self.is_single:
            return 0
        group = message.properties.get(GROUP)
        return None if group is None else self.number_of(group)

    def join(self, who: int) -> None:
        """The first time that this one takes."""
        if who not in self.joined and self.rebalances and not self.is_single:
            self.buckets.clear()
        self.joined.add(who)

    def let_go(self, who: int, group: str | None = None) -> int:
        wanted = None if group is None else 0 if self.is_single else self.number_of(group)
        gone = [
            number
            for number, bucket in self.buckets.items()
            if bucket.owner == who and wanted in (None, number)
        ]
        for number in gone:
            del self.buckets[number]
        return len(gone)

    def leave(self, who: int) -> None:
        self.let_go(who)
        self.joined.discard(who)
        self.ranks.pop(who, None)

    def may_be_exclusive(self, who: int) -> bool:
        bucket = self.buckets.get(0)
        return bucket is None or bucket.owner == who

    def find(
        self, there: Iterable[MessageModel], who: int, wants: Callable[[MessageModel], bool]
    ) -> MessageModel | None:
        """The first that this one may have; what is nobody's so far becomes its own on the way."""
        there = list(there)
        waits = False
        """For others to deal with what they have in hand: then it binds no more of such."""
        for message in there:
            number = self.bucket_of(message)
            if message.state != "ready":
                if number is not None and message.holder != who:
                    waits |= number in self.buckets and self.buckets[number].owner == who
                continue
            if not wants(message):
                continue
            if number is None:
                return message
            others = {
                each.holder
                for each in there
                if each.state == "held" and self.bucket_of(each) == number
            } - {who}
            bucket, rank = self.buckets.get(number), self.ranks.get(who, 0)
            if bucket is None and waits and others:
                continue
            if bucket is None or bucket.rank < rank:
                bucket = self.buckets[number] = Bucket(who, rank)
            if bucket.owner != who:
                continue
            if bucket.is_settled or not others:
                bucket.is_settled = True
                return message
            waits = True
        return None
