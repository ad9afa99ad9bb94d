"""The grouping handler of a broker: who decides in the cluster, and what it says to the others.

Each broker that has one proposes; that of type local decides as well.  What it says to itself goes
no other way.  If two of them decide, it is the one with the lower node id, also while it is not
reached: else there would be two routes of a group.  The other one asks it, as all do.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.cluster.arbiter import NEVER, Arbiter, Queues
from shmbroker.netbridge.cluster.group import Action, Gone, Group, Tell, TellAll, TimedOut
from shmbroker.netbridge.cluster.grouping import Grouping
from shmbroker.netbridge.cluster.machine import Line
from shmbroker.netbridge.cluster.proposer import Holders, Proposer
from shmbroker.netbridge.cluster.said import (
    Arbitrates,
    Decides,
    Ends,
    Grouped,
    Proposes,
    WhoDecides,
)
from shmbroker.netbridge.election.question import Node

Actions = Iterator[Action | Line]
DECIDES: Final = "decides"
ASKS: Final = "asks"
NOT_REACHED: Final = "not reached"
NOBODY: Final = "nobody decides"
TWO: Final = "error: two local handlers"
STATES: Final = (DECIDES, ASKS, NOT_REACHED, NOBODY, TWO)


@dataclass(frozen=True, slots=True)
class Counters:
    proposals: int
    rejections: int
    timeouts: int


class Handler:
    """Of a live."""

    def __init__(
        self,
        wanted: Grouping,
        mode: str,
        me: Node,
        kept: Mapping[Group, Node],
        known: Mapping[Group, Node],
        now: float,
    ) -> None:
        """Before there are links.  `kept`: what was decided here; `known`: by which messages that
        are published here go."""
        self.arbiter: Arbiter | None = None
        """None: others decide."""
        self._wanted, self._me = wanted, me
        self._deciders: dict[Node, Arbitrates] = {}
        """All that were ever heard of, until they are forgotten."""
        self._up: set[Node] = set()
        self._has_looked = False
        """Before that an arbiter would not know which nodes there are, and decides nothing."""
        self._there: set[Node] = set()
        """Deciders that have said so over the link that there is."""
        self._complaints: set[str] = set()
        self._proposer = Proposer(
            me, mode, wanted.timeout, wanted.group_timeout, wanted.reaper_period, known, now
        )
        if wanted.is_local:
            self.arbiter = Arbiter(mode, wanted.group_timeout, wanted.reaper_period, kept, now)
            self._deciders[me] = self._says
            self._there.add(me)

    @property
    def decider(self) -> Node | None:
        """Who decides, reached or not; None: no local handler is known."""
        return min(self._deciders, default=None)

    @property
    def waiting(self) -> int:
        """Groups that were asked for here, and have no route yet."""
        return self._proposer.waiting

    @property
    def state(self) -> str:
        """One of STATES."""
        decider = self.decider
        if decider is None:
            return NOBODY
        if self.arbiter is not None and decider != self._me:
            return TWO
        if decider == self._me:
            return DECIDES
        return ASKS if decider in self._there else NOT_REACHED

    @property
    def routes(self) -> Mapping[Group, Node]:
        """By which messages that are published here go."""
        return self._proposer.routes

    @property
    def by_node(self) -> Counter[Node]:
        """How many groups go to each: all that there are, if this one decides; else those that are
        published here."""
        decides = self.arbiter is not None and self.decider == self._me
        return self.arbiter.by_node if self.arbiter and decides else self._proposer.by_node

    @property
    def counters(self) -> Counters:
        """Of this broker as one that proposes."""
        own = self._proposer
        return Counters(own.proposals, own.rejections, own.timeouts)

    # --- links --------------------------------------------------------------------------------

    def up(self, node: Node, now: float) -> Actions:
        """There is a link to the live of this node, or another one: what was said over the former
        one may be lost."""
        self._up.add(node)
        yield from self._presents(node)
        yield Tell(node, WhoDecides())
        if node == self.decider and node in self._there:
            yield from self._asks(now)

    def down(self, node: Node, now: float) -> Actions:
        self._up.discard(node)
        if node in self._there:
            self._there.discard(node)
            if node == self.decider:
                yield from self._through(self._proposer.asks(None, now), now)

    def heard(self, by: Node, what: Grouped, now: float) -> Actions:
        if isinstance(what, Arbitrates):
            yield from self._decides(by, what, now)
        elif isinstance(what, WhoDecides):
            yield from self._presents(by)
        else:
            yield from self._through(self._hears(by, what, now), now)

    # --- what happens here --------------------------------------------------------------------

    def looks(
        self,
        nodes: Collection[Node],
        gone: Gone,
        queues: Queues,
        holders: Holders,
        now: float,
    ) -> Actions:
        """At what is known of all nodes, this one among them.

        `gone`: their routes end, or lead to who has what they had.
        """
        former = self.decider
        for node in self._deciders.keys() & gone.keys():
            del self._deciders[node]
            self._there.discard(node)
        yield from self._through(self._proposer.looks(holders, gone), now)
        if self.arbiter is not None and self.decider == self._me:
            yield from self._through(self.arbiter.looks(nodes, gone, queues, now), now)
        if self.decider != former or not self._has_looked:
            yield from self._asks(now)
        if not self._has_looked:
            self._has_looked = True
            for node in self._up:
                yield from self._presents(node)

    def wants(self, group: Group, now: float) -> Actions:
        yield from self._through(self._proposer.wants(group, now), now)

    def used(self, group: Group, now: float) -> None:
        self._proposer.used(group, now)

    def kept(self, number: int, group: Group, now: float) -> Actions:
        if self.arbiter is not None:
            yield from self._through(self.arbiter.kept(number, group), now)

    def not_kept(self, number: int, group: Group) -> None:
        if self.arbiter is not None:
            self.arbiter.not_kept(number, group)

    def tick(self, now: float) -> Actions:
        if self.arbiter is not None and self.decider == self._me:
            yield from self._through(self.arbiter.tick(now), now)
        yield from self._through(self._proposer.tick(now), now)

    @property
    def deadline(self) -> float:
        of_arbiter = NEVER
        if self.arbiter is not None and self.decider == self._me:
            of_arbiter = self.arbiter.deadline
        return min(of_arbiter, self._proposer.deadline)

    def _presents(self, node: Node) -> Actions:
        if self.arbiter is not None and self._has_looked:
            yield Tell(node, self._says)

    # --- within -------------------------------------------------------------------------------

    @property
    def _says(self) -> Arbitrates:
        own = self._wanted
        return Arbitrates(
            own.name, round(own.timeout * 1000), round((own.group_timeout or 0) * 1000)
        )

    def _decides(self, by: Node, what: Arbitrates, now: float) -> Actions:
        if what.handler != self._wanted.name:
            yield from self._complain(
                "error",
                "another handler",
                f"[grouping.{what.handler}] there, and [grouping.{self._wanted.name}] here: they "
                "need the same name",
                by,
            )
            return
        self._deciders[by] = what
        self._there.add(by)
        if self.arbiter is not None:
            lower = min(by, self._me)
            yield from self._complain(
                "error",
                "two local handlers",
                f'[grouping.{what.handler}] has type = "local" at two nodes: {lower.hex()} decides',
                by,
            )
        else:
            yield from self._compare(by, what)
        if by == self.decider:
            yield from self._asks(now)

    def _compare(self, by: Node, what: Arbitrates) -> Actions:
        """The times of a remote handler with those of the local one."""
        own, table = self._wanted, f"[grouping.{what.handler}]"
        here, there = round((own.group_timeout or 0) * 1000), what.group_timeout
        if own.timeout * 2000 < what.timeout:
            yield from self._complain(
                "warning", "timeout is short",
                f"{table}.timeout is {own.timeout:g} s here, and {what.timeout / 1000:g} s where "
                "it is decided: at least half of that is needed", by,
            )  # fmt: skip
        if there and not there <= here * 2 <= there * 2:
            yield from self._complain(
                "warning", "group-timeout differs",
                f"{table}.group-timeout is {here / 1000:g} s here, and {there / 1000:g} s where "
                "it is decided: between half and all of that is needed", by,
            )  # fmt: skip

    def _complain(self, level: str, state: str, detail: str, node: Node) -> Actions:
        """Once."""
        if detail not in self._complaints:
            self._complaints.add(detail)
            yield Line(level, state, detail, node)

    def _asks(self, now: float) -> Actions:
        decider = self.decider
        there = decider if decider in self._there else None
        yield from self._through(self._proposer.asks(there, now), now)

    def _hears(self, by: Node, what: Proposes | Decides | Ends, now: float) -> Iterator[Action]:
        """Only the one that decides answers, and is believed."""
        if isinstance(what, Proposes):
            if self.arbiter is not None and self.decider == self._me:
                holders = self._proposer.holders_of(what.queue)
                yield from self.arbiter.proposed(by, what, holders, now)
        elif by != self.decider:
            return
        elif isinstance(what, Decides):
            yield from self._proposer.decided(what, now)
        else:
            yield from self._proposer.ended(what)

    def _through(self, actions: Iterable[Action], now: float) -> Actions:
        """What is for this node itself is heard by it when all else is done."""
        own: deque[Proposes | Decides | Ends] = deque()
        yield from self._but_own(actions, own)
        while own:
            yield from self._but_own(self._hears(self._me, own.popleft(), now), own)

    def _but_own(self, actions: Iterable[Action], own: deque[Proposes | Decides | Ends]) -> Actions:
        for action in actions:
            is_own = isinstance(action, Tell) and action.to == self._me
            if isinstance(action, TellAll) or is_own:
                assert isinstance(action, Tell | TellAll)
                assert not isinstance(action.what, Arbitrates | WhoDecides)
                own.append(action.what)
            if not is_own:
                yield action
            if isinstance(action, TimedOut) and self.decider is None:
                yield from self._complain(
                    "error", "nobody decides",
                    f"[grouping.{self._wanted.name}] is local at no node that was ever here: new "
                    "groups fail", self._me,
                )  # fmt: skip
