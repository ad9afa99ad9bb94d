"""Managing a queue: what an operator does with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.timeout import Seconds, nanoseconds
from shmbroker.ipc.message.group import group_bytes
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.queue.opened import OpenedQueue
from shmbroker.ipc.selector.selector import Selector

if TYPE_CHECKING:
    from shmbroker.ipc.queue.queue import Queue

ONE_IN_MAX = 2**63 - 1


class Managing(OpenedQueue):
    """The verbs that act on a whole queue."""

    __slots__ = ()

    def let_go(self, group: str | None = None) -> int:
        """Let other consumers have this group, or all that is bound to us: how many buckets.

        Messages of it that we have in hand are ours until they are dealt with; until then nobody
        gets others.
        """
        named = ffi.NULL if group is None else group_bytes(group)
        freed: int = lib.sb_let_go(self._queue, named, 0 if group is None else len(named))
        if freed < 0:
            raise self._error(freed, "letting go of groups of")
        return freed

    def expire(self) -> int:
        """Move what is expired to where it belongs, or drop it: how many.

        Nobody gets such a message anyway, and waiting calls do this by themselves.
        """
        expired: int = lib.sb_expire(self._queue)
        if expired < 0:
            raise self._error(expired, "expiring")
        return expired

    def cancel_scheduled(self, message_id: int) -> bool:
        """A scheduled message is not delivered; False if there is none of this id (any more)."""
        if not isinstance(message_id, int) or isinstance(message_id, bool):
            raise InvalidArgument(f"an id is a number that publish answered, not {message_id!r}")
        known = 0 < message_id < 1 << 62
        code: int = lib.sb_cancel_scheduled(self._queue, message_id) if known else 0
        if code < 0:
            raise self._error(code, "cancelling in")
        return code == 1

    def move_to(
        self,
        other: Queue,
        limit: int | None = None,
        selector: str | Selector | None = None,
        *,
        timeout: Seconds | None = 0,
    ) -> int:
        """Move what is there now and nobody has, or what is selected of it, in order: how many.

        Stops where the other queue has no room within the timeout.
        """
        return pass_over(self, other, limit, selector, timeout, copies=False).messages

    def copy_to(
        self,
        other: Queue,
        limit: int | None = None,
        selector: str | Selector | None = None,
        *,
        timeout: Seconds | None = 0,
    ) -> int:
        """move_to, and the messages stay here as well.

        Anything but the want of room there raises, also behind some messages: the error's
        `published` says how many are there.
        """
        passed = pass_over(self, other, limit, selector, timeout, copies=True)
        if passed.error is not None:  # whoever asks again copies from the head
            raise passed.error
        return passed.messages

    def purge(self) -> int:
        """Drop all messages that nobody has, and all that are scheduled: how many."""
        dropped: int = lib.sb_purge(self._queue)
        if dropped < 0:
            raise self._error(dropped, "purging")
        return dropped

    def latency(
        self,
        records: bool,
        *,
        lowest: Seconds | None = None,
        highest: Seconds | None = None,
        digits: int | None = None,
        one_in: int = 1,
    ) -> None:
        """Record how long messages wait and are in hand, from now on, or stop (docs/latency.md).

        Of all messages, or of one in 2, 4, 8 ... that stands for the others.

        Times from lowest to highest, in seconds, are told apart by 2 or 3 digits: 1 ns to an hour
        and 2, unless said otherwise.  Another range than before begins a new histogram.
        """
        times = [0 if each is None else nanoseconds(each) for each in (lowest, highest)]
        if (lowest is not None and times[0] == 0) or (highest is not None and times[1] <= 0):
            raise InvalidArgument("a range is from at least a nanosecond up to some time")
        if digits is not None and (not isinstance(digits, int) or not 2 <= digits <= 3):
            raise InvalidArgument(f"a histogram has 2 or 3 digits, not {digits!r}")
        if not isinstance(one_in, int) or not 1 <= one_in <= ONE_IN_MAX:
            raise InvalidArgument(f"one in so many messages is a number from 1 up, not {one_in!r}")
        code: int = lib.sb_latency(self._queue, bool(records), *times, digits or 0, one_in)
        if code != OK:
            raise self._error(code, "recording the latency of")

    def delete(self, *, force: bool = False) -> None:
        """Delete the queue and its messages; InUse if another participant uses it."""
        self._told()  # raises NotFound if it was deleted: another may have its name by now
        self._broker.delete_queue(self.name, force=force)

    def pause(self) -> None:
        """Deliver nothing until resume; publishing goes on.

        A queue that is restored from the journal delivers again.
        """
        self._set_paused(True)

    def resume(self) -> None:
        """Deliver again."""
        self._set_paused(False)

    def _set_paused(self, paused: bool) -> None:
        code: int = lib.sb_pause(self._queue, paused)
        if code != OK:
            raise self._error(code, "pausing" if paused else "resuming")
