"""Where a link pours, a queue or an exchange: each record once, confirmed when it is so there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import UNROUTABLE
from shmbroker.core.layout import RECORD_HEAD_BYTES, RECORD_LENGTH_AT
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.nap import longer
from shmbroker.netbridge.carrier.opening import Opening
from shmbroker.netbridge.carrier.reached import Place, everything_in, is_confirmed, is_durable
from shmbroker.netbridge.carrier.sleeper import ANY, CONFIRMED, ROOM
from shmbroker.netbridge.carrier.source import position_in
from shmbroker.netbridge.carrier.synced import Moment
from shmbroker.netbridge.link.inflow import Poured
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.words import RETURNED, Level

if TYPE_CHECKING:
    from shmbroker.netbridge.carrier.thread import NetworkThread


def _is_over(place: Place | Moment) -> bool:
    return place.is_over if isinstance(place, Moment) else is_confirmed(place)


class Target:
    """Of one connection."""

    def __init__(
        self,
        thread: NetworkThread,
        opened: Opening,
        confirmed: Callable[[int], None],
        room: Callable[[], None],
    ) -> None:
        assert opened.sink is not None
        said = opened.said
        self._sleeper, self._after_sync = thread.sleeper, thread.after_sync
        self._held = thread.held
        self._tell_confirmed, self._tell_room = confirmed, room
        self._is_kept = said.level is not Level.SHM
        self._later = said.later
        self._opened, self._sink, self.mark = opened, opened.sink, opened.mark
        self._handle = None if opened.queue is None else opened.queue._queue
        self._is_durable = self._handle is not None and is_durable(self._handle)
        self._watched: dict[int, tuple[Any, int, int]] = {}
        self._unconfirmed: deque[tuple[int, list[Place | Moment]]] = deque()
        """The source's position, and what confirms all that stands below it."""
        self._full: Any = None
        self.nap = 0.0
        """After this one it is worth pouring again: no bell tells of room in the arena."""
        self.confirmed = self.mark
        if self._is_kept and self._keeps_marks and self.mark > 0:
            self.confirmed = 0
            self._waits([*opened.unconfirmed, Moment(self._after_sync)])

    def pour(self, records: Body, *, redelivered: bool = False) -> Poured:
        told = self._sink.pour(records, later=self._later, doubts=redelivered)
        self.mark = max(self.mark, self._sink.position())
        if self._full is not None and not told.is_full:  # there may be room for others, too
            lib.sb_pass_on(self._full, ROOM)
        self.nap = longer(self.nap) if told.lacks_memory else 0.0
        rings = told.is_full and not told.lacks_memory
        self._full = (self._handle or self._sink.full) if rings else None
        self._waits(self._places(told.view))
        if self._full is not None:
            self._watch(self._full, ROOM, ANY, self._tell_room)
        messages = len(told.view)
        if not told.has_stopped:
            return Poured(told.bytes, messages, self.mark, self.confirmed, told.is_full)
        rest = memoryview(records)[told.bytes :]
        length = int.from_bytes(rest[RECORD_LENGTH_AT : RECORD_LENGTH_AT + 4], "little")
        return Poured(
            told.bytes, messages, self.mark, self.confirmed, refused=self._why(told.code),
            position=position_in(rest), skip=RECORD_HEAD_BYTES + (length + 7 & -8),
        )  # fmt: skip

    def _why(self, code: int) -> str:
        return RETURNED if code == UNROUTABLE else self._sink.why(code)

    # --- confirming ---------------------------------------------------------------------------

    @property
    def _keeps_marks(self) -> bool:
        """They are as durable as what is poured."""
        return self._handle is None or self._is_durable

    def _places(self, answers: memoryview) -> list[Place | Moment]:
        """What this pour has appended is confirmed when these are."""
        if self._handle is None:
            queues = self._sink.queues()
            places = everything_in(*queues)
            return [*places, *self._holds(queues)]
        if not self._is_durable:
            return []
        last = next((each for each in reversed(answers) if each >= 0), None)
        return [] if last is None else [(self._handle, last)]

    def _holds(self, queues: list[Any]) -> list[Moment]:
        """What queues that are not durable have of a stream that may come again."""
        if not self._held or not self._is_kept:
            return []
        names = [ffi.string(lib.sb_queue_name(each)).decode() for each in queues]
        held = [self._held[name] for name in names if name in self._held]
        for hold in held:
            hold()
        return [Moment(self._after_sync)] if held else []

    def _waits(self, places: list[Place | Moment]) -> None:
        unconfirmed = self._unconfirmed
        if places:
            unconfirmed.append((self.mark, places))
            if len(unconfirmed) == 1:
                self._watch_confirm()
        elif unconfirmed:
            unconfirmed[-1] = self.mark, unconfirmed[-1][1]
        else:
            self.confirmed = self.mark

    def _watch_confirm(self) -> None:
        first = self._unconfirmed[0][1][0]
        if isinstance(first, Moment):
            first.tell = self._barrier_moved
        else:
            self._watch(*first, CONFIRMED, self._barrier_moved)

    def _barrier_moved(self) -> None:
        while self._unconfirmed:
            end, places = self._unconfirmed[0]
            while places and _is_over(places[0]):
                del places[0]
            if places:
                self._watch_confirm()
                break
            self.confirmed = max(self.confirmed, end)
            self._unconfirmed.popleft()
        self._tell_confirmed(self.confirmed)

    def skip(self, end: int) -> None:
        self._sink.skip(end)
        self.mark = max(self.mark, end)
        is_waited_for = self._is_kept and self._keeps_marks
        self._waits([Moment(self._after_sync)] if is_waited_for else [])

    def _watch(self, queue: Any, position: int, returned: int, told: Callable[[], None]) -> None:
        def rung() -> None:
            del self._watched[ticket]
            told()

        ticket = self._sleeper.watch(queue, position, returned, rung)
        self._watched[ticket] = queue, position, returned

    def close(self, *, forgets: bool) -> None:
        """The origin of a durable stream stays known: a crash of its source may take back how far
        it had retired, and then it comes again."""
        for ticket, watched in self._watched.items():
            self._sleeper.forget(ticket, *watched)
        self._watched.clear()
        for _, places in self._unconfirmed:
            for each in places:
                if isinstance(each, Moment):
                    each.tell = None
        self._sink.close(forgets=forgets and not self._is_kept)
