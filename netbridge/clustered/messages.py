"""What a live of a cluster does with messages for other nodes: the ways there, and who goes.

While it is live it has a connection to its vhost, which messages of others come through as well.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Set
from concurrent.futures import Future
from dataclasses import replace
from itertools import chain
from typing import Any

from shmbroker.ipc.base.errors import Error, TooMany
from shmbroker.ipc.connection.broker import Broker, connect
from shmbroker.ipc.request.return_address import say_node
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.cluster import option
from shmbroker.netbridge.cluster.advert import Advert, Binding, Queue, key_of
from shmbroker.netbridge.cluster.adverts import Copy
from shmbroker.netbridge.cluster.balancing import TURNS, destinations, members, sets
from shmbroker.netbridge.cluster.machine import Membership
from shmbroker.netbridge.cluster.redistribution import Here, Redistribution
from shmbroker.netbridge.cluster.said import Announcement, Grouped
from shmbroker.netbridge.cluster.succession import Succession
from shmbroker.netbridge.cluster.topics import Topics
from shmbroker.netbridge.clustered.balancing import Balancing
from shmbroker.netbridge.clustered.former import forget, forget_routes
from shmbroker.netbridge.clustered.giving import Giving
from shmbroker.netbridge.clustered.groups import Groups
from shmbroker.netbridge.clustered.looking import Looked
from shmbroker.netbridge.clustered.setup import Setup
from shmbroker.netbridge.clustered.stand_ins import Holders, StandIns, holders
from shmbroker.netbridge.clustered.topics import TopicBindings
from shmbroker.netbridge.clustered.towards import Ways
from shmbroker.netbridge.election.question import Node

AGAIN_SECONDS = 1.0
REDISTRIBUTES = frozenset({option.ON_DEMAND, option.OFF_WITH_REDISTRIBUTION})


class Messages:
    def __init__(
        self, thread: NetworkThread, worker: Worker, setup: Setup,
        tell: Callable[[Mapping[str, Any]], None], changed: Callable[[], None],
    ) -> None:  # fmt: skip
        """`changed`: to be called in the network thread; `looks` is what it comes to."""
        self._thread, self._worker, self._setup = thread, worker, setup
        self._tell, self._changed = tell, changed
        self._carries = setup.cluster.hops > 0
        self._node: Node = b""
        """Of which this broker is the live; empty: it is not."""
        self._here = Looked([], [], {})
        self._looks = 0
        self._known: object = None
        """What was decided by last."""
        self._redistribution = Redistribution()
        self._broker: Broker | None = None
        self._ways: Ways | None = None
        self._giving: Giving | None = None
        self._balancing: Balancing | None = None
        self._stand_ins: StandIns | None = None
        self._topics: TopicBindings | None = None
        self._groups: Groups | None = None
        self._decided: deque[Callable[[], None]] = deque(maxlen=1)
        """What the worker is to carry out; what it has not begun is replaced by the next."""
        self._copied: dict[Node, tuple[tuple[bytes, int], Copy]] = {}
        """What the worker was given of each node, and how far it was read then."""
        self._is_leaving = False
        self._stays: list[Advert] = []
        """What is told of queues of groups, and of bindings, while this node leaves."""
        self._succession = Succession()
        self._redistributes_at = self._carries_at = math.inf
        self._has_complained = False
        self._has_forgotten = False
        """What this broker carried before `max-hops` was 0."""

    # --- of the network thread ----------------------------------------------------------------

    def begins(self, node: Node) -> None:
        self._node = node

    def stops(self) -> None:
        self._node = b""
        self._is_leaving, self._stays = False, []
        self._here, self._looks, self._copied = Looked([], [], {}), 0, {}
        self._succession = Succession()  # the next time it is new again
        self._redistributes_at = self._carries_at = math.inf

    @property
    def deadline(self) -> float:
        groups = self.groups
        of_groups = math.inf if groups is None else groups.deadline
        own = self._redistributes_at, self._carries_at
        return min(*own, self._succession.deadline, of_groups)

    def forgets(self, node: Node) -> None:
        """In the worker: it is kept; OSError."""
        if self._ways is not None:
            self._ways.forgets(node)

    @property
    def groups(self) -> Groups | None:
        """None: there is no grouping handler, or it is not at work."""
        return None if self._ways is None or not self._node else self._groups

    def of_groups(self, at: Announcement | None, what: Grouped) -> None:
        """Said by the live at the other end of a link."""
        if at is not None and (groups := self.groups) is not None:
            groups.heard(at.node, what)

    def sees(self, here: Looked) -> None:
        """All that the vhost has."""
        self._here = here
        self._looks += 1

    def stays(self, go: Set[str]) -> None:
        """These queues go with this node, when it has left.  A group stays here until then: who has
        its messages is known by then.  So does a binding: until then its heir has none."""
        grouped = {each.name for each in self._here.here if each.has_groups}
        for each in self._here.adverts:
            if isinstance(each, Binding) and each.destination in go:
                self._stays.append(each)
            elif isinstance(each, Queue) and each.name in grouped and self._groups is not None:
                self._stays.append(replace(each, is_consumed=False))

    def told(self, found: Looked) -> list[Advert]:
        """What the others are told; of a node that leaves, also what stays until it has left."""
        stays = set(map(key_of, self._stays))
        return [*(each for each in found.adverts if key_of(each) not in stays), *self._stays]

    def looks(self, machine: Membership) -> None:
        """At all that follows from what is known."""
        if self._ways is None or not self._node:
            return
        self._ways.looks(machine)
        if self._groups is not None:
            self._groups.tick(time.monotonic())
        up, made, now = self._ways.up, self._ways.made, time.monotonic()
        copies = {
            node: machine.adverts.of(node)
            for node in machine.lives
            if node in made and machine.adverts.is_read(node)
        }
        leavers = self._succession.looks(machine, copies, self._here.adverts, now)
        heirs = {node: each.heir for node, each in leavers.items()}
        waits, is_new = self._succession.waits, self._succession.is_new
        routes_anew = self._ways.routes_anew
        talks_to = None if self._groups is None else self._groups.reached
        known = (self._looks, machine.adverts.known, up, made, talks_to, len(machine.forgotten),
                 heirs, waits, is_new, routes_anew, self._ways.orphans)  # fmt: skip
        if known == self._known and now < min(self._redistributes_at, self._carries_at):
            return  # many frames say nothing that matters here
        self._known, self._carries_at = known, math.inf
        is_known = routes_anew and self._looks and not is_new
        self._ways.destinations = self._destinations(copies, up) if is_known else None
        if self._groups is not None and self._looks and not self._is_leaving:
            self._groups.looks(machine, self._here, copies, self._ways.made)
        if self._is_leaving:
            self._redistributes_at = math.inf  # else it would be due again and again
            return
        if not waits:
            gone = {node: leavers[node].copy for node in leavers.keys() - copies.keys()}
            there = self._as_now(machine, copies) | gone
            told = settled(machine, copies) | self._ways.orphans
            heard = told | machine.lives.keys() if is_new else None
            self._carry(there, heirs, up, told, heard)
        if self._giving is not None and self._setup.cluster.balancing in REDISTRIBUTES:
            reached = {node: copy.queues.values() for node, copy in copies.items() if node in up}
            gives = self._redistribution.looks(self._redistributed(), reached, now)
            self._giving.gives(tuple(gives))
            self._redistributes_at = self._redistribution.deadline

    def _destinations(
        self, copies: Mapping[Node, Copy], up: frozenset[Node]
    ) -> dict[int, tuple[Node, ...]]:
        """By the target of a queue."""
        there = {node: copy.queues for node, copy in copies.items()}
        found = destinations(self._setup.cluster.balancing, self._here.here, there, up)
        return {target_of(name): nodes for name, nodes in found.items()}

    def _redistributed(self) -> list[Here]:
        """What has groups stays where they go, if that is decided for the cluster."""
        here = self._here.here
        return here if self._groups is None else [each for each in here if not each.has_groups]

    def _as_now(self, machine: Membership, copies: Mapping[Node, Copy]) -> dict[Node, Copy]:
        """Copies that stay as they are.  Of a node that has told nothing new it is the former one:
        all nodes together may have very many queues, and one of them changes at a time."""
        read = {node: (life, version) for node, life, version in machine.adverts.known}
        former, self._copied = self._copied, {}
        for node, copy in copies.items():
            known = former.get(node)
            is_same = known is not None and known[0] == read[node]
            self._copied[node] = known if known and is_same else (read[node], copy.copied())
        return {node: copy for node, (_, copy) in self._copied.items()}

    def _carry(
        self, there: Mapping[Node, Copy], heirs: Mapping[Node, Node], up: frozenset[Node],
        settled: frozenset[Node], heard: Set[Node] | None,
    ) -> None:  # fmt: skip
        """There may be many queues and bindings: so the worker compares them.

        `heard`: nodes of which it is known whether they leave; None: that counts no more."""
        bound, stand_ins, balancing = self._topics, self._stand_ins, self._balancing
        here, mode = self._here, self._setup.cluster.balancing
        if bound is None or stand_ins is None or balancing is None or not self._looks:
            return

        def carry() -> None:
            queues = {node: copy.queues for node, copy in there.items()}
            bindings = [each for each in here.adverts if isinstance(each, Binding)]
            by_name = heard is not None and not bound.leads_to() <= heard
            in_turn = bound.kept_in_turn(chain.from_iterable(queues.values()), settled)
            topics = Topics(
                mode, here.here, bindings, there, heirs, by_name=by_name, in_turn=in_turn
            )
            carried = topics.carried(here.exchanges)
            elsewhere = {each.queue for each in carried if each.to == TURNS}
            turns = {name: members(mode, name, queues, up) for name in elsewhere}
            # who has turns is there before what leads to it
            balancing.sets(sets(mode, here.here, queues, up) | stand_ins.sets(turns))
            bound.carries(carried, settled)
            stand_ins.passes_on(turns, lambda: _holders(here.here, queues))

        self._decided.append(carry)
        self._worker.do(self._carry_out, self._carried)

    def _carried(self, failed: Exception | None) -> None:
        """By an error that passes, as of a table that is full: it is tried again."""
        if failed is None:
            self._has_complained = False
        if self._ways is None or not self._node:
            return
        if failed is not None:
            self._complain(failed)
        if failed is not None or self._lacks:
            self._carries_at = time.monotonic() + AGAIN_SECONDS
            self._changed()

    @property
    def _lacks(self) -> bool:
        """A set of some queue, or what stands in for it; that was told."""
        balancing, stand_ins = self._balancing, self._stand_ins
        return bool(
            (balancing is not None and balancing.lacking)
            or (stand_ins is not None and stand_ins.lacking)
        )

    def _complain(self, failed: Exception) -> None:
        """Once: it is tried again and again."""
        if not self._has_complained:
            self._has_complained = True
            self._tell({"event": "cluster", "level": "error", "state": "not carried",
                        "cluster": self._setup.cluster.name,
                        "detail": f"{type(failed).__name__}: {failed}"})  # fmt: skip

    # --- of the worker ------------------------------------------------------------------------

    def _carry_out(self) -> None:
        """What was decided last: all of it, so what was decided before is of no use any more."""
        if self._decided:
            self._decided.popleft()()

    def open(self) -> bool:
        """False: the vhost is not there yet, or refuses something that is needed."""
        node = self._node
        if self._broker is not None or self._has_forgotten or not node:
            return True
        setup = self._setup
        try:
            broker = connect(f"shm://{setup.vhost}", name=f"cluster {setup.cluster.name}"[:56])
        except TooMany as error:
            self._complain(error)
            return False
        except Error:
            return False
        try:
            if self._carries:
                self._broker = broker
                self._prepare(broker, node)
            else:
                with broker:
                    forget(broker)
                self._has_forgotten = True
        except (Error, OSError) as error:
            self.close()
            self._complain(error)
            return False
        self._has_complained = False
        return True

    def _prepare(self, broker: Broker, node: Node) -> None:
        setup = self._setup
        say_node(broker, setup.cluster.name, node)
        self._thread.serve(broker, node)
        self._balancing = Balancing(broker, setup.cluster.name, self._tell)
        self._topics = TopicBindings(broker, setup.cluster.name, self._tell)
        self._giving = Giving(broker, setup.cluster.name, self._tell)
        self._stand_ins = StandIns(self._thread, broker, self._balancing, self._giving, self._tell)
        if setup.grouping is None:
            forget_routes(broker)
            groups = None
        else:
            groups = Groups(self._thread, broker, setup, node, self._tell, self._changed)
        ways = Ways(self._thread, self._worker, setup, broker, node, self._tell, self._changed)

        def begin() -> None:
            self._ways, self._groups = ways, groups
            if groups is not None:
                groups.begin()
            self._changed()

        self._thread.call(begin)

    def close(self) -> None:
        """After nobody can come any more."""
        broker, self._broker = self._broker, None
        self._has_forgotten = False
        if broker is None:
            return
        if self._giving is not None:
            self._giving.close()
            self._giving = None
        if self._balancing is not None:
            self._balancing.end()
            self._balancing = None
        if self._stand_ins is not None:
            self._stand_ins.close()
            self._stand_ins = None
        self._topics = None
        ways = self._thread.ask(self._let_go)
        if ways is not None:
            ways.close()
        self._thread.serve(None)
        broker.close()

    def _let_go(self) -> Ways | None:
        ways, self._ways = self._ways, None
        if self._groups is not None:
            self._groups.end()
            self._groups = None
        self._known = None
        return ways

    # --- of a broker that leaves, in a thread of its own --------------------------------------

    @property
    def broker(self) -> Broker | None:
        return self._broker

    def leaves(self) -> None:
        """Nothing is given to several nodes any more, but what is in stand-ins: all goes to one."""
        self._thread.ask(self._decides_no_more)
        if self._ways is not None:
            self._ways.makes_none = True
        if self._giving is not None:
            self._giving.gives(())
        if self._balancing is not None:  # behind what was decided before
            done: Future[None] = Future()
            self._worker.do(self._balancing.end, lambda _: done.set_result(None))
            self._thread.answered(done)

    def _decides_no_more(self) -> None:
        self._is_leaving = True

    @property
    def standing(self) -> int:
        """Messages for queues that are not here, which go to those that have them."""
        return 0 if self._giving is None else self._giving.standing

    def is_up(self, node: Node) -> bool:
        ways = self._ways
        return ways is not None and node in self._thread.ask(lambda: ways.up)

    def goes_home(self, node: Node) -> bool:
        """What is on its way to that one stays here, or is routed anew."""
        ways = self._ways
        return ways is not None and self._thread.ask(lambda: ways.goes_home(node))

    # --- people -------------------------------------------------------------------------------

    @property
    def led_to(self) -> frozenset[Node]:
        """There are queues towards these."""
        return frozenset() if self._ways is None else self._ways.led_to

    def show(self) -> dict[Node, dict[str, Any]]:
        return {} if self._ways is None else self._ways.show()

    def show_groups(self, machine: Membership) -> dict[str, Any]:
        names = {node: each.name for node, each in machine.lives.items()}
        return {} if self.groups is None else self.groups.show(names)

    @property
    def grouping(self) -> dict[str, Any]:
        """In numbers; nothing without a handler."""
        return {} if self.groups is None else {"grouping": self.groups.counted()}

    @property
    def given(self) -> Mapping[str, int]:
        """Of each queue, how many messages went to other nodes."""
        return {} if self._giving is None else self._giving.given


def settled(machine: Membership, copies: Mapping[Node, Copy]) -> frozenset[Node]:
    """What these want is known.  One that has left wants nothing, once its heir was heard."""
    own = machine.me and machine.me.node
    heard = {None, own, *copies}
    return frozenset(copies) | {
        node
        for node in machine.forgotten.keys() - machine.lives.keys()
        if machine.heir(node) in heard and not machine.waits_for_heir(node)
    }


def _holders(here: Iterable[Here], there: Mapping[Node, Mapping[str, Queue]]) -> Holders:
    """Of balanced queues."""
    ours = (each.name for each in here if each.may_be_balanced)
    theirs = {
        node: [each.name for each in queues.values() if each.may_be_balanced]
        for node, queues in there.items()
    }
    return holders(ours, theirs)
