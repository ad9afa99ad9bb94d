"""How far streams of other nodes have come to the queues of a node that leaves.

Its successor knows the same from then on.  So what others have in doubt, sent there and not
confirmed, they send to the successor, and what had come is dropped there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from struct import Struct
from typing import Any, Final

from shmbroker.ipc.base.errors import InvalidArgument, NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.sink.sink import ORIGIN_BYTES, Sink

Row = dict[str, Any]
OF: Final = "streams"
"""The key of the queue's name in a row."""
MARKS: Final = "$sink.marks"
"""Of streams to a node or through an exchange: how far they are (ipc/sink/routed.c)."""
STREAM: Final = Struct(f"<{ORIGIN_BYTES}sq")
TOGETHER: Final = 500


def rows(broker: Broker, queues: Iterable[Queue]) -> Iterator[Row]:
    """Those of remote producers are not among them (remote_programs.py), but for what they have
    published through exchanges: of that the queues know the highest number, and no other."""
    for queue in [*queues, *_marks(broker)]:
        with suppress(NotFound):  # deleted since
            found = [each for each in queue.origins() if each.position and not each.is_counted]
            for at in range(0, len(found), TOGETHER):
                packed = (STREAM.pack(bytes.fromhex(each.identity), each.position)
                          for each in found[at : at + TOGETHER])  # fmt: skip
                yield {OF: queue.name, "rows": b"".join(packed)}


def _marks(broker: Broker) -> list[Queue]:
    try:
        return [broker.queue(MARKS)]
    except NotFound:
        return []


def resume(broker: Broker, row: Row) -> None:
    """What another node has told is known here.  Error, TypeError, KeyError, struct.error: it is
    none."""
    name, told = row[OF], row["rows"]
    if len(told) % STREAM.size:
        raise InvalidArgument(f"these are no streams of queue {name!r}")
    if name == MARKS:
        made = Sink(broker, bytes(ORIGIN_BYTES), stops_at_refused=True)
        made.to_node()  # makes it
        made.close(forgets=True)
    queue = broker.queue(name)
    known = {each.identity: each.position for each in queue.origins()}
    for identity, position in STREAM.iter_unpack(told):
        if known.get(identity.hex(), 0) >= position:  # perhaps of a program that has come already
            continue
        sink = Sink(broker, identity)
        try:
            if sink.to_queue(queue) < position:
                sink.skip(position)
        finally:
            sink.close()
