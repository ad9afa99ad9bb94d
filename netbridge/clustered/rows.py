"""Queues with their settings, exchanges and bindings: told by one broker, made by another one; and
ids, numbers and streams that are known there (inherited.py, remote_programs.py, streams.py); and
which transactions of programs on other hosts are whole there.

In the words of `Makes`: a MessagePack list of maps, so many in each as have room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgpack

from shmbroker.ipc.base.errors import (
    DeclaredDifferently,
    Error,
    InvalidArgument,
    NotFound,
)
from shmbroker.ipc.base.names import OWN
from shmbroker.ipc.catalog.catalog import BindingInfo, ExchangeInfo
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance.leaving import HELD
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.queue_replica.copy import match_of
from shmbroker.netbridge.cluster.codec import MAKES_BYTES_MAX
from shmbroker.netbridge.clustered import remote_programs, streams
from shmbroker.netbridge.clustered.inherited import OF, remember
from shmbroker.netbridge.serving import travelling
from shmbroker.netbridge.serving.answer import UNFIT

DEPTH_MAX: Final = 16
Row = dict[str, Any]


def rows(broker: Broker, queues: Iterable[Queue]) -> Iterator[Row]:
    """These queues, and all exchanges: in the order in which they can be made."""
    exchanges = {each.name: each for each in broker.exchanges() if not each.name.startswith(OWN)}
    for each in _alternates_first(exchanges):
        yield {"exchange": each.name, "kind": each.kind, "alternate": each.alternate}
    named = {each.queue: each for each in broker.subscriptions()}
    for queue in queues:
        row: Row = {"queue": queue.name}
        try:
            found = queue.explain()
            row |= {"slots": queue.slots, "paused": queue.statistics().is_paused}
        except NotFound:  # deleted since
            continue
        row["settings"] = {
            name: each.value for name, each in found.items() if each.source != "default"
        }
        if (known := named.get(queue.name)) is not None and known.exchange is not None:
            row |= {"subscription": known.name, "from": known.exchange, "key": known.key,
                    "shared": known.shared}  # fmt: skip
        yield row
    for bound in broker.bindings():
        if bound.to == "exchange" and {bound.exchange, bound.destination} <= exchanges.keys():
            yield _binding(bound)


def leading_to(broker: Broker, queues: Iterable[Queue]) -> Iterator[Row]:
    """Bindings of these queues."""
    names = {each.name for each in queues}
    for bound in broker.bindings():
        is_of_one = bound.to == "queue" and bound.destination in names
        if is_of_one and not bound.exchange.startswith(OWN):
            yield _binding(bound)


def _binding(bound: BindingInfo) -> Row:
    return {
        "from": bound.exchange, "to": bound.destination, "is": bound.to, "key": bound.key,
        "arguments": bound.arguments, "match": match_of(bound), "exclusive": bound.exclusive,
    }  # fmt: skip


def _alternates_first(exchanges: Mapping[str, ExchangeInfo]) -> Iterator[ExchangeInfo]:
    """One that has an alternate can be made when that is there."""
    left = dict(exchanges)
    while left:
        ready = [each for each in left.values() if each.alternate not in left]
        for each in ready or list(left.values()):  # else they stand in a ring, and one will fail
            del left[each.name]
            yield each


def pages(all_rows: Iterable[Row]) -> Iterator[bytes]:
    """InvalidArgument: one has no room in a page."""
    page: list[bytes] = []
    size = 0
    for row in all_rows:
        packed = msgpack.packb(row)
        if len(packed) > MAKES_BYTES_MAX - DEPTH_MAX:
            raise InvalidArgument(f"{row} is too long to be told to another broker")
        if size + len(packed) > MAKES_BYTES_MAX - DEPTH_MAX:
            yield _page(page)
            page, size = [], 0
        page.append(packed)
        size += len(packed)
    if page:
        yield _page(page)


def _page(packed: list[bytes]) -> bytes:
    made: bytes = msgpack.Packer().pack_array_header(len(packed)) + b"".join(packed)
    return made


def made(broker: Broker, page: bytes) -> str:
    """All of it is there; or why it is not."""
    try:
        found = msgpack.unpackb(page)
        ids = [row for row in found if OF in row]
        for row in found:
            if streams.OF in row:
                streams.resume(broker, row)
            elif travelling.OF in row:
                travelling.remember(broker, row)
            elif remote_programs.is_of_them(row):
                remote_programs.remember(broker, row)
            elif OF not in row:
                _make(broker, row)
        if ids:
            remember(broker, ids)
    except (*UNFIT, msgpack.UnpackException) as error:
        return f"these are no queues: {type(error).__name__} {error}"
    except Error as error:
        return str(error)
    return ""


def _make(broker: Broker, row: Row) -> None:
    """What is there stays as it is: its owner has made it so."""
    for name in (row.get("queue", ""), row.get("exchange", ""), row.get("from", "")):
        if name.startswith(OWN) and not name.startswith(HELD):
            raise InvalidArgument(f"{name!r} is a name of the broker's own")
    if "queue" in row:
        _make_queue(broker, row)
    elif "exchange" in row:
        if row["exchange"] not in {each.name for each in broker.exchanges()}:
            broker.declare_exchange(row["exchange"], row["kind"], alternate=row["alternate"])
    elif row["exclusive"]:
        broker.divert(row["from"], row["to"], exclusive=True, key=row["key"] or None)
    else:
        broker.bind(
            row["from"], row["to"], row["key"], to=row["is"], match=row["match"],
            arguments=row["arguments"] or None,
        )  # fmt: skip


def _make_queue(broker: Broker, row: Row) -> None:
    try:
        broker.queue(row["queue"])
        return
    except NotFound:
        pass
    if "subscription" in row:
        broker.subscription(
            row["subscription"], exchange=row["from"], key=row["key"], durable=True,
            shared=row["shared"], slots=row["slots"], **row["settings"],
        ).close()  # fmt: skip
        broker.unbind(row["from"], row["queue"], row["key"])  # it is told with the others
        return
    try:
        queue = broker.declare_queue(row["queue"], slots=row["slots"], **row["settings"])
    except DeclaredDifferently:  # somebody was quicker
        return
    if row["paused"]:
        queue.pause()
