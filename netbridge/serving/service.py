"""The sessions of a vhost: links of programs come here, and what they ask for is carried out.

All of it is of the network thread.  Memory is bounded by the limits of each session
(`SessionLimits`), and by `SESSIONS_MAX`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from shmbroker.ipc._native import ffi
from shmbroker.ipc.base.closable import Closable
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.link.handshake import Far
from shmbroker.netbridge.remote.action import (
    Action,
    Disconnect,
    GiveBack,
    Over,
    Perform,
    Say,
    Wanted,
)
from shmbroker.netbridge.remote.session import Session, SessionLimits
from shmbroker.netbridge.remote.sessions import Done, Sessions
from shmbroker.netbridge.serving.alarms import Alarms
from shmbroker.netbridge.serving.confirms import Confirms
from shmbroker.netbridge.serving.orders import CarryOut, Orders
from shmbroker.netbridge.serving.rejections import Rejections
from shmbroker.netbridge.serving.requests import Requests
from shmbroker.netbridge.serving.served import Served
from shmbroker.netbridge.serving.travelling import Arriving, Leaving
from shmbroker.netbridge.wire.frame import Attach, Frame
from shmbroker.netbridge.wire.words import Role

T = TypeVar("T")
CONFIRMS_MAX = 1000
"""Queues of which it is remembered who waits, beyond those of which somebody waits."""
OF_ANOTHER = "the session is another user's"
HELD_MAX = 64
"""Frames of a program that is not heard yet: it waits for an answer to the first."""


def _name_at(end: End | None) -> str:
    """Of the program."""
    peer = None if end is None else end.machine.handshake.peer
    return "" if peer is None else peer.name


def _rights_of(end: End | None) -> tuple[str, Role]:
    """Its user, and what its link is for."""
    handshake = None if end is None else end.machine.handshake
    if not isinstance(handshake, Far) or handshake.peer is None or handshake.hello is None:
        return "", Role.VIEWER
    return handshake.hello.user, handshake.hello.role


class Service(Closable):
    def __init__(
        self,
        thread: NetworkThread,
        *,
        limits: SessionLimits | None = None,
        carry_out: CarryOut | None = None,
        is_replicated: bool = False,
    ) -> None:
        """Of the vhost of this thread's broker.  Close it before the thread.

        `carry_out`: orders to the process of the broker.  `is_replicated`: another member may take
        over, and has what is in the journal.
        """
        self.broker, self.sleeper = thread.broker, thread.sleeper
        self.alarms = Alarms()
        self.worker = Worker(thread.call)
        self.soon = thread.call
        self._thread = thread
        self._is_replicated = is_replicated
        self._sessions = Sessions(limits or SessionLimits())
        self._served: dict[Session, Served] = {}
        self._ends: dict[int, End] = {}
        self._numbers: dict[End, int] = {}
        self._counter = count(1)
        self.requests = Requests(self)
        self.rejections = Rejections(self.alarms)
        self.orders = Orders(thread.call, carry_out)
        self._confirms: dict[tuple[int, int], Confirms] = {}
        self.is_deaf = False
        """It leaves: nothing that programs say is heard any more."""
        self._is_held = False
        """Programs that come are not heard yet."""
        self._held: dict[End, list[Frame]] = {}
        """What they have said."""
        self._waiting: deque[tuple[int, Session | None, Action]] = deque()
        self._is_busy = False
        self.leaving = Leaving(self)
        thread.ask(self._begin)

    def _begin(self) -> None:
        self._thread.members.append(self)
        self.arriving = Arriving(self, self._sessions.limits.ttl)

    def hands_over(self) -> list[dict[str, Any]]:
        """What is to be told of transactions that are open, when this broker leaves; from any
        thread but ours."""
        return self.leaving.hand_over()

    def hold(self, is_held: bool) -> None:
        """Programs that come from now on are heard later, or are heard; from any thread."""
        self._is_held = is_held
        if not is_held:
            self._thread.call(self._let_in)

    def keeps(self, ttl: float) -> None:
        """Sessions that begin from now on."""
        self._sessions.limits = replace(self._sessions.limits, ttl=ttl)

    def close(self) -> None:
        """All sessions are over; those who go on make them again elsewhere."""
        self._thread.ask(self.end)
        self.worker.close()

    def ask(self, step: Callable[[], T]) -> T:
        """In the network thread, and wait for the answer."""
        return self._thread.ask(step)

    def end(self) -> None:
        if self in self._thread.members:
            self._thread.members.remove(self)
            for session in list(self._served):
                self._carry(0, session, session.end())
            for confirms in self._confirms.values():
                confirms.close()

    # --- of the thread ------------------------------------------------------------------------

    @property
    def due(self) -> float:
        return min(self._sessions.deadline, self.alarms.due)

    def woken(self, now: float) -> None:
        self.alarms.ring(now)
        self._does(self._sessions.tick(now))

    # --- of the links -------------------------------------------------------------------------

    def came(self, end: End) -> None:
        """A program has shown who it is."""
        number = self._numbers[end] = next(self._counter)
        self._ends[number] = end
        if self._is_held:
            self._held[end] = []

    def _let_in(self) -> None:
        held, self._held = self._held, {}
        for end, frames in held.items():
            for frame in frames:
                self.heard(end, frame)
        self.arriving.look()  # behind them: it may begin a thread

    def heard(self, end: End, frame: Frame) -> None:
        if (held := self._held.get(end)) is not None:
            held.append(frame)
            if len(held) > HELD_MAX:
                end.does(end.machine.stop(time.monotonic(), "it does not wait for an answer"))
            return
        number = self._numbers.get(end)
        if number is None or self.is_deaf:
            return
        if isinstance(frame, Attach) and not self._may_attach(end, frame):
            end.does(end.machine.stop(time.monotonic(), OF_ANOTHER))
            return
        self._does(self._sessions.received(number, frame, time.monotonic()))
        if isinstance(frame, Attach):
            self._look(frame.session)

    def _look(self, session: bytes) -> None:
        """Its program may be here again."""
        found = self._sessions.by_id.get(session)
        served = None if found is None else self._served.get(found)
        if served is not None:
            served.is_back()

    def _may_attach(self, end: End, frame: Attach) -> bool:
        """A session goes on with the rights that it began with: by a link of the same user, for
        the same.  Its id is no secret, as names of temporary queues have it."""
        session = self._sessions.by_id.get(frame.session)
        served = None if session is None else self._served.get(session)
        if served is None or not served.user:  # that one may only look
            return True
        return (served.user, served.role) == _rights_of(end)

    def gone(self, end: End) -> None:
        self._held.pop(end, None)
        number = self._numbers.pop(end, None)
        if number is not None:
            del self._ends[number]
            self._does(self._sessions.detached(number, time.monotonic()))

    # --- of the sessions ----------------------------------------------------------------------

    @property
    def sessions(self) -> list[Session]:
        """Also of programs that have lost their link, and may come again."""
        return list(self._sessions.by_id.values())

    def end_of(self, session: Session) -> End | None:
        """Of the link that it is attached to."""
        return self._ends.get(self._sessions.link_of(session))

    def served_of(self, session: Session) -> Served | None:
        """None: it has asked for nothing yet."""
        return self._served.get(session)

    def does(self, session: Session, actions: Iterable[Action]) -> None:
        """What a machine says to something that has happened."""
        self._carry(self._sessions.link_of(session), session, actions)

    def _does(self, done: Done) -> None:
        for link, session, actions in done:
            self._carry(link, session, actions)

    def _carry(self, link: int, session: Session | None, actions: Iterable[Action]) -> None:
        """One action after the other, in the order in which the machines said them."""
        waiting = self._waiting
        for action in actions:
            waiting.append((link, session, action))
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while waiting:
                self._carry_out(*waiting.popleft())
        finally:
            self._is_busy = False

    def _carry_out(self, link: int, session: Session | None, action: Action) -> None:
        if isinstance(action, Say):
            end = self._ends.get(link)
            if end is not None:
                end.say(action.frame)
        elif isinstance(action, Disconnect):
            end = self._ends.get(link)
            if end is not None:
                end.does(end.machine.stop(time.monotonic(), action.why))
        elif session is not None:
            if session in self._served or not session.is_over:
                self._of_session(self._served_of(session, link), action)
            if isinstance(action, Over) and action.forgets:
                self._carry(link, None, [Disconnect("by the program")])

    def _served_of(self, session: Session, link: int) -> Served:
        served = self._served.get(session)
        if served is None:
            end = self._ends.get(link)
            made = Served(self, session, _name_at(end), *_rights_of(end))
            served = self._served[session] = made
        return served

    def _of_session(self, served: Served, action: Action) -> None:
        if isinstance(action, Perform):
            served.perform(action.command)
        elif isinstance(action, Wanted):
            consumer = served.consumers.get(action.consumer)
            if consumer is not None:
                consumer.rung()
        elif isinstance(action, GiveBack):
            served.give_back(action.deliveries)
        elif isinstance(action, Over):
            self._served.pop(served.session, None)
            served.close(forgets=action.forgets)

    def ends(self, session: Session, why: str) -> None:
        """The vhost has thrown it out; its link goes with it."""
        link = self._sessions.link_of(session)
        self._does(self._sessions.end(session))
        self._carry(link, None, [Disconnect(why)])

    def after_sync(self, told: Callable[[], None]) -> None:
        """Call it once whoever takes over has all that stands here now."""
        if self._is_replicated:
            self._thread.after_sync(told)
        else:
            told()

    def confirms(self, queue: Any, level: int) -> Confirms:
        """Who waits for confirms of this queue, as C knows it by the shared connection."""
        key = int(ffi.cast("intptr_t", queue)), level
        found = self._confirms.get(key)
        if found is None:
            if len(self._confirms) >= CONFIRMS_MAX:
                self._confirms = {k: each for k, each in self._confirms.items() if not each.is_idle}
            found = self._confirms[key] = Confirms(self.sleeper, queue, level)
        return found
