"""The grouping handler of a live at work: what it says, what it keeps, and what programs ask.

Programs on this host find routes in a queue that keeps the last value of each key (ROUTES), and ask
for those that are not there in another one (ASKED): ipc/queue/grouped.c.  What an arbiter decides
is a value in a third one (KEPT), durable and replicated as any queue, and is said when it is
confirmed there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from shmbroker.core.layout import CONFIRM_EFFECTIVE, GROUP_BYTES_MAX, NAME_BYTES_MAX
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Empty, Error, QueueFull
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.grouped import ASKED, ROUTES, SEPARATOR, TIMEOUT, USES
from shmbroker.ipc.queue.queue import Queue as Ring
from shmbroker.netbridge.broker.gates import TOWARDS
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.sleeper import ANY
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.cluster.adverts import Copy
from shmbroker.netbridge.cluster.behind import Behind
from shmbroker.netbridge.cluster.codec import encode
from shmbroker.netbridge.cluster.group import (
    Action,
    Drop,
    Group,
    Holder,
    Keep,
    Routed,
    Tell,
    TellAll,
    Unrouted,
)
from shmbroker.netbridge.cluster.handler import Handler
from shmbroker.netbridge.cluster.machine import Line, Membership
from shmbroker.netbridge.cluster.proposer import USES_TOLD
from shmbroker.netbridge.cluster.said import Grouped
from shmbroker.netbridge.clustered.former import KEPT
from shmbroker.netbridge.clustered.last_values import last_values, newest
from shmbroker.netbridge.clustered.looking import Looked, is_shared
from shmbroker.netbridge.clustered.setup import Setup
from shmbroker.netbridge.clustered.towards import towards
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.serving.confirms import Confirms
from shmbroker.netbridge.wire.frame import ID_BYTES, Talk

ASKED_SLOTS: Final = 1 << 10
ASKED_TOGETHER: Final = 256
GONE_SECONDS: Final = 1.0
"""So long the note stays that a group has no route."""
AGAIN_SECONDS: Final = 1.0
"""Until what found no room is tried again."""
A_MESSAGE: int = lib.SB_A_MESSAGE


def key_of(group: Group) -> str:
    return f"{group.queue}{SEPARATOR}{group.name}"


class Groups:
    """Of one time as live.  All but what is said otherwise is of the network thread."""

    def __init__(
        self, thread: NetworkThread, broker: Broker, setup: Setup, node: Node,
        tell: Callable[[Mapping[str, Any]], None], changed: Callable[[], None],
    ) -> None:  # fmt: skip
        """In the worker.  `changed`: something else is due."""
        wanted = setup.grouping
        assert wanted is not None, "there is a handler"
        self._thread, self._setup, self._node = thread, setup, node
        self._tell, self._changed, self._broker = tell, changed, broker
        self._routes = last_values(broker, ROUTES)
        self._asked = broker.declare_queue(ASKED, slots=ASKED_SLOTS, max_deliveries=None)
        self._kept = last_values(broker, KEPT)
        self._is_full = False
        """The last one was not written, and that was told."""
        self._late: dict[tuple[str, str], Callable[[], None]] = {}
        """What found no room, by its queue and key."""
        self._writes_at = math.inf
        self._say(TIMEOUT, wanted.timeout)
        self._own_ttl: float | None = None
        """Of routes that concern no other node: who uses one asks for it again in time."""
        if wanted.group_timeout is not None:
            self._say(USES, wanted.group_timeout / USES_TOLD)
            self._own_ttl = wanted.group_timeout * (1 + 2 / USES_TOLD)
        kept = {group: there for group, to in _values(self._kept) if (there := _node(to))}
        known = {group: self._node_of(to) for group, to in _values(self._routes)
                 if is_shared(group.queue, setup.cluster.addresses)}  # fmt: skip
        self.handler = Handler(wanted, setup.cluster.balancing, node, kept, known, time.monotonic())
        self._ends: dict[Node, End] = {}
        """Over which link each other node is talked to."""
        self._made: frozenset[Node] = frozenset()
        self._waiting: dict[Group, Node] = {}
        """Routes to nodes to which there is no queue yet."""
        self._behind = Behind(self._way_is_empty)
        self._confirms: Confirms | None = None
        self._ticket: int | None = None

    def begin(self) -> None:
        self._confirms = Confirms(self._thread.sleeper, self._kept._queue, CONFIRM_EFFECTIVE)
        self._watch()

    def end(self) -> None:
        """Programs go on by the routes that are known."""
        if self._ticket is not None:
            self._thread.sleeper.forget(self._ticket, self._asked._queue, A_MESSAGE, ANY)
            self._ticket = None
        if self._confirms is not None:
            self._confirms.close()
            self._confirms = None

    # --- other nodes --------------------------------------------------------------------------

    def reaches(self, ends: Mapping[Node, End]) -> None:
        """There are links to the lives of these nodes, one to each."""
        former, self._ends = self._ends, dict(ends)
        now = time.monotonic()
        for node in former:
            if node not in ends:
                self._does(self.handler.down(node, now))
        for node, end in ends.items():
            if former.get(node) is not end:
                self._does(self.handler.up(node, now))

    @property
    def reached(self) -> frozenset[Node]:
        """Other nodes that are talked to."""
        return frozenset(self._ends)

    def heard(self, by: Node, what: Grouped) -> None:
        self._does(self.handler.heard(by, what, time.monotonic()))

    def looks(
        self, machine: Membership, here: Looked, copies: Mapping[Node, Copy], made: frozenset[Node]
    ) -> None:
        """At the queues of all.  `copies`: of nodes that have told all of theirs."""
        own = {each.name: each.is_consumed for each in here.here}
        holders: dict[str, list[Holder]] = {}
        for name, is_consumed in own.items():
            holders[name] = [Holder(self._node, is_consumed, is_up=True)]
        for node, copy in copies.items():
            for queue in copy.queues.values():
                is_up = node in self._ends
                holders.setdefault(queue.name, []).append(Holder(node, queue.is_consumed, is_up))
        queues: dict[Node, Collection[str]] = {self._node: own.keys()}
        queues |= {node: copy.queues.keys() for node, copy in copies.items()}
        nodes = {self._node, *machine.lives}
        self._made = made
        for group, node in list(self._waiting.items()):
            self._route(group, node)
        gone = {node: machine.heir(node) for node in machine.forgotten.keys() - nodes
                if not machine.waits_for_heir(node)}  # fmt: skip
        now = time.monotonic()
        self._behind.looks(machine.forgotten.keys() & machine.left.keys() - nodes)
        self._goes_behind(now)
        self._does(self.handler.looks(nodes, gone, queues, holders, now))

    def tick(self, now: float) -> None:
        if now >= self.handler.deadline:
            self._does(self.handler.tick(now))
        self._goes_behind(now)
        self._write_late(now)

    def _goes_behind(self, now: float) -> None:
        for group in self._behind.stops(now):
            self._put(self._routes, key_of(group), "")
        for group, node in list(self._behind.free(now)):
            self._route(group, node)

    @property
    def deadline(self) -> float:
        late = self._writes_at if self._late else math.inf
        return min(self.handler.deadline, self._behind.deadline, late)

    # --- programs -----------------------------------------------------------------------------

    def _watch(self) -> None:
        watch = self._thread.sleeper.watch
        self._ticket = watch(self._asked._queue, A_MESSAGE, ANY, self._rung)

    def _rung(self) -> None:
        self._ticket = None
        try:
            for _ in range(ASKED_TOGETHER):
                message = self._asked.get(timeout=0)
                group = Group(message.key or "", bytes(message.body).decode(errors="replace"))
                message.ack()
                if _is_group(group):
                    self._wants(group)
        except Empty:
            pass
        self._watch()
        self._changed()

    def _wants(self, group: Group) -> None:
        if is_shared(group.queue, self._setup.cluster.addresses):
            self._does(self.handler.wants(group, time.monotonic()))
        else:
            self._write(self._routes, key_of(group), group.queue, self._own_ttl)

    # --- people -------------------------------------------------------------------------------

    def counted(self) -> dict[str, Any]:
        """Of the routes that `show` has, how many; and of how many the node is not reached."""
        handler, counters, nodes = self.handler, self.handler.counters, self.handler.by_node
        reached = {self._node, *self._ends}
        return {
            "state": handler.state,
            "groups": nodes.total(),
            "unreached": sum(many for node, many in nodes.items() if node not in reached),
            "waiting": handler.waiting,
            "proposals": counters.proposals,
            "rejections": counters.rejections,
            "timeouts": counters.timeouts,
        }

    def show(self, names: Mapping[Node, str]) -> dict[str, Any]:
        """All routes, if it decides; else those by which messages go that are published here.

        `names`: of the brokers of other nodes.
        """
        handler, now = self.handler, time.monotonic()
        decides = handler.decider == self._node and handler.arbiter is not None
        rows: list[tuple[Group, Node, float | None]]
        if decides and handler.arbiter is not None:
            rows = [(group, node, round(now - used, 3))
                    for group, node, used in handler.arbiter.routes]  # fmt: skip
        else:
            rows = [(group, node, None) for group, node in handler.routes.items()]
        own = self._setup.ours.name
        counters = handler.counters
        return {
            "handler": self._setup.grouping.name if self._setup.grouping else "",
            "state": handler.state,
            "decider": (handler.decider or b"").hex(),
            "proposals": counters.proposals,
            "rejections": counters.rejections,
            "timeouts": counters.timeouts,
            "groups": sorted(
                ({"group": group.name, "queue": group.queue, "node": node.hex(),
                  "name": own if node == self._node else names.get(node, ""), "unused": unused}
                 for group, node, unused in rows),
                key=lambda each: (str(each["queue"]), str(each["group"])),
            ),
        }  # fmt: skip

    # --- what the handler says ----------------------------------------------------------------

    def _does(self, actions: Iterable[Action | Line]) -> None:
        for action in list(actions):
            match action:
                case Tell():
                    if (end := self._ends.get(action.to)) is not None:
                        end.say(Talk(encode(action.what)))
                case TellAll():
                    for end in self._ends.values():
                        end.say(Talk(encode(action.what)))
                case Keep():
                    self._keep(action)
                case Drop():
                    self._put(self._kept, key_of(action.group), "")
                case Routed():
                    self._route(action.group, action.node)
                case Unrouted():
                    former = self._former(action.group)
                    self._behind.ends(action.group, former, time.monotonic())
                    self._waiting.pop(action.group, None)
                    self._put(self._routes, key_of(action.group), "")
                case Line():
                    self._log(action.level, action.state, action.detail, action.node)

    def _keep(self, route: Keep) -> None:
        key = key_of(route.group)
        position = self._write(self._kept, key, route.node.hex())
        if position is None and route.is_in_use:
            self._later(self._kept, key, partial(self._keep, route))
        elif position is None:
            self.handler.not_kept(route.number, route.group)
        elif self._confirms is not None:
            self._confirms.wait(position, partial(self._is_kept, route))

    def _is_kept(self, route: Keep, level: int) -> None:
        if level >= 0:
            self._does(self.handler.kept(route.number, route.group, time.monotonic()))
            self._changed()
        else:
            self.handler.not_kept(route.number, route.group)

    def _route(self, group: Group, node: Node) -> None:
        """Programs publish by it, once the queue that it leads to is there."""
        if self._behind.goes(group, self._former(group), node, time.monotonic()):
            self._outdates(group)
            return
        if node != self._node and node not in self._made:
            self._waiting[group] = node
            self._outdates(group)
            return
        self._waiting.pop(group, None)
        way = group.queue if node == self._node else towards(self._setup.cluster.name, node)
        self._put(self._routes, key_of(group), way)

    def _outdates(self, group: Group) -> None:
        """A route that found no room, and is another one by now: until that is written there is
        none."""
        if (self._routes.name, key_of(group)) in self._late:
            self._put(self._routes, key_of(group), "")

    def _former(self, group: Group) -> Node:
        """To which node it goes; empty: it has no route."""
        said = self._routes.value(key_of(group))
        if said is None or not said.body:
            return b""
        return self._node_of(bytes(said.body).decode(errors="replace"))

    def _way_is_empty(self, node: Node) -> bool:
        """All that was sent is there, confirmed."""
        with suppress(Error):  # it is not there
            return (
                not self._broker.queue(towards(self._setup.cluster.name, node)).statistics().depth
            )
        return True

    def _put(self, queue: Ring, key: str, value: str) -> None:
        """Now, or as soon as that can be written."""
        if self._write(queue, key, value) is None:
            self._later(queue, key, partial(self._put, queue, key, value))

    def _later(self, queue: Ring, key: str, write: Callable[[], None]) -> None:
        self._late[queue.name, key] = write
        self._writes_at = time.monotonic() + AGAIN_SECONDS

    def _write_late(self, now: float) -> None:
        """In their order, until one finds no room again."""
        while self._late and now >= self._writes_at:
            which = next(iter(self._late))
            self._late.pop(which)()

    def _write(self, queue: Ring, key: str, value: str, ttl: float | None = None) -> int | None:
        """Its position; None: there are too many."""
        ttl = ttl if value else GONE_SECONDS
        try:
            position = queue.publish(value.encode(), key=key, ttl=ttl, timeout=0, confirm="shm")
        except QueueFull:
            if not self._is_full:
                self._is_full = True
                self._log("error", "too many groups", f"{queue.name} has no room for more routes")
            return None
        except Error as error:  # the vhost ends, or its arena is full
            if not self._is_full:
                self._is_full = True
                self._log("warning", "no route", str(error))
            return None
        self._is_full = False
        self._late.pop((queue.name, key), None)  # that was older
        return position

    def _say(self, key: str, seconds: float) -> None:
        self._put(self._routes, key, str(max(1, round(seconds * 1000))))

    def _node_of(self, way: str) -> Node:
        begin = f"{TOWARDS}{self._setup.cluster.name}."
        return (way.startswith(begin) and _node(way.removeprefix(begin))) or self._node

    def _log(self, level: str, state: str, detail: str, node: Node = b"") -> None:
        line = {"event": "grouping", "level": level, "state": state, "detail": detail}
        self._tell(line | ({"node": node.hex()} if node else {}))


def _values(queue: Ring) -> list[tuple[Group, str]]:
    """The newest of each group; none of those that have no route.  Programs may publish to it."""
    found = []
    for key, value in newest(queue).items():
        name, _, group = key.partition(SEPARATOR)
        if _is_group(Group(name, group)):
            found.append((Group(name, group), value.decode(errors="replace")))
    return found


def _is_group(group: Group) -> bool:
    name, queue = group.name.encode(), group.queue.encode()
    return 1 <= len(name) <= GROUP_BYTES_MAX and 1 <= len(queue) <= 3 * NAME_BYTES_MAX


def _node(text: str) -> Node:
    """Empty: it is none."""
    with suppress(ValueError):
        node = bytes.fromhex(text)
        return node if len(node) == ID_BYTES else b""
    return b""
