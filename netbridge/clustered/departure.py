"""A stop of a node that gives all that it has to another one first ([ha.scale-down]).

Programs go first.  Then what is in its queues goes the way of redistributed messages: in
transactions into the queue towards that node, and from there as that one confirms it.  So whoever
is killed in between, each message is at one of both, and the next stop goes on.  If that node is
lost, the next one gets what is left, but for what is on its way: some of it may be there.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import ArenaFull, ConnectionClosed, Error, NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance.leaving import HELD, STOPPED, Left, count_in, that_go
from shmbroker.ipc.instance.moving import Parts
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.schedule.scheduled import ring_of
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.cluster.said import Answers, Holds, Leaving, Makes, Offers, Replaces
from shmbroker.netbridge.cluster.scale_down import ScaleDown, order_of
from shmbroker.netbridge.clustered import remote_programs, streams
from shmbroker.netbridge.clustered.inherited import IdsTold
from shmbroker.netbridge.clustered.members import Members
from shmbroker.netbridge.clustered.rows import Row, leading_to, pages, rows
from shmbroker.netbridge.clustered.towards import led_to, towards
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.serving.travelling import queue_of

FILE: Final = "scale-down"
"""In run/: how far it is."""
AHEAD: Final = 10_000
"""So many messages at most are on their way: if that node is lost, they wait for it."""
ROOM_SECONDS: Final = 0.2
"""So long it waits for room towards the other node; then others have their turn."""
LOOK_SECONDS: Final = 0.05
"""Nothing tells that all has arrived."""
FOUND_SECONDS: Final = 5.0
"""So long it looks for somebody."""
DRAINED_SECONDS: Final = 10.0
"""The same, of a backup that has taken over."""
LOST_SECONDS: Final = 10.0
"""A node that is not reached for so long does not get the rest."""
TOLD_SECONDS: Final = 1.0
"""Then the others know that nothing more is to be sent here."""
HELD_SECONDS: Final = 10.0
"""So long programs that come there wait for what is acknowledged in their transactions."""
Ends = Callable[[Node, str, str], list[Row]]
"""Programs on other hosts go, told of this node, its name and its address: what that one is told of
their transactions."""


class Stuck(Exception):
    """It cannot go on: the rest stays here."""


class Lost(Stuck):
    """This node gets nothing more; another one may have the rest."""


class _Source:
    """What is to be moved of the ring of a queue, or of its schedule, with the same verbs."""

    def __init__(self, queue: Queue, ring: Any) -> None:
        self._owner, self.name, self._queue = queue, queue.name, ring

    def _error(self, code: int, doing: str) -> Error:
        error: Error = self._owner._error(code, doing)
        return error


@contextmanager
def _resumed(queue: Queue) -> Iterator[None]:
    """For a moment: what is not moved stays paused, here and at the next node that has it.  What
    has expired meanwhile is moved nowhere, and leaves a queue only while it is not paused."""
    is_paused = queue.statistics().is_paused
    if is_paused:
        queue.resume()
    try:
        if is_paused:
            queue.expire()
        yield
    finally:
        if is_paused:
            queue.pause()


def _decided(broker: Broker) -> int:
    """1: what was moved last has lost its room to others, and is in no queue until it has some."""
    is_open = broker.participant in broker._participants.with_transactions()
    if is_open:
        broker.repair()
    return int(is_open)


@dataclass(slots=True)
class _Progress:
    to: str = ""
    """The names of who gets it, and of all that have got some of it before."""
    queues: int = 0
    of_queues: int = 0
    messages: int = 0
    of_messages: int = 0


class Departure:
    """Of one thread, which waits."""

    def __init__(
        self, members: Members, cluster: str, wanted: ScaleDown,
        tell: Callable[[Mapping[str, Any]], None],
        shows: Callable[[str, Mapping[str, Any]], None],
        *,
        drains: bool = False,
    ) -> None:  # fmt: skip
        """`drains`: of a backup that has just taken over: it knows nobody yet, and is not asked for
        anything."""
        self._drains = drains
        self._members, self._cluster, self._wanted = members, cluster, wanted
        self._tell, self._shows = tell, shows
        timeout = wanted.timeout
        self._late = None if timeout is None else time.monotonic() + timeout
        self._progress = _Progress()
        self._reached_at = time.monotonic()
        self._lost: dict[Node, str] = {}
        """Who got some of it, or was to, and why it gets no more."""
        self._parted: float | None = None
        """When programs were gone."""
        self._held: list[Row] = []
        """Of their transactions, of which nothing is on its way yet."""
        self._is_asked_for = True
        """What is held in transactions: programs come to the node that gets it."""
        self._listens = True
        self._is_bound = False
        """What is published for its queues goes to the other node: no other one may have them."""
        self._ids: IdsTold | None = None
        self._pause = threading.Event()
        """Set when it is to end: else a wait for it ends with its time."""

    def stop(self) -> None:
        """From another thread: it ends soon, and what was not moved stays."""
        self._pause.set()

    def run(self, parts: Parts, ends: Ends) -> Left:
        """`parts`: programs in shared memory go, and the connection to the cluster remains."""
        began = time.monotonic()
        try:
            self._gives(parts, ends)
        except ConnectionClosed:  # our own: the broker ends, as by a second stop
            return self._failed(STOPPED)
        except (Stuck, Error, OSError) as error:
            if self._drains:  # it tries again, if nobody else does
                self._pause.wait(max(0.0, began + FOUND_SECONDS - time.monotonic()))
            return self._failed(str(error))
        done = self._progress
        self._say("info", "scaled down", f"{done.messages} messages of {done.of_queues} queues are "
                  f"at {done.to}")  # fmt: skip
        self._show("done")
        return Left(is_whole=True)

    def _gives(self, parts: Parts, ends: Ends) -> None:
        """To one node after the other, until one has had it all."""
        while True:
            node, uri = self._target()
            try:
                self._go(node, uri, parts, ends)
                return
            except Lost as lost:
                if self._is_bound or self._is_over:
                    raise
                self._lost[node] = str(lost)
                self._say("warning", "resuming", f"{lost}: another node gets the rest")

    def _failed(self, why: str) -> Left:
        done = self._progress
        if done.to:
            why = (f"{why}; {done.messages} of {done.of_messages} messages went to {done.to}, the "
                   "rest stays in the journal")  # fmt: skip
        self._say("error", "not scaled down", why)
        self._show("failed", why)
        return Left(is_whole=False, why=f"not scaled down: {why}")

    # --- to whom ------------------------------------------------------------------------------

    def _target(self) -> tuple[Node, str]:
        refused = list(self._lost.values())
        for node in self._candidates():
            answer = self._members.asks(node, lambda number: Offers(number, self._wanted.group))
            if not answer.why:
                return node, answer.uri
            refused.append(f"{self._members.name_of(node)}: {answer.why}")
        named = f"none of {', '.join(self._wanted.connectors)}" if self._wanted.connectors else (
            f"no other member of the cluster {self._cluster}")  # fmt: skip
        up = ", ".join(uri for _, uri in self._members.reached())
        others = f", and these are, by their own connectors: {up}" if up else ""
        raise Stuck("; ".join(refused) or f"{named} is up{others}")

    def _candidates(self) -> list[Node]:
        """One that was just started may not have reached them yet."""
        late = time.monotonic() + (DRAINED_SECONDS if self._drains else FOUND_SECONDS)
        while not (found := order_of(self._wanted, self._others())):
            if time.monotonic() >= late or self._is_over:
                break
            self._pause.wait(LOOK_SECONDS)
        return found

    def _others(self) -> list[tuple[Node, str]]:
        return [each for each in self._members.reached() if each[0] not in self._lost]

    @property
    def _is_over(self) -> bool:
        is_late = self._late is not None and time.monotonic() >= self._late
        return is_late or self._pause.is_set()

    def _go(self, node: Node, uri: str, parts: Parts, ends: Ends) -> None:
        self._reached_at = time.monotonic()
        self._opens(node)
        broker = self._members.messages.broker
        if broker is None:
            raise Stuck("it is not a member of the cluster yet")
        name, done = self._members.name_of(node), self._progress
        done.to = f"{done.to} and {name}" if done.messages else name
        self._members.takes_nothing()
        if not self._drains and self._parted is None:
            self._waits_for_transactions(node, broker)
        self._members.leaves(node)
        self._ids = None
        self._told_of(node, broker)
        self._programs_go(node, uri, broker, parts, ends)
        queues = list(that_go(broker))
        self._counts(broker, queues)
        self._say("info", "scaling down", f"{done.of_messages} messages of {len(queues)} queues go "
                  f"to {name}")  # fmt: skip
        self._drain(broker, queues, node, until_moved=done.of_messages)
        assert self._parted is not None, "programs are gone"
        while (left := self._parted + TOLD_SECONDS - time.monotonic()) > 0:
            self._wait(node, left)
        if self._listens:
            self._members.listens_no_more()
            self._listens = False
        self._drain(broker, queues, node)
        self._hands_over(node, broker, queues)

    def _hands_over(self, node: Node, broker: Broker, queues: list[Queue]) -> None:
        """What others have for this node goes to that one from now on.  Its queues are bound when
        nothing is on its way there that was published before all knew that they are there: what
        crosses for other queues of an exchange would reach these as well."""
        self._is_bound = True
        for page in pages(chain(leading_to(broker, queues), streams.rows(broker, queues))):
            self._asked(node, partial(Makes, rows=page))
        me = self._members.machine.me
        assert me is not None, "it is a member"
        self._asked(node, partial(Replaces, node=me.node, epoch=me.epoch))
        self._members.has_left(node)

    def _programs_go(
        self, node: Node, uri: str, broker: Broker, parts: Parts, ends: Ends
    ) -> None:
        """Whoever comes there before it knows all ids and numbers waits.  If they have gone to a
        node that was lost, those that come here still hear of this one."""
        self._asked(node, lambda number: Holds(number, True))
        try:
            if self._parted is None:
                self._held = ends(node, self._members.name_of(node), uri)
                self._stays(broker)
            parts(uri, broker)
            if self._parted is None:
                self._parted = time.monotonic()
            self._told_of(node, broker)
            queues = list(that_go(broker))
            known = streams.rows(broker, queues), remote_programs.rows(broker, queues)
            for page in pages(chain(*known)):
                self._asked(node, partial(Makes, rows=page))
            held, self._held, self._is_asked_for = self._held, [], bool(uri)
            self._arrives(node, broker, held if uri else [])
        finally:
            self._members.asks(node, lambda number: Holds(number, False))

    def _stays(self, broker: Broker) -> None:
        """What is bound here by now is told until this node has left."""
        messages = self._members.messages
        messages.leaves()
        go = {each.name for each in that_go(broker)}
        self._members.looks(lambda: messages.stays(go))

    def _told_of(self, node: Node, broker: Broker) -> None:
        """Queues, and the ids that they know; what it was told already is not told again."""
        if self._ids is None:
            self._ids = IdsTold(broker)
        queues = list(that_go(broker))
        for _ in pages(leading_to(broker, queues)):
            pass  # one that is too long is told before anything is moved
        for page in pages(chain(rows(broker, queues), self._ids.rows(queues))):
            self._asked(node, partial(Makes, rows=page))

    def _waits_for_transactions(self, node: Node, broker: Broker) -> None:
        """Those of programs in shared memory, which cannot go there, end first: each program is
        seen without one; so long that as much time is left for what is moved."""
        late = self._late and (time.monotonic() + self._late) / 2
        waited: set[int] | None = None
        while late is None or time.monotonic() < late:
            found = broker._participants.with_transactions()
            others = {number: who for number, who in found.items() if who[0] != os.getpid()}
            waited = set(others) if waited is None else waited & others.keys()
            if not waited:
                return
            who = ", ".join(f"{name or 'a program'} ({pid})" for pid, name in others.values())
            self._show("waiting", f"it waits for transactions of {who}")
            self._wait(node, LOOK_SECONDS)

    def _arrives(self, node: Node, broker: Broker, held: list[Row]) -> None:
        """What programs have published here for that node is there, before they bind there, as
        whoever opens a subscription again; unless it takes long.  What is acknowledged in open
        transactions is waited for longer: without it they are rolled back there."""
        late = time.monotonic() + (HELD_SECONDS if held else TOLD_SECONDS)
        way = serving(broker, towards(self._cluster, node))
        queues = [each for each in that_go(broker) if each.name.startswith(HELD)] if held else []
        while time.monotonic() < late:
            moved = sum(self._moves(each, way) for each in queues)
            left = _decided(broker) + sum(map(count_in, queues)) + self._ways(broker)[node]
            if not moved and not left:
                for page in pages(held):
                    self._asked(node, partial(Makes, rows=page))
                return
            self._wait(node, late - time.monotonic())

    def _opens(self, node: Node) -> None:
        """It has just become a live of its cluster: the way to this node is made, and the journal
        has it.  Once we remain, the catalog is a copy of our own: of a queue that is made then the
        journal never hears, and what is in it waits for a confirm for ever."""
        late, messages = time.monotonic() + DRAINED_SECONDS, self._members.messages
        while messages.broker is None or not self._is_open(messages.broker, node):
            if time.monotonic() >= late or self._is_over:
                raise Lost(f"there is no way for messages to {self._members.name_of(node)}")
            self._pause.wait(LOOK_SECONDS)

    def _is_open(self, broker: Broker, node: Node) -> bool:
        if not self._members.messages.is_up(node):
            return False
        gates = broker.queue(towards(self._cluster, node)).gates()
        return all(each.owner is not None for each in gates if each.kind == "journal")

    def _counts(self, broker: Broker, queues: list[Queue]) -> None:
        told = self._progress
        if told.of_queues:
            return  # the node before has had some of it
        told.of_queues = len(queues)
        told.of_messages = sum(map(count_in, queues)) + sum(self._ways(broker).values())
        self._show("moving")

    def _asked(self, node: Node, word: Callable[[int], Leaving]) -> None:
        answer: Answers = self._members.asks(node, word)
        if answer.why:
            name = self._members.name_of(node)
            raise Lost(f"{name} cannot have these queues: {answer.why}")

    # --- what is moved ------------------------------------------------------------------------

    def _drain(
        self, broker: Broker, queues: list[Queue], node: Node, until_moved: float = math.inf
    ) -> None:
        """Returns when nothing is here any more, and all of it is confirmed there; or when so many
        were moved: what others go on sending may have no end."""
        way, total = serving(broker, towards(self._cluster, node)), 0
        while True:
            moved = sum(self._moves(queue, way) for queue in queues)
            total += moved
            if total > until_moved:
                return
            before = self._ways(broker)  # what goes home is in a queue here before it leaves these
            left = _decided(broker) + sum(map(count_in, queues))
            left += self._members.messages.standing
            waiting = self._ways(broker)
            self._told(queues, left + sum(waiting.values()))
            if left == 0 and not any((*before.values(), *waiting.values())):
                return
            others = self._but_lost(waiting)
            is_done = left == 0 and not any(others.values())
            self._check(node, waiting if is_done else others)
            if not moved:
                self._pause.wait(LOOK_SECONDS)

    def _moves(self, queue: Queue, way: Queue) -> int:
        """As many as there is room for: how many."""
        with suppress(NotFound):  # deleted by its settings, or with its owner
            lib.sb_take_back(queue._queue)
            is_held = queue.name.startswith(HELD) and not self._is_asked_for
            target = target_of(queue_of(queue.name) if is_held else queue.name)
            with _resumed(queue):
                moved = self._batch(queue, way, target)
            schedule = ring_of(queue)
            if schedule is not None:
                moved += self._batch(_Source(queue, schedule), way, target & ~1)
            return moved
        return 0

    def _batch(self, source: Any, way: Queue, target: int) -> int:
        most = min(self._wanted.commit_interval or AHEAD, AHEAD - len(way))
        if most <= 0:
            return 0
        try:
            return pass_over(
                source, way, most, None, ROOM_SECONDS, copies=False, towards=target,
            ).messages  # fmt: skip
        except ArenaFull:
            if not len(way):
                raise
            return 0  # until some of what is on its way has arrived

    def _ways(self, broker: Broker) -> dict[Node, int]:
        """What is on its way to other nodes; nothing but they themselves may know that they have
        it."""
        nodes = led_to(broker, self._cluster)
        return {each: len(broker.queue(towards(self._cluster, each))) for each in nodes}

    # --- until when ---------------------------------------------------------------------------

    def _wait(self, node: Node, seconds: float) -> None:
        self._pause.wait(min(seconds, LOOK_SECONDS))
        self._check(node, {})

    def _check(self, node: Node, waiting: Mapping[Node, int]) -> None:
        """Stuck: it has no time left, or nobody gets what is here."""
        now = time.monotonic()
        if self._pause.is_set():
            raise Stuck(STOPPED)
        if self._is_over:
            raise Stuck(f"ha.scale-down.timeout ({self._wanted.timeout:g}s) is over")
        messages = self._members.messages
        missing = [
            each
            for each, count in waiting.items()
            if count and not messages.is_up(each) and not messages.goes_home(each)
        ]
        if messages.is_up(node) and not missing:
            self._reached_at = now
        elif now >= self._reached_at + LOST_SECONDS:
            is_lost = not messages.is_up(node)
            names = map(self._members.name_of, [node] if is_lost else missing)
            who = " and ".join(names)
            raise (Lost if is_lost else Stuck)(f"{who} is not reached, and messages wait for it")

    def _but_lost(self, waiting: Mapping[Node, int]) -> dict[Node, int]:
        """What is on its way to those that were lost is waited for last."""
        return {node: count for node, count in waiting.items() if node not in self._lost}

    # --- people -------------------------------------------------------------------------------

    def _told(self, queues: list[Queue], left: int) -> None:
        told = self._progress
        told.messages = max(told.messages, told.of_messages - left)
        told.queues = sum(count_in(each) == 0 for each in queues)
        self._show("moving")

    def _show(self, state: str, why: str = "") -> None:
        told = self._progress
        self._shows(FILE, {
            "state": state, "to": told.to, "queues": told.queues, "of-queues": told.of_queues,
            "messages": told.messages, "of-messages": told.of_messages, "why": why,
            "process": os.getpid(),
        })  # fmt: skip

    def _say(self, level: str, state: str, detail: str) -> None:
        self._tell({"event": "cluster", "level": level, "cluster": self._cluster, "state": state,
                    "detail": detail})  # fmt: skip
