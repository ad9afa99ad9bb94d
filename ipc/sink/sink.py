"""A sink: records of a stream go into queues, each exactly once.  For the broker's own use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from shmbroker.core.codes import FULL, INTERRUPTED, OK
from shmbroker.core.layout import OPEN_NUMBERS_MAX, RECORD_HEAD_BYTES
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import Error, InvalidArgument, error_for
from shmbroker.ipc.base.timeout import nanoseconds

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.exchange.exchange import Exchange
    from shmbroker.ipc.queue.queue import Queue

ANY = -1
ORIGIN_BYTES = 16
RETENTION = 7 * 86400.0
FOREVER = -1


def marks(broker: Broker) -> Queue:
    """Of streams in exchanges: the queue that keeps them, which no list shows.

    What a transaction publishes there is confirmed when the marks of all queues are, as they stood
    before it.
    """
    opened = ffi.new("sb_queue **")
    code = lib.sb_sink_marks(broker._connection, opened)
    if code < 0:
        raise error_for(code, "opening the marks of streams", ffi.errno, detail_of(code))
    return broker._queue_of(opened[0], None)


class Poured(NamedTuple):
    """What became of a buffer: whether all of it was dealt with, or why the next record waits."""

    code: int
    bytes: int
    appended: int
    seen: int
    refused: int
    view: memoryview
    """Of the answers; the sink's next buffer has others there."""
    has_stopped: bool = False
    """Before a message that is refused, for the reason that `code` has."""
    lacks_memory: bool = False
    """It is full, and no bell tells of room: it is the arena that has none."""

    @property
    def answers(self) -> list[int]:
        """For each message that was dealt with, before the sink gets its next buffer."""
        return self.view.tolist()

    @property
    def is_full(self) -> bool:
        """The next record finds no room: pour again, from `bytes` on."""
        return self.code == FULL and not self.has_stopped


class Sink(Closable):
    """Of one thread at a time."""

    def __init__(
        self,
        broker: Broker,
        origin: bytes,
        *,
        retention: float | None = RETENTION,
        checks: bool = False,
        counts: bool = False,
        stops_at_refused: bool = False,
        travels: bool = False,
        agent: tuple[bytes, bytes] | None = None,
    ) -> None:
        """`checks`: message ids are compared, as they are when a program publishes here.

        `counts`: it comes from a remote producer, which may retry what it has left out; for links
        gaps mean nothing.

        `stops_at_refused`: before a message that is refused; go on behind it.  Through an exchange
        one of its queues refuses it, and the others have it.

        `travels`: it comes over a network link, and its messages go over no other one.

        `agent`: it comes from the message transfer agent of another broker; the ids of this node
        and of that one.
        """
        if len(origin) != ORIGIN_BYTES:
            raise InvalidArgument(f"an origin has {ORIGIN_BYTES} bytes, not {len(origin)}")
        self._broker = broker
        self._answers = ffi.new("int64_t[]", 1)
        self._told = ffi.new("sb_poured *")
        high, low = (
            int.from_bytes(half, "little", signed=True) for half in (origin[:8], origin[8:])
        )
        kept = FOREVER if retention is None else int(retention * 1e9)
        made = ffi.new("sb_sink **")
        code = lib.sb_sink_open(broker._connection, high, low, kept, checks, counts, made)
        self._check(code, "opening a sink")
        self._sink = made[0]
        self._stops = stops_at_refused
        if stops_at_refused:
            lib.sb_sink_stop_at_refused(self._sink)
        if travels:
            lib.sb_sink_travels(self._sink)
        if agent is not None:
            here, there = agent
            code = lib.sb_sink_of_agent(self._sink, here, there)
            self._check(code, "opening a sink for an agent")

    def to_queue(self, queue: Queue, number: int = ANY) -> int:
        """Records of the queue with this number go to this one: the first position it lacks."""
        code: int = lib.sb_sink_to_queue(self._sink, number, queue._queue)
        return self._check(code, f"pouring into queue {queue.name!r}")

    def to_exchange(self, exchange: Exchange, number: int = ANY) -> int:
        """They go through this exchange: the first position that is not known there."""
        code: int = lib.sb_sink_to_exchange(self._sink, number, exchange._exchange)
        return self._check(code, f"pouring into exchange {exchange.name!r}")

    def to_node(self) -> int:
        """Each goes to the queue that it says it is for: the first position that is not known."""
        return self._check(lib.sb_sink_to_node(self._sink), "pouring into this node")

    def position(self, number: int = ANY) -> int:
        """All records of positions below are known there."""
        return self._check(lib.sb_sink_position(self._sink, number), "asking a sink")

    def open_positions(self, number: int = ANY) -> list[int]:
        """Those below `position` that were left out, and are neither retried nor given up."""
        found = ffi.new("int64_t[]", OPEN_NUMBERS_MAX)
        code: int = lib.sb_sink_open_positions(self._sink, number, found, OPEN_NUMBERS_MAX)
        return list(found[0 : self._check(code, "asking a sink")])

    def give_up(self, first: int, end: int, number: int = ANY) -> None:
        """These positions will not come: they are known, as if they had."""
        code: int = lib.sb_sink_give_up(self._sink, number, first, end)
        self._check(code, "giving up positions of a stream")

    def skip(self, position: int, number: int = ANY) -> None:
        """All positions below are known from now on, whether messages had them or not."""
        self._check(lib.sb_sink_skip(self._sink, number, position), "passing a message over")

    @property
    def full(self) -> Any:
        """The queue behind an exchange, as C knows it, that had no room for the next record; None
        if none had."""
        found = lib.sb_sink_full(self._sink)
        return None if found == ffi.NULL else self._broker._handles.shared(found)

    def queues(self) -> list[Any]:
        """As C knows them: those that have had something of the stream since it was opened."""
        count: int = lib.sb_sink_queues(self._sink, ffi.NULL, 0)
        found = ffi.new("sb_queue *[]", count)
        lib.sb_sink_queues(self._sink, found, count)
        return [self._broker._handles.shared(each) for each in found]

    def why(self, code: int) -> str:
        """In words, why a message was refused."""
        return str(self._error(code, "pouring"))

    def pour(
        self, records: Any, *, later: int = 0, timeout: float | None = 0, doubts: bool = False
    ) -> Poured:
        """Append those that are not known; `later` is added to times of expiry.

        `doubts`: each may have come before, and says where it is delivered that it may be so.
        """
        if doubts:
            records = bytearray(records)
        buffer = ffi.from_buffer(records)
        if doubts:
            self._check(lib.sb_records_doubt(buffer, len(buffer)), "pouring")
        most = len(buffer) // RECORD_HEAD_BYTES + 1
        if len(self._answers) < most:
            self._answers = ffi.new("int64_t[]", most)
        told = self._told
        code = lib.sb_sink_pour(
            self._sink, buffer, len(buffer), later, self._answers,
            nanoseconds(timeout) if timeout != 0 else 0, told,
        )  # fmt: skip
        has_stopped = self._stops and told.refused > 0
        if code not in (OK, FULL, INTERRUPTED) and not has_stopped:
            self._check(code, "pouring")
        view = memoryview(ffi.buffer(self._answers, told.answers * 8)).cast("q")
        lacks_memory = code == FULL and bool(lib.sb_sink_lacks_memory(self._sink))
        return Poured(
            code, told.bytes, told.appended, told.seen, told.refused, view, has_stopped,
            lacks_memory,
        )  # fmt: skip

    def close(self, *, forgets: bool = False) -> None:
        """The next who pours this origin goes on; `forgets`: nobody will."""
        if self._sink is not None:
            lib.sb_sink_close(self._sink, forgets)
            self._sink = None

    def _check(self, code: int, doing: str) -> int:
        if code < 0:
            raise self._error(code, doing)
        return code

    def _error(self, code: int, doing: str) -> Error:
        detail = detail_of(code)
        return error_for(code, doing, ffi.errno, detail)
