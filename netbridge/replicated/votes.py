"""The vote of a live that is replicated: what it has granted stands in its own journal.

Nothing of it is said before it is confirmed as any message is, at the effective level.  So a live
that was fenced cannot vote, and its successor knows what was granted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING

from shmbroker.ipc.base.errors import SystemRefused
from shmbroker.netbridge.election.ledger import Ledger, of_nodes
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.member.codec import LEDGERS_MAX
from shmbroker.netbridge.member.standing import SERVING, State, Voted
from shmbroker.netbridge.replicated.process import now

if TYPE_CHECKING:
    from shmbroker.netbridge.replicated.acting import Acting

WRITING = frozenset({State.LIVE, State.ALONE, State.SUSPENDED})


class CannotVote(SystemRefused):
    """It is live no more, or there are too many nodes."""


class Votes:
    """`witness.Ledgers`, of one time as live."""

    def __init__(self, acting: Acting) -> None:
        """In the network thread."""
        self.ledgers: Mapping[Node, Ledger] = dict(acting.written.ledgers)
        self._acting = acting
        self._wanted: deque[tuple[dict[Node, Ledger], Future[None]]] = deque()
        self._written: deque[tuple[Voted, Future[None]]] = deque()
        self._safe_at: deque[tuple[int, Future[None]]] = deque()
        """Frames with ledgers, which are not confirmed yet."""

    # --- of the voter, in a thread of its own -------------------------------------------------

    def keep(self, changes: Iterable[tuple[Node, Ledger]]) -> None:
        done: Future[None] = Future()
        wanted = dict(changes)
        self._acting.thread.call(lambda: self.wants(wanted, done))
        done.result()

    def close(self) -> None:
        """It stays in the journal."""

    # --- of the network thread ----------------------------------------------------------------

    def wants(self, changes: dict[Node, Ledger], done: Future[None]) -> None:
        """`done` has a result when they may be told, or CannotVote."""
        self._wanted.append((changes, done))
        self._acting.does([])

    def written(self, record: Voted, number: int) -> None:
        """It is synced here, in this frame."""
        while self._written:
            which, done = self._written.popleft()
            self._safe_at.append((number, done))
            if which is record:
                return

    def look(self) -> None:
        """Whether anything may be written, or said, by now."""
        acting = self._acting
        machine, served = acting.machine, acting.served
        if machine.state not in SERVING or (served is not None and served.is_over):
            self._fail(CannotVote("it is live no more"))
            return
        if served is not None and machine.state in WRITING:
            while self._wanted:
                self._write(*self._wanted.popleft())
        confirmed = machine.confirmed(now()) if self._safe_at else 0
        while self._safe_at and self._safe_at[0][0] <= confirmed:
            self._safe_at.popleft()[1].set_result(None)

    def _write(self, changes: dict[Node, Ledger], done: Future[None]) -> None:
        ledgers = of_nodes(dict(self._acting.written.ledgers) | changes)
        if len(ledgers) > LEDGERS_MAX:
            done.set_exception(CannotVote(f"it votes for members of {LEDGERS_MAX} nodes, not more"))
            return
        record = Voted(tuple(ledgers.items()))
        self._written.append((record, done))
        self._acting.note(record)
        self.ledgers = ledgers

    def _fail(self, why: CannotVote) -> None:
        waiting = [each[1] for each in (*self._wanted, *self._written, *self._safe_at)]
        for queue in (self._wanted, self._written, self._safe_at):
            queue.clear()
        for each in waiting:
            each.set_exception(why)
