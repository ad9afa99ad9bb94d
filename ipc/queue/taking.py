"""Taking messages from a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from struct import iter_unpack
from typing import Any, cast

from shmbroker.core.codes import INTERRUPTED, TOO_SMALL
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._taken import receive as _receive_now
from shmbroker.ipc._taken import take as _take
from shmbroker.ipc.base.errors import ConnectionClosed, Empty, Error, InvalidArgument
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message.message import Message
from shmbroker.ipc.message.room import BATCH, Room
from shmbroker.ipc.queue.consuming import Consuming
from shmbroker.ipc.queue.opened import OpenedQueue
from shmbroker.ipc.queue.retained_reader import RetainedReader
from shmbroker.ipc.selector.selection import Selection
from shmbroker.ipc.selector.selector import Selector

_get = lib.sb_get
_receive = lib.sb_receive
_new = ffi.new
_MESSAGE = ffi.typeof("sb_message *")
_ADDRESS = ffi.typeof("intptr_t")


def count_of(count: int) -> int:
    if not isinstance(count, int) or count < 1:
        raise InvalidArgument(f"count is a positive number, not {count!r}")
    return min(count, BATCH)


def give_back(messages: Iterable[Message]) -> None:
    """Those that were not dealt with; what cannot be given back is no longer ours anyway."""
    for each in messages:
        if each.is_in_hand:
            with suppress(Error):
                each.give_back()


class Taking(OpenedQueue):
    """The verbs that take messages, to be acknowledged or at most once."""

    __slots__ = ()

    def get(
        self, selector: str | Selector | None = None, *, timeout: Seconds | None = None
    ) -> Message:
        """Take the oldest message that nobody has; Empty if none came within the timeout.

        With a selector, the oldest that meets its condition (docs/selectors.md).
        """
        if selector is not None:
            return self.select(selector, timeout=timeout)
        if timeout is not None:
            nanoseconds(timeout)  # refuses what is no time-out
        message = _take(Message, self._address, self._kept)
        if message is not None:
            return message
        return self._get_rarely(nanoseconds(timeout))

    def _get_rarely(self, timeout_ns: int) -> Message:
        queue, deadline = self._queue, Deadline(timeout_ns)
        return self._taken(lambda message: _get(queue, message, deadline.left()), "taking")

    def _taken(self, verb: Callable[[Any], int], doing: str) -> Message:
        """What a verb that may wait takes into a structure."""
        message = _new(_MESSAGE)
        try:
            while (code := verb(message)) == INTERRUPTED:
                self._broker._tell_log()
            if code < 0:
                raise self._error(code, f"{doing} from")
            return self._held(message)
        except BaseException:
            if message.word:  # taken, and then Ctrl-C came
                lib.sb_give_back(self._queue, message)
            raise

    def _held(self, message: Any) -> Message:
        address = int(ffi.cast(_ADDRESS, message))
        return _take(Message, self._address, self._kept, address)

    def select(
        self, selection: str | Selector | Selection, *, timeout: Seconds | None = None
    ) -> Message:
        """get, of the messages that are selected; the others are left to others, in their order.

        A Selection remembers how far it has searched: with one for many calls, each goes on there.
        """
        if not isinstance(selection, Selection):
            selection = Selection(selection)
        deadline, wanted = Deadline(nanoseconds(timeout)), selection.selection
        verb = lib.sb_get_selected
        return self._taken(
            lambda message: verb(self._queue, message, wanted, deadline.left()), "selecting"
        )

    def get_nowait(self) -> Message:
        """get without waiting: Empty at once."""
        return self.get(timeout=0)

    def get_many(self, count: int, *, timeout: Seconds | None = None) -> list[Message]:
        """Take up to count messages at once, as many as are there; Empty if none came in time."""
        count = count_of(count)
        messages = ffi.new("sb_message[]", count)
        deadline = Deadline(nanoseconds(timeout))
        taken: list[Message] = []
        try:
            code: int = lib.sb_get_many(self._queue, messages, count, deadline.left())
            while code == INTERRUPTED:
                self._broker._tell_log()
                code = lib.sb_get_many(self._queue, messages, count, deadline.left())
            if code < 0:
                raise self._error(code, "taking from")
            for index in range(code):
                taken.append(self._held(messages + index))
        except BaseException:
            for index in range(count):
                if messages[index].word:
                    lib.sb_give_back(self._queue, messages + index)
            raise
        return taken

    def consume(
        self,
        *,
        selector: str | Selector | None = None,
        timeout: Seconds | None = None,
        prefetch: int = 1,
        priority: int = 0,
        exclusive: bool = False,
    ) -> Iterator[Message]:
        """Take messages one after another, until none comes within the timeout.

        With a selector, only those that meet its condition (docs/selectors.md), each for itself.
        Where one consumer is active at a time, priority and exclusive say which (docs/groups.md);
        groups that were bound to us are let go at the end.

        Each is acknowledged when the next is asked for, unless it was dealt with before.  If the
        loop is left in the middle of one, it is given back, whoever still refers to it.  Of a
        non_destructive queue nothing is taken: each call is a consumer that sees all messages, from
        the first one on.
        """
        selection = None if selector is None else Selection(selector)
        consuming = Consuming(self, priority, exclusive, selection)
        if lib.sb_is_non_destructive(self._queue):
            yield from self._look_on(selection, timeout)
            return
        consuming.begin()
        draining = self._broker._draining
        messages: list[Message] = []
        try:
            while not draining:
                try:
                    if selection is not None:
                        messages = [self.select(selection, timeout=timeout)]
                    elif prefetch == 1:
                        messages = [self.get(timeout=timeout)]
                    else:
                        messages = self.get_many(prefetch, timeout=timeout)
                except Empty:
                    return
                except ConnectionClosed:
                    if draining:
                        return
                    raise
                messages.reverse()
                while messages:
                    yield messages[-1]
                    message = messages.pop()
                    if message.is_in_hand:
                        message.ack()
                    if draining:
                        break
                del message
        finally:
            give_back(messages)
            consuming.end()

    def _look_on(self, selection: Selection | None, timeout: Seconds | None) -> Iterator[Message]:
        """What is shown has all that a message in hand has, but is in nobody's."""
        draining = self._broker._draining
        with RetainedReader(self, selection, timeout) as retained_reader:
            try:
                for message in retained_reader:
                    if draining:
                        return
                    yield cast(Message, message)
            except ConnectionClosed:
                if not draining:
                    raise

    def receive(self, *, timeout: Seconds | None = None) -> bytes:
        """Take, copy and acknowledge the oldest message in one call: at most once."""
        if timeout is not None:
            nanoseconds(timeout)  # refuses what is no time-out
        body = _receive_now(self._address)
        if body is not None:
            return body
        return self._receive_rarely(nanoseconds(timeout))

    def _receive_rarely(self, timeout_ns: int) -> bytes:
        room = self._room or Room()
        self._room = None
        deadline = Deadline(timeout_ns)
        while (code := _receive(self._queue, room.room, deadline.left())) == INTERRUPTED:
            self._broker._tell_log()
        if code == TOO_SMALL:
            code = self._receive_large(room)
        if code < 0:
            raise self._error(code, "receiving from")
        body: bytes = room.bytes[:code]
        self._room = room
        return body

    def _receive_large(self, room: Room) -> int:
        """The message was taken, because there was no room for a copy: make some."""
        message = room.messages + 0
        length: int = message.length
        try:
            room.enlarge(length)
            ffi.memmove(room.buffer, message.body, length)
        except BaseException:
            lib.sb_give_back(self._queue, message)
            raise
        code = lib.sb_ack(self._queue, message)
        if code < 0:
            raise self._error(code, "receiving from")
        return length

    def receive_many(self, count: int = BATCH, *, timeout: Seconds | None = None) -> list[bytes]:
        """receive for up to count messages at once; Empty if none came in time."""
        count = count_of(count)
        room = self._room
        self._room = None
        if room is None:
            room = Room()
        bodies = self._receive_many(room, count, timeout)
        self._room = room
        return bodies

    def _receive_many(self, room: Room, count: int, timeout: Seconds | None) -> list[bytes]:
        deadline = Deadline(nanoseconds(timeout))
        taken: int = lib.sb_receive_many(self._queue, room.room, count, deadline.left())
        while taken == INTERRUPTED:
            self._broker._tell_log()
            taken = lib.sb_receive_many(self._queue, room.room, count, deadline.left())
        if taken == TOO_SMALL:
            length = self._receive_large(room)  # in another buffer then
            bodies = [room.bytes[:length]]
        elif taken < 0:
            raise self._error(taken, "receiving from")
        else:
            ends = room.ends
            whole = room.bytes[: ends[taken - 1]]
            if ends[count] > 0:
                bodies = [body for (body,) in iter_unpack(f"{ends[count]}s", whole)]
            else:
                bodies = [whole[start:end] for start, end in pairwise((0, *ends[:taken]))]
        return bodies
