"""What a node that leaves knows of programs on other hosts, told to its successor before they come.

A program says there again what it has said here and was not answered.  By the numbers of its
producers, and by the marks of its commits and scheduled messages, the successor knows what of that
has happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument, NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.sink.sink import ORIGIN_BYTES, Sink
from shmbroker.netbridge.clustered.last_values import newest
from shmbroker.netbridge.clustered.streams import MARKS
from shmbroker.netbridge.serving import commit

Row = dict[str, Any]
PRODUCER: Final = "producer"
"""The key of the queue's name in a row of a producer."""
COMMITS: Final = "commits"
"""The key of the marks in a row of commits."""
TOGETHER: Final = 200
CONFIRM_SECONDS: Final = 30.0


def rows(broker: Broker, queues: Iterable[Queue]) -> Iterator[Row]:
    """No session is there any more, and no commit under way."""
    for queue in [*queues, *_there(broker, MARKS)]:
        with suppress(NotFound):  # deleted since
            for each in queue.origins():
                if each.is_counted and each.position:
                    yield _producer(broker, queue, bytes.fromhex(each.identity))
    for queue in _there(broker, commit.MARKS):
        marks = list(newest(queue).items())
        for at in range(0, len(marks), TOGETHER):
            yield {COMMITS: [list(each) for each in marks[at : at + TOGETHER]]}


def _producer(broker: Broker, queue: Queue, identity: bytes) -> Row:
    """How far it is, and what of that has not come."""
    sink = Sink(broker, identity, counts=True)
    try:
        position = sink.to_queue(queue)
        return {PRODUCER: queue.name, "of": identity, "at": position,
                "open": sorted(sink.open_positions())}  # fmt: skip
    finally:
        sink.close()


def _there(broker: Broker, name: str) -> list[Queue]:
    try:
        return [broker.queue(name)]
    except NotFound:
        return []


def is_of_them(row: Row) -> bool:
    return PRODUCER in row or COMMITS in row


def remember(broker: Broker, row: Row) -> None:
    """What another node has told.  Error, TypeError, ValueError, KeyError: it is none."""
    if COMMITS in row:
        _commits(broker, row[COMMITS])
        return
    name, identity, position, left_out = row[PRODUCER], row["of"], row["at"], row["open"]
    if name == MARKS:
        made = Sink(broker, bytes(ORIGIN_BYTES), stops_at_refused=True)
        made.to_node()  # makes it
        made.close(forgets=True)
    sink = Sink(broker, identity, counts=True)
    try:
        sink.to_queue(broker.queue(name))
        at = 0
        for each in [*left_out, position]:
            if each > at:
                sink.give_up(at, each)
            at = each + 1
    finally:
        sink.close()


def _commits(broker: Broker, marks: Any) -> None:
    queue = commit.marks(broker)
    for key, mark in marks:
        if len(mark) != commit.MARK.size or not key:
            raise InvalidArgument("these are no marks of commits")
        if queue.value(key) is None:
            queue.publish(mark, key=key, confirm="shm")
    queue.confirm(timeout=CONFIRM_SECONDS)
