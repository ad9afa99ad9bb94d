"""Looking at a queue without taking anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shmbroker.core.codes import EMPTY, GONE, TOO_SMALL
from shmbroker.core.layout import (
    DONE,
    SETTINGS_GIVEN_BYTES_MAX,
    STATE_MASK,
    STATE_SHIFT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.follower.gates import Gate, gates_of
from shmbroker.ipc.latency.latency import Counts, Histogram, counts_of
from shmbroker.ipc.latency.statistics import Latency, QueueStatistics
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.group import GroupInfo, groups_of
from shmbroker.ipc.message.holder import HolderInfo, holders_of
from shmbroker.ipc.message.outgoing import (
    key_bytes,
)
from shmbroker.ipc.message.room import Room, length_of
from shmbroker.ipc.queue.opened import OpenedQueue
from shmbroker.ipc.queue.origins import Origin, origins_of
from shmbroker.ipc.schedule.scheduled import ScheduledMessage, ring_of, scheduled
from shmbroker.ipc.settings.setting import DEFAULTS, OF_NOW
from shmbroker.ipc.settings.settings import Explained, by_rank, explained, replicate_name


def copied_at(
    queue: OpenedQueue,
    peek: Any,
    ring: Any,
    position: int,
    room: Room,
    *,
    is_confirmed: bool = False,
) -> tuple[CopiedMessage, bytes] | None:
    """The message at this position, and its chunk, if it is there and not done with.

    `peek`: how C copies it, out of what `ring` is to it.
    """
    message = room.messages + 0
    while True:
        length: int = peek(ring, position, message, room.buffer, room.capacity)
        if length != TOO_SMALL:
            break
        room.enlarge(length_of(message))
    if length in (GONE, EMPTY):
        return None
    if length < 0:
        raise queue._error(length, "browsing")
    if (message.word >> STATE_SHIFT) & STATE_MASK == DONE:
        return None
    chunk = room.bytes[:length]
    copied = CopiedMessage.of(position, message.word, message.length, chunk, is_confirmed)
    return copied, chunk


class Looking(OpenedQueue):
    """The verbs that change nothing."""

    __slots__ = ()

    def browse(self, *, unconfirmed: bool = False) -> Iterator[CopiedMessage]:
        """All messages that are there, in order, taken by somebody or not, without taking any.

        Of a durable queue those that are on disk; with `unconfirmed` the others too, which say so
        (`is_confirmed`).
        """
        for message, _chunk in self._copies(self._queue, unconfirmed):
            yield message

    def scheduled(self) -> list[ScheduledMessage]:
        """What is not to be delivered yet, first what is due first."""
        ring = ring_of(self)
        return scheduled(self._copies(ring, unconfirmed=True)) if ring else []

    def _copies(
        self, ring: Any, unconfirmed: bool = False, begin: int = 0
    ) -> Iterator[tuple[CopiedMessage, bytes]]:
        """All messages of a ring from this position on, and their chunks."""
        told = self._told(ring)
        room = Room()
        for position in range(max(told.head, begin), told.tail):
            message = self._look(ring, position, room, unconfirmed)
            if message is not None:
                yield message

    def _look(
        self, ring: Any, position: int, room: Room, unconfirmed: bool
    ) -> tuple[CopiedMessage, bytes] | None:
        """The message at this position, and its chunk, if it is there and not done with."""
        # before the copy: what is confirmed while we copy is shown as it was
        is_confirmed = not unconfirmed or lib.sb_is_confirmed(ring, position) == 1
        browse = lib.sb_browse_ahead if unconfirmed else lib.sb_browse
        return copied_at(self, browse, ring, position, room, is_confirmed=is_confirmed)

    def value(self, key: str) -> CopiedMessage | None:
        """The newest message of this key, taken by somebody or not; None if there is none.

        For queues that keep the last value; nothing is taken (docs/last-value.md).
        """
        name = key_bytes(key)
        room = self._room or Room()
        self._room = None
        message = room.messages + 0
        while True:
            length: int = lib.sb_value(
                self._queue, name, len(name), message, room.buffer, room.capacity
            )
            if length != TOO_SMALL:
                break
            room.enlarge(length_of(message))
        chunk = room.bytes[: max(0, length)]
        self._room = room
        if length == EMPTY:
            return None
        if length < 0:
            raise self._error(length, f"the value of {key!r} in")
        is_confirmed = lib.sb_is_confirmed(self._queue, message.position) == 1
        return CopiedMessage.of(message.position, message.word, message.length, chunk, is_confirmed)

    def statistics(self) -> QueueStatistics:
        """What the queue has seen and holds."""
        told = self._told()
        waited = self._counts().get("publish-take") if told.histograms else None
        return QueueStatistics.of(told, None if waited is None else Latency.of(waited.since(None)))

    def __len__(self) -> int:
        """Messages that are there, taken or not."""
        told = self._told()
        return int(told.ready + told.leased + told.paged)

    def __bool__(self) -> bool:
        """An empty queue is a queue: `queue or other` does not ask for messages."""
        return True

    def gates(self) -> tuple[Gate, ...]:
        """Who follows the queue behind a gate: its ring keeps what one of them has not passed."""
        gates = gates_of(self._queue)
        if isinstance(gates, int):
            raise self._error(gates, "looking at the gates of")
        return gates

    def origins(self) -> tuple[Origin, ...]:
        """The streams of messages from elsewhere that the queue knows, the last used first."""
        origins = origins_of(self._queue)
        if isinstance(origins, int):
            raise self._error(origins, "looking at the origins of")
        return origins

    def histograms(self) -> dict[str, Histogram]:
        """The times that were recorded since `latency` was first switched on, in nanoseconds.

        `publish-take`: how long messages waited; `take-ack`: how long they were in hand.
        """
        return {kind: counts.since(None) for kind, counts in self._counts().items()}

    def _counts(self) -> dict[str, Counts]:
        reference = lib.sb_queue_reference(self._queue)
        counts = counts_of(self._broker._connection, reference)
        if isinstance(counts, int):
            raise self._error(counts, "reading the latency of")
        return counts

    @property
    def is_paused(self) -> bool:
        return bool(self._told().paused)

    def explain(self) -> dict[str, Explained]:
        """Each setting: its value, and where that comes from."""
        room = ffi.new("char[]", SETTINGS_GIVEN_BYTES_MAX)
        length: int = lib.sb_settings_given(self._queue, room, SETTINGS_GIVEN_BYTES_MAX)
        if length < 0:
            raise self._error(length, "explaining")
        found = explained(ffi.buffer(room)[:length])
        if lib.sb_is_durable(self._queue) and not found["durable"].value:
            found["durable"] = Explained(True, "declared")  # with the queue whose dead go here
        number: int = lib.sb_replicate(self._queue)
        if number < 0:
            raise self._error(number, "explaining")
        replicate, said = replicate_name(number), found["replicate"]
        # of a pattern, and not for a queue that is not durable; or nobody has said it
        source = said.source if said.value == replicate else "default"
        found["replicate"] = Explained(replicate, source)
        return found | self._of_now(found)

    def _of_now(self, found: Mapping[str, Explained]) -> dict[str, Explained]:
        """What patterns say today, of settings that they give queues that are there."""
        undeclared = [each for each in OF_NOW if found[each].source != "declared"]
        patterns = by_rank(self._broker._catalog.patterns(), self.name) if undeclared else ()
        said = {
            name: Explained(each.settings[name], f"pattern {each.pattern!r}")
            for each in reversed(patterns)
            for name in undeclared
            if name in each.settings
        }
        return {name: said.get(name, Explained(DEFAULTS[name], "default")) for name in undeclared}

    def holders(self) -> list[HolderInfo]:
        """Which participants have messages that they have taken and not acknowledged."""
        return holders_of(self.browse(unconfirmed=True))

    def groups(self) -> list[GroupInfo]:
        """Which groups there are and whose; or who is the single active consumer."""
        return groups_of(self._queue, self.browse(unconfirmed=True))
