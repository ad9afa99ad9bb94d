"""A queue into which a link pours: each record once, confirmed when the queue's barrier has it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from shmbroker.core.layout import IN_INBOX, RECORD_HEAD_BYTES, RECORD_LENGTH_AT
from shmbroker.ipc._native import lib
from shmbroker.netbridge.carrier.opening import Opening
from shmbroker.netbridge.carrier.sleeper import ANY, CONFIRMED, ROOM, Sleeper
from shmbroker.netbridge.carrier.source import position_in
from shmbroker.netbridge.link.inflow import Poured
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.words import Level


class Target:
    """Of one connection."""

    def __init__(
        self,
        sleeper: Sleeper,
        opened: Opening,
        confirmed: Callable[[int], None],
        room: Callable[[], None],
    ) -> None:
        assert opened.sink is not None
        said = opened.said
        self._sleeper = sleeper
        self._tell_confirmed, self._tell_room = confirmed, room
        self._is_kept = said.level is not Level.SHM
        self._later = said.later
        self._queue, self._sink, self.mark = opened.queue, opened.sink, opened.mark
        self._handle = self._queue._queue
        self._is_durable = bool(lib.sb_is_durable(self._handle))
        self._watched: dict[int, tuple[int, int]] = {}
        self._unconfirmed: deque[tuple[int, int]] = deque()
        """The source's position, and that of the message here below which it stands."""
        self._was_full = False
        self.confirmed = self.mark
        tail = self._queue.published
        if self._is_durable and self.mark > 0 and tail > 0:
            self.confirmed = 0
            self._unconfirmed.append((self.mark, tail - 1))
            self._watch_confirm()

    def pour(self, records: Body) -> Poured:
        told = self._sink.pour(records, later=self._later)
        self.mark = max(self.mark, self._sink.position())
        if self._was_full and not told.is_full:  # there may be room for others, too
            lib.sb_pass_on(self._handle, ROOM)
        self._was_full = told.is_full
        self._note(told.view)
        if told.is_full:
            self._watch(ROOM, ANY, self._tell_room)
        messages = len(told.view)
        if not told.has_stopped:
            return Poured(told.bytes, messages, self.mark, told.is_full)
        rest = memoryview(records)[told.bytes :]
        length = int.from_bytes(rest[RECORD_LENGTH_AT : RECORD_LENGTH_AT + 4], "little")
        return Poured(
            told.bytes, messages, self.mark, refused=self._sink.why(told.code),
            position=position_in(rest), skip=RECORD_HEAD_BYTES + (length + 7 & -8),
        )  # fmt: skip

    def _note(self, answers: memoryview) -> None:
        """What this pour has appended is confirmed when the last of it is."""
        if not self._is_durable:
            self.confirmed = self.mark
            return
        last = next((each for each in reversed(answers) if each >= 0), None)
        if last is not None:
            self._unconfirmed.append((self.mark, last))
        elif not self._unconfirmed:
            self.confirmed = self.mark
        if len(self._unconfirmed) == 1:
            self._watch_confirm()

    def _watch_confirm(self) -> None:
        self._watch(self._unconfirmed[0][1], CONFIRMED, self._barrier_moved)

    def _barrier_moved(self) -> None:
        below = self._queue.confirmed
        is_first = True
        while self._unconfirmed:
            end, position = self._unconfirmed[0]
            if not is_first and (position & IN_INBOX or position >= below):
                break
            is_first = False
            self.confirmed = max(self.confirmed, end)
            self._unconfirmed.popleft()
        if self._unconfirmed:
            self._watch_confirm()
        self._tell_confirmed(self.confirmed)

    def skip(self, end: int) -> None:
        self._sink.skip(end)

    def _watch(self, position: int, returned: int, told: Callable[[], None]) -> None:
        def rung() -> None:
            del self._watched[ticket]
            told()

        ticket = self._sleeper.watch(self._handle, position, returned, rung)
        self._watched[ticket] = position, returned

    def close(self, *, forgets: bool) -> None:
        """The origin of a durable stream stays known: a crash of its source may take back how far
        it had retired, and then it comes again."""
        for ticket, (position, returned) in self._watched.items():
            self._sleeper.forget(ticket, self._handle, position, returned)
        self._watched.clear()
        self._sink.close(forgets=forgets and not self._is_kept)
