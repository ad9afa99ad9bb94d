"""A witness at work: links of members, its voter, and ledgers that are synced before a word.

All but the sync is done in the network thread.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from shmbroker.ipc.base.closable import Closable
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.election.codec import encode, from_member
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import FromMember, Node, Question
from shmbroker.netbridge.election.voter import Action, Keep, Say, Voter
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.wire.frame import COUNT_MAX, Frame, Vote
from shmbroker.netbridge.wire.malformed import Malformed

Tell = Callable[[Mapping[str, Any]], None]
Failed = Callable[[Exception], None]

CLOSED: Final = frozenset({Reason.DISCONNECTED, Reason.PEER_CLOSING})
"""The member's host has closed the connection, or the member has: its process is over, or it says
that it is done.  After silence nobody knows."""
NODES_MAX: Final = 100
"""That a member may speak of over one link."""


class Ledgers(Protocol):
    """Where they are kept."""

    @property
    def ledgers(self) -> Mapping[Node, Ledger]: ...

    def keep(self, changes: Iterable[tuple[Node, Ledger]]) -> None:
        """In a thread of its own: they outlive this process when it returns."""

    def close(self) -> None: ...


class Witness(Closable):
    """Serves the links of members, of a listener that gets it as `votes`."""

    def __init__(
        self,
        thread: NetworkThread,
        state: Ledgers,
        *,
        tell: Tell = lambda _: None,
        failed: Failed,
        shows: Callable[[list[tuple[Node, str]]], None] = lambda _: None,
    ) -> None:
        """`failed`: the state cannot be written; nothing more is granted, and it has to end.

        `shows`: who has a link.  Close it before the thread and the state.
        """
        self.due = math.inf
        self._state = state
        self._tell, self._failed, self._shows = tell, failed, shows
        self._voter = Voter(0.0, state.ledgers, time.monotonic())
        self._ends: dict[tuple[Node, str], End] = {}
        self._nodes: dict[End, set[Node]] = {}
        self._to_keep: list[Keep] = []
        self._is_writing = False
        self._thread = thread
        self._worker = Worker(thread.call)
        thread.ask(lambda: thread.members.append(self))

    def close(self) -> None:
        if self._thread.failure is None:
            self._thread.ask(self.end)
        self._worker.close()

    # --- of the thread ------------------------------------------------------------------------

    def doubts(self, is_in_doubt: bool) -> None:
        """It is a live of which nobody knows whether it may go on."""
        self._voter.is_in_doubt = is_in_doubt

    def forgets(self, nodes: Mapping[Node, int]) -> None:
        """The operator says so: up to these epochs they are no more; 0: up to any."""
        for node, epoch in nodes.items():
            self._does(self._voter.forget(node, epoch or COUNT_MAX))

    def end(self) -> None:
        if self in self._thread.members:
            self._thread.members.remove(self)

    def woken(self, now: float) -> None:
        self._does(self._voter.tick(now))

    def came(self, end: End) -> None:
        self._nodes[end] = set()

    def gone(self, end: End) -> None:
        nodes = self._nodes.pop(end, None)
        if nodes is None:  # lost while it shook hands: nobody knows who it is
            return
        ending = end.machine.ending
        is_closed = ending is not None and ending.reason in CLOSED
        now, member = time.monotonic(), _member(end)
        for node in nodes:
            if self._ends.get((node, member)) is end:
                del self._ends[node, member]
                self._does(self._voter.unlinked(node, member, is_closed=is_closed, now=now))
        self._shows(list(self._ends))

    def heard(self, end: End, frame: Frame) -> None:
        assert isinstance(frame, Vote)
        now = time.monotonic()
        try:
            what = from_member(frame.body)
            self._check(end, what)
        except Malformed as error:
            end.does(end.machine.malformed(error, now))
        else:
            self._link(end, what.node)
            self._does(self._voter.heard(_member(end), what, now))

    def _check(self, end: End, what: FromMember) -> None:
        if isinstance(what, Question) and what.asker != _member(end):
            raise Malformed(f"{_member(end)} asks in the name of {what.asker}")
        nodes = self._nodes[end]
        if what.node not in nodes and len(nodes) >= NODES_MAX:
            raise Malformed(f"{_member(end)} speaks of more than {NODES_MAX} nodes")

    def _link(self, end: End, node: Node) -> None:
        """A link is of a member and a node as soon as something is said of that over it."""
        member = _member(end)
        if node in self._nodes[end]:
            return
        self._nodes[end].add(node)
        if (node, member) in self._ends:  # of a former process: it has renewed nothing over this
            now = time.monotonic()
            self._does(self._voter.unlinked(node, member, is_closed=False, now=now))
        self._ends[node, member] = end
        self._voter.linked(node, member)
        self._shows(list(self._ends))

    # --- what the voter says ------------------------------------------------------------------

    def _does(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Say):
                end = self._ends.get((action.what.node, action.to))
                if end is not None:
                    end.say(Vote(encode(action.what)))
            else:
                self._to_keep.append(action)
        self._write()
        self.due = self._voter.deadline

    def _write(self) -> None:
        """All that has come meanwhile, with one sync."""
        if not self._to_keep or self._is_writing:
            return
        keeps, self._to_keep = self._to_keep, []
        self._is_writing = True
        for each in keeps:
            self._log(each.node, self._state.ledgers.get(each.node, Ledger()), each.ledger)
        changes = [(each.node, each.ledger) for each in keeps]
        self._worker.do(lambda: self._state.keep(changes), partial(self._written, keeps[-1].number))

    def _written(self, number: int, error: Exception | None) -> None:
        if error is not None:
            self._failed(error)
            return
        self._is_writing = False
        self._does(self._voter.kept(number))

    def _log(self, node: Node, before: Ledger, after: Ledger) -> None:
        """A line for each grant, and for each list."""
        line: dict[str, Any] = {"event": "witness", "level": "info", "node": node.hex()}
        if after.accepted != before.accepted and after.accepted is not None:
            grant = after.accepted[1]
            self._tell(line | {"state": "accepted", "epoch": grant.epoch, "holder": grant.holder})
        if after.known != before.known and after.known is not None:
            self._tell(line | {
                "state": "in sync", "epoch": after.known.epoch, "holder": after.known.holder,
                "in_sync": sorted(after.known.members),
            })  # fmt: skip


def _member(end: End) -> str:
    peer = end.machine.handshake.peer
    assert peer is not None, "only who was welcomed is heard"
    return peer.name
