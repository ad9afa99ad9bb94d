"""What a member has of its lock manager: a thread that asks the engine, and says what it answers.

Whatever fails ends the connection; then the member hears that its voter is down, and the engine is
tried again.  What was asked meanwhile is lost, as with any voter.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.question import FromMember, FromVoter, Node, Question
from shmbroker.netbridge.election.voters import Hears
from shmbroker.netbridge.engine.engine import Engine, EngineFailed
from shmbroker.netbridge.engine.judge import Judge, Judged

Tell = Callable[[Mapping[str, Any]], None]

AGAIN_SECONDS: Final = 0.5
"""Until an engine that failed is tried again."""
WRITES_MAX: Final = 20
"""Of one question, if others change the node each time before it."""
GOODBYE_SECONDS: Final = 5.0
Key = tuple[Node, type[Any]]


def now() -> float:
    """Goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class EngineVoters:
    """`election.voters.Voters`, of one voter."""

    def __init__(
        self, thread: NetworkThread, engine: Engine, me: str, tell: Tell = lambda _: None
    ) -> None:
        self.electorate = Electorate((engine.place,), 1)
        self._network, self._engine, self._tell = thread, engine, tell
        self._judge = Judge(me, ends_leases=engine.ends_leases)
        self._asked: dict[Key, FromMember] = {}
        """The newest of each kind: what it has replaced nobody waits for."""
        self._waiting: dict[Key, tuple[FromMember, float]] = {}
        """Denied because of a lease, and when that is over."""
        self._refused: dict[Node, str] = {}
        self._lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_up = self._is_closed = self._has_failed = False
        self._hears: Hears | None = None
        self._thread = threading.Thread(target=self._run, name="shmbroker-engine", daemon=True)

    # --- of the member ------------------------------------------------------------------------

    def begin(self, hears: Hears) -> None:
        self._hears = hears
        self._thread.start()

    def ask(self, voter: str, what: FromMember) -> None:
        with self._lock:
            if self._is_up:
                key = what.node, type(what)
                self._asked.pop(key, None)  # it goes behind what was asked before
                self._asked[key] = what
        self._nudge()

    def close(self) -> None:
        """What was asked before is done first, if that is soon enough."""
        self._is_closed = True
        self._nudge()
        if self._thread.ident is not None:
            self._thread.join(GOODBYE_SECONDS)

    def _nudge(self) -> None:
        with self._lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    # --- of the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            try:
                if not self._is_up:
                    self._engine.open(self._nudge)
                    self._up()
                self._turn()
            except Error as error:
                self._down(str(error))
            except Exception as error:  # noqa: BLE001  # told; a thread that ended would say nothing
                self._down(f"{type(error).__name__}: {error}")
            if self._is_closed:
                break
            self._sleep()
        with suppress(Error):
            self._engine.close()
        with self._lock:
            os.close(self._wake)
            self._wake = -1

    def _up(self) -> None:
        self._judge.reconnected()
        self._has_failed = False
        with self._lock:
            self._is_up = True
        self._log("info", "reachable", "")
        self._hear(lambda hears, voter: hears.voter_up(voter))

    def _down(self, why: str) -> None:
        with self._lock:
            was_up, self._is_up = self._is_up, False
            self._asked.clear()
        self._waiting.clear()
        if was_up:
            self._hear(lambda hears, voter: hears.voter_down(voter))
        if not self._has_failed:
            self._has_failed = True
            self._log("warning", "unreachable", why)

    def _turn(self) -> None:
        self._engine.take_word()
        while True:
            with self._lock:
                asked, self._asked = list(self._asked.items()), {}
            for key, what in asked:
                self._waiting.pop(key, None)
                self._carry(key, what)
            if not asked:
                break
        for key, (what, _) in list(self._waiting.items()):
            self._carry(key, what, is_again=True)
        if self._engine.take_word():  # it came with an answer: the descriptor is not readable
            self._nudge()

    def _carry(self, key: Key, what: FromMember, *, is_again: bool = False) -> None:
        judged = self._done(what)
        if judged.waits_until is not None:
            assert isinstance(what, Question)
            self._waiting[key] = what.before_any_promise(), judged.waits_until
        else:
            self._waiting.pop(key, None)
        self._say_refused(what.node, judged.refused)
        if judged.answer is not None and not (is_again and judged.waits_until is not None):
            self._answer(judged.answer)

    def _done(self, what: FromMember) -> Judged:
        """Once it is written, if something is to be."""
        for _ in range(WRITES_MAX):
            seen = self._engine.look(what.node)
            judged = self._judge.judge(what, seen, now())
            if judged.ledger is None:
                return judged
            if self._engine.change(what.node, seen, judged.ledger, judged.lease):
                self._judge.wrote(what.node, judged.ledger)
                return judged
        raise EngineFailed(f"{self._engine.place}: others change the node all the time")

    def _answer(self, answer: FromVoter) -> None:
        self._hear(lambda hears, voter: hears.voter_said(voter, answer))

    def _hear(self, said: Callable[[Hears, str], None]) -> None:
        hears, [voter] = self._hears, self.electorate.voters
        assert hears is not None, "it has begun"
        self._network.call(lambda: said(hears, voter))

    def _sleep(self) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if not self._is_up:
            due = now() + AGAIN_SECONDS
        else:
            due = min((until for _, until in self._waiting.values()), default=float("inf"))
            if self._engine.file is not None:
                poll.register(self._engine.file, select.POLLIN)
        left = max(0.0, due - now()) * 1000 + 1
        poll.poll(None if due == float("inf") else left)
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)

    # --- for people ---------------------------------------------------------------------------

    def _say_refused(self, node: Node, why: str) -> None:
        """Once, until it is otherwise."""
        if why and self._refused.get(node) != why:
            self._log("error", "refused", why)
        self._refused[node] = why

    def _log(self, level: str, state: str, why: str) -> None:
        self._tell({"event": "lock manager", "level": level, "state": state,
                    "place": self._engine.place, "reason": why})  # fmt: skip
