"""A publication: one message on its way through an exchange to its queues."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import DIFFERENT, FULL, INTERRUPTED, NOT_FOUND
from shmbroker.core.layout import CONFIRM_SHM, FAIL
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import Error, QueueFull, Unconfirmed, Unroutable, error_for
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message.confirm import Confirm, level_of
from shmbroker.ipc.message.group import grouped
from shmbroker.ipc.message.outgoing import id_bytes, outgoing, parts
from shmbroker.ipc.queue.open_transaction import OPEN, notice
from shmbroker.ipc.schedule.scheduled import When, schedule

if TYPE_CHECKING:
    from shmbroker.ipc.exchange.exchange import Exchange

_publish = lib.sb_exchange_publish_with
MANDATORY: Final = 0x4000
IMMEDIATE: Final = 0x2000
TRIES: Final = 64
"""If the catalog changes during each of them, the last one counts."""


def wishes(*, mandatory: bool, immediate: bool = False) -> int:
    """As the target of a message has them: SB_MANDATORY, SB_IMMEDIATE."""
    return (MANDATORY if mandatory else 0) | (IMMEDIATE if immediate else 0)


def unroutable(exchange: str, key: str, wished: int) -> Unroutable:
    what, do = "no binding takes", "bind a queue, or declare an alternate exchange"
    wish = "mandatory"
    if wished & IMMEDIATE:
        what, do = "no queue with a consumer takes", "consume from a queue that is bound"
        wish = "immediate"
    return Unroutable(
        f"exchange {exchange!r}: {what} a message with key {key!r}, and it is {wish}: {do}"
    )


class Publication:
    """Remembers which queues have the message, so that it can go on where one had no room.

    C counts them, in the order of the bindings.  If these have changed when it goes on, it says so,
    and the count is made that of the queues before the first that lacks the message: none of them
    is passed over.
    """

    __slots__ = (
        "_exchange", "_full", "_generation", "_kept", "_lacking", "_lacking_from", "_message",
        "_outgoing", "_progress", "_receipts", "_wishes", "is_delayed", "level",
    )  # fmt: skip

    def __init__(
        self,
        exchange: Exchange,
        body: Any,
        *,
        key: str = "",
        properties: Mapping[str, Any] | None = None,
        ttl: Seconds | None = None,
        priority: int | None = None,
        message_id: str | bytes | None = None,
        group: str | None = None,
        mandatory: bool = False,
        immediate: bool = False,
        deliver_after: Seconds | None = None,
        deliver_at: When | None = None,
        confirm: Confirm | None = None,
    ) -> None:
        self.level = level_of(confirm or "shm")
        """The queues have it, and are asked for this."""
        if OPEN:
            notice(exchange._broker, f"exchange {exchange.name!r}")
        properties = grouped(properties, group)
        self.is_delayed = deliver_after is not None or deliver_at is not None
        self._exchange = exchange
        self._wishes = 0
        if mandatory or immediate:
            self._wishes = wishes(mandatory=mandatory, immediate=immediate)
        self._message = (*parts(body, key, properties, ttl, priority), *id_bytes(message_id))
        self._outgoing: Any = None
        self._receipts: Any = ffi.NULL
        if self.is_delayed or self.is_to_confirm or self._wishes:
            self._outgoing, *self._kept = outgoing(body, key, properties, ttl, priority, message_id)
            schedule(self._outgoing, deliver_after, deliver_at)
            self._outgoing.target = self._wishes
        if self.is_to_confirm:
            self._receipts = exchange._broker._handles.receipts()
        self._progress = ffi.new("sb_progress *")
        self._full: Any = ffi.NULL
        self._lacking: list[Any] | None = None
        """Queues that had no room, and those behind them, when the catalog had this generation."""
        self._generation = self._lacking_from = 0

    @property
    def is_to_confirm(self) -> bool:
        return self.level != CONFIRM_SHM

    def go_on(self, timeout_ns: int) -> int:
        """Publish to those that are left: how many have it, all told; QueueFull if one is full."""
        deadline = Deadline(timeout_ns)
        code = self._attempt(0)  # which bindings there were is known only if it does not take long
        if code < 0 and timeout_ns != 0:
            code = INTERRUPTED
        while code in (INTERRUPTED, DIFFERENT):
            code = self._attempt(deadline.left())
        if code < 0:
            done = self._progress.done
            had = f" ({done} queues have the message)" if done else ""
            raise self._error(code, had)
        if code == 0 and self._wishes:
            key = self._message[2].decode(errors="surrogatepass")
            raise unroutable(self._exchange.name, key, self._wishes)
        return code

    def try_now(self) -> int:
        """go_on without a wait; after QueueFull it is known which queue is full.

        By now there may be another in its place, or none, if the catalog has changed since before
        the attempt: then it tries again.
        """
        catalog, tries = self._exchange._broker._catalog, 0
        while True:
            generation, tries = catalog.generation, tries + 1
            try:
                return self.go_on(0)
            except QueueFull:
                self._full = self._queue_at(self._progress.done)
                if catalog.generation == generation or tries == TRIES:
                    raise

    def _attempt(self, timeout_ns: int) -> int:
        self._catch_up()
        code = self._publish(timeout_ns)
        if code >= 0:
            return code
        if self._exchange.name and not self._wishes & IMMEDIATE:
            self._note_lacking()
        else:
            self._progress.route = 0
        return code

    def _note_lacking(self) -> None:
        progress = self._progress
        if self._lacking is None:
            counted_by, self._lacking = progress.route, self.routed()
            if counted_by != progress.route:  # it has changed just now, and who has it is not known
                progress.done = 0
        del self._lacking[: progress.done - self._lacking_from]
        self._lacking_from = progress.done

    def _catch_up(self) -> None:
        """Count anew if the catalog has changed."""
        if (lacking := self._lacking) is None:
            return
        progress = self._progress
        if self._exchange._broker._catalog.generation == self._generation:
            return
        route = self.routed()
        done = next((at for at, queue in enumerate(route) if queue in lacking), len(route))
        progress.done = self._lacking_from = done
        self._lacking = route[done:]

    def routed(self) -> list[Any]:
        """The queues that it goes to as it is now, as C knows them; the progress counts by that."""
        route: list[Any] | None = None
        while route is None:
            self._generation = self._exchange._broker._catalog.generation
            self._progress.route = known_by = self._known_by()
            route = self._route(known_by)
        return route

    def _known_by(self) -> int:
        known_by = ffi.new("uint64_t *")
        lib.sb_exchange_route(self._exchange._exchange, *self._message[2:6], known_by)
        return int(known_by[0])

    def _route(self, known_by: int) -> list[Any] | None:
        """The queues that its bindings lead to, as C knows them; None: others by now.  Whatever
        else changes in the catalog meanwhile has nothing to do with it."""
        queues, queue = list[Any](), ffi.new("sb_queue **")
        for each in count():
            code = lib.sb_exchange_full(self._exchange._exchange, *self._message[2:6], each, queue)
            is_end = code < 0 or queue[0] == ffi.NULL
            if not is_end:
                queues.append(self._exchange._broker._handles.opened(queue[0]))
            if self._known_by() != known_by:
                return None
            if is_end:
                break
        return queues

    def _publish(self, timeout_ns: int) -> int:
        exchange, progress = self._exchange._exchange, self._progress
        if self._outgoing is not None:
            code: int = lib.sb_exchange_go_on(
                exchange, self._outgoing, timeout_ns, progress, self._receipts
            )
        else:
            code = _publish(exchange, *self._message, timeout_ns, progress)
        return code

    def receipts(self) -> list[tuple[Any, int]]:
        """The durable queues that have it, as C knows them, and where."""
        entries, count = self._receipts.entries, self._receipts.count
        shared = self._exchange._broker._handles.shared
        return [(shared(entries[each].queue), entries[each].position) for each in range(count)]

    def confirm(self, timeout: Seconds | None) -> int:
        """Wait until all durable queues that have it confirm it: how many these are."""
        deadline = Deadline(nanoseconds(timeout))
        code = INTERRUPTED
        while code == INTERRUPTED:
            code = lib.sb_receipts_confirm(self._receipts, self.level, deadline.left())
        if code < 0:
            raise self._unconfirmed(self._error(code, ""))
        count: int = self._receipts.count
        return count

    def confirm_one(self, queue: Any, position: int) -> None:
        """This one confirms it, or it is no more there; else Unconfirmed at once."""
        code = lib.sb_confirm(queue, position, self.level, 0)
        if code < 0 and code != NOT_FOUND:
            raise self._unconfirmed(self._error(code, ""))

    def _unconfirmed(self, error: Error) -> Error:
        if isinstance(error, Unconfirmed):
            error.pending = tuple(
                (ffi.string(lib.sb_queue_name(queue)).decode(), position)
                for queue, position in self.receipts()
            )
            error.ask = self.confirm
        return error

    def full_queue(self) -> Any:
        """After QueueFull of try_now: the queue, as C knows it, that had no room; QueueFull if it
        fails then, and nobody waits."""
        if not self._full or lib.sb_when_full(self._full) == FAIL:
            raise self._error(FULL, "")
        return self._full

    def _queue_at(self, place: int) -> Any:
        """The queue at this place of its route, as C knows it; NULL if it is not so long."""
        queue = ffi.new("sb_queue **")
        code = lib.sb_exchange_full(self._exchange._exchange, *self._message[2:6], place, queue)
        if code < 0:
            raise self._error(code, "")
        return self._exchange._broker._handles.opened(queue[0]) if queue[0] else ffi.NULL

    def _error(self, code: int, had: str) -> Error:
        detail = detail_of(code)
        what = f"publishing to exchange {self._exchange.name!r}{had}"
        return error_for(code, what, ffi.errno, detail)
