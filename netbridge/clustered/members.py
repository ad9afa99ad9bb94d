"""A member of a cluster: who is linked and what they say, as its machine wants it.  The links that
it makes are in `dials`, its vote in `voting`.

It connects to all lives that it knows, also while it is passive; while it is live, it listens and
votes.  All but what waits, for a disk, an address or another thread, is of the network thread.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.refusal import told
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.cluster.arrivals import Arrivals
from shmbroker.netbridge.cluster.codec import decode, encode
from shmbroker.netbridge.cluster.machine import Action, KeepLeft, KeepLives, Membership
from shmbroker.netbridge.cluster.programs import Other, others, reached_at
from shmbroker.netbridge.cluster.said import Answers, Ask, Grouped, Leaving, OfBackups, Say, Told
from shmbroker.netbridge.clustered import options
from shmbroker.netbridge.clustered.accepted import Accepted
from shmbroker.netbridge.clustered.asked_lives import AskedLives
from shmbroker.netbridge.clustered.colocating import Colocating
from shmbroker.netbridge.clustered.dials import Dials
from shmbroker.netbridge.clustered.kept_lives import KeptLives
from shmbroker.netbridge.clustered.left import LeftNodes
from shmbroker.netbridge.clustered.listening import ROLES, Listening, Place
from shmbroker.netbridge.clustered.looking import LOOK_SECONDS, Looked, Looking
from shmbroker.netbridge.clustered.messages import Messages
from shmbroker.netbridge.clustered.setup import Setup, read_left, reloaded
from shmbroker.netbridge.clustered.shown import FILE, GROUPS_FILE, QUEUES_FILE, queues, whole
from shmbroker.netbridge.clustered.successor import Successor
from shmbroker.netbridge.clustered.towards import undeliverable
from shmbroker.netbridge.clustered.voting import Voting
from shmbroker.netbridge.discovered.discoverer import Discoverer
from shmbroker.netbridge.discovery.entries import Entry
from shmbroker.netbridge.discovery.option import Discovery
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.election.threshold import Quorum
from shmbroker.netbridge.election.voters import Hears
from shmbroker.netbridge.wire.frame import Frame, Talk, Vote
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import Role
from shmbroker.netbridge.witness.witness import Ledgers, Witness

Tell = Callable[[Mapping[str, Any]], None]
Shows = Callable[[str, Mapping[str, Any]], None]
"""The name of a file in run/, and what it shows."""
RETRY_SECONDS: Final = 0.2
"""Until an address that somebody else has is tried again."""
REFUSED_RETRY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Standing:
    """What this broker is now."""

    node: Node
    epoch: int
    is_live: bool


class Members(Closable):
    def __init__(
        self,
        thread: NetworkThread,
        setup: Setup,
        tell: Tell,
        shows: Shows,
        keeps: Callable[[Quorum], None] = lambda quorum: None,
        others_are: Callable[[tuple[Other, ...]], None] = lambda others: None,
        holds: Callable[[bool], None] = lambda is_held: None,
    ) -> None:
        """`shows`: is given what people see, in the network thread; `keeps`: the number of lives,
        in the worker;
        `others_are`: the other nodes, as programs are told of them; `holds`: programs that come
        wait, or do so no more.  Close it before the thread."""
        ours = setup.ours
        self.machine = Membership(
            options.terms(setup.cluster, ours.name, setup.group, setup.programs),
            ours.incarnation, setup.quorum, read_left(setup.left),
        )  # fmt: skip
        self.asked = AskedLives(self.machine)
        self.due = math.inf
        self._thread, self._setup, self._tell = thread, setup, tell
        self._shows, self._others_are = shows, others_are
        self._others: tuple[Other, ...] = ()
        # other processes of a node may have this name, and a link by an epoch would end with it
        self._ours = replace(ours, node=ours.incarnation, epoch=0)
        self._worker = Worker(thread.call)
        self._standing: Standing | None = None
        self._ends: dict[End, int] = {}
        self._end_of: dict[int, End] = {}
        self._links = 0
        self._accepted: set[End] = set()
        no_address = partial(self._log, "warning", "no address")
        self._dials = Dials(thread, self._worker, self._dial, no_address, self._look)
        self._arrivals = Arrivals()
        self._shown: dict[str, Any] = {}
        self._voting = Voting(
            thread, tell, partial(self._complain, "cannot vote"), self._votes_now,
            self._votes_no_more,
        )  # fmt: skip
        self._listening = Listening(self._listener, partial(self._complain, "cannot listen"))
        self._tries_at = self._looks_at = math.inf
        own = undeliverable(setup.cluster.name)
        self._looking = Looking(setup.vhost, own, setup.cluster.addresses)
        self._messages = Messages(thread, self._worker, setup, tell, self._look)
        not_kept = partial(self._complain, "not kept")
        self._kept_lives = KeptLives(self._worker, keeps, not_kept, self._look_at_queues)
        self._left = LeftNodes(setup.left, self._worker, self.machine, self._does, self._log)
        self.successor = Successor(
            setup, self._worker, lambda: self._messages.broker, holds, self._left.replaces,
            self._looking, self._looked,
        )
        self.colocating = Colocating(thread, self._worker, setup, self._log, shows)
        self._complaints: set[str] = set()
        self._is_closed = False
        self._discoverer: Discoverer | None = None
        thread.call(self._begin)
        self._discovers_by(setup.discovery)

    def _begin(self) -> None:
        self._thread.members.append(self)
        self._look()

    # --- from any thread ----------------------------------------------------------------------

    def becomes(self, standing: Standing, ledgers: Callable[[], Ledgers] | None = None) -> None:
        """`ledgers`: of a live, where its votes are kept; called in the worker."""
        self._thread.call(lambda: self._becomes(standing, ledgers))

    def heard_by(self, hears: Hears) -> None:
        """Who asks the other lives; called in the network thread from then on."""

        def step() -> None:
            self.asked.hears = hears
            self._look()

        self._thread.call(step)

    def reload(self, given: Given, programs: str) -> None:
        """Of one thread at a time.  Links go by the credentials that their thread has learnt.
        `programs`: where programs reach this broker."""
        former, self._setup = self._setup, reloaded(self._setup, given, programs)
        wanted = self._setup
        if (wanted.discovery, wanted.credential) != (former.discovery, former.credential):
            self._discovers_by(wanted.discovery)
        if wanted.programs != former.programs:
            self._thread.call(partial(self._is_reached_at, wanted))
        self._thread.call(partial(self.colocating.reload, wanted))
        self._worker.do(partial(self._goes_by, wanted), self._served)

    def _discovers_by(self, discovery: Discovery | None) -> None:
        if self._discoverer is not None:
            self._discoverer.close()
            self._discoverer = None
        if discovery is not None:
            keys = self._setup.credential.keys
            self._discoverer = Discoverer(discovery, keys, self._discovered, self._tell)

    def _discovered(self, entries: tuple[Entry, ...]) -> None:
        """Backups do not listen for the cluster."""
        uris = [each.uri for each in entries if each.is_live]
        self._thread.call(lambda: self._finds(uris))

    def doubts(self, is_in_doubt: bool) -> None:
        def step() -> None:
            if (witness := self._voting.witness) is not None:
                witness.doubts(is_in_doubt)

        self._thread.call(step)

    def forget(self, name: str) -> tuple[Node, str]:
        """A node, by its id, the beginning of it or its name: which one, and its name if it is
        known.  InvalidArgument: why not."""
        return self._thread.ask(lambda: self._forget(name))

    def keeps_forgotten(self, node: Node) -> None:
        """Returns when that is on the disk; an error says why it is not, and it is tried again."""
        done: Future[None] = Future()

        def kept(failed: Exception | None) -> None:
            failed = failed or self._kept_lives.failure
            done.set_result(None) if failed is None else done.set_exception(failed)

        self._worker.do(partial(self._messages.forgets, node), kept)
        self._thread.answered(done)

    def show(self) -> None:
        self._thread.ask(lambda: self._show(always=True))

    def show_queues(self) -> None:
        def step() -> None:
            told = queues(self._setup.cluster.name, self.machine, self._messages.given)
            self._shows(QUEUES_FILE, told)

        self._thread.ask(step)

    def show_groups(self) -> None:
        """Nothing, if there is no grouping handler."""
        found = self._thread.ask(lambda: self._messages.show_groups(self.machine))
        self._shows(GROUPS_FILE, found)

    # --- of a broker that leaves, in a thread of its own --------------------------------------

    @property
    def messages(self) -> Messages:
        return self._messages

    def reached(self) -> list[tuple[Node, str]]:
        """Lives that are up, and their addresses."""
        return self._thread.ask(lambda: [(each.node, each.uri) for each in self.machine.there])

    def name_of(self, node: Node) -> str:
        live = self.machine.lives.get(node)
        return node.hex() if live is None else live.name

    def asks(self, node: Node, word: Callable[[int], Leaving]) -> Answers:
        """Waits `call-timeout` at most for the answer of its live, or that the link was lost."""

        def ask() -> Future[Answers] | None:
            end = self._lives().get(node)
            return None if end is None else self.successor.ask(end, word)

        answer = self._thread.ask(ask)
        return self.successor.answered(answer)

    def takes_nothing(self) -> None:
        """From now on it takes the place of nobody."""
        self.successor.is_leaving = True

    def leaves(self, to: Node) -> None:
        """All know who is to have what it has: the last one of whom that was said."""
        self._thread.ask(lambda: self._does(self.machine.departs(to)))

    def looks(self, then: Callable[[], None]) -> None:
        """`then`: done in the network thread when it has seen what is here now."""
        done = Future[None]()

        def seen() -> None:
            then()
            done.set_result(None)

        self.successor.looks(seen)
        self._thread.answered(done)

    def has_left(self, to: Node) -> None:
        """All that was here is at that node; the others are told, and it is kept."""
        done: Future[None] = Future()
        self._thread.call(lambda: self._left.has_left(to, done))
        self._thread.answered(done)

    def listens_no_more(self) -> None:
        """What others send is confirmed before their links end."""
        done: Future[None] = Future()

        def ended(error: Exception | None) -> None:
            done.set_result(None) if error is None else done.set_exception(error)

        self._worker.do(self._listening.end, ended)
        self._thread.answered(done)

    def close(self) -> None:
        self._discovers_by(None)
        self.colocating.end()
        self._thread.ask(self._stop)
        self._dials.close()
        self._worker.do(self._serves_no_more, lambda _: None)
        self._worker.do(self._looking.close, lambda _: None)
        self._worker.close()

    def _stop(self) -> None:
        self._is_closed = True
        self.end()

    # --- of the thread ------------------------------------------------------------------------

    def end(self) -> None:
        if self in self._thread.members:
            self._thread.members.remove(self)

    def woken(self, now: float) -> None:
        if now >= self._tries_at:
            self._tries_at = math.inf
            self._worker.do(self._serve, self._served)
        if now >= self._looks_at:
            self._looks_at = math.inf
            self._worker.do(self._looking.look, self._looked)
        self.colocating.tick(now)
        self._kept_lives.tick(now)
        self._does(self.machine.tick(now))

    def _is_reached_at(self, setup: Setup) -> None:
        self.successor.reload(setup)
        self._does(reached_at(self.machine, setup.programs))

    def _finds(self, uris: list[str]) -> None:
        self.machine.finds(uris)
        self._look()

    def _becomes(self, standing: Standing, ledgers: Callable[[], Ledgers] | None) -> None:
        if standing == self._standing or self._is_closed:
            return
        former, self._standing = self._standing, standing
        was_live = former is not None and former.is_live
        if was_live and not standing.is_live:
            self._worker.do(self._serves_no_more, lambda _: None)
            self._worker.do(self._looking.close, lambda _: None)
            self._looks_at = math.inf
            self._messages.stops()
            self.successor.is_leaving = False
        elif standing.is_live and not was_live:
            self._looks_at = time.monotonic()
        self._does(self.machine.becomes(standing.node, standing.epoch, is_live=standing.is_live))
        self.colocating.becomes(is_live=standing.is_live)
        if standing.is_live and not was_live and ledgers is not None:
            self._messages.begins(standing.node)
            self._worker.do(partial(self._serves_now, ledgers), self._served)

    def _votes_now(self, witness: Witness) -> None:
        for end in self._accepted:
            witness.came(end)
        self._look()

    def _votes_no_more(self, error: Exception) -> None:
        if self._standing is not None and self._standing.is_live:
            why = told(error) if isinstance(error, OSError) else str(error)
            self._log("error", "votes no more", why)
        self._look()

    def _served(self, is_whole: bool | Exception) -> None:
        if isinstance(is_whole, Exception):
            raise is_whole
        if not is_whole and not self._is_closed:
            self._tries_at = time.monotonic() + RETRY_SECONDS
            self._look()

    def _looked(self, found: Looked | Exception | None) -> None:
        if isinstance(found, Exception):
            raise found
        if self._is_closed or self._standing is None or not self._standing.is_live:
            return
        self._looks_at = time.monotonic() + LOOK_SECONDS
        if found is not None:
            self._messages.sees(found)
        self._does(() if found is None else self.machine.shows(self._messages.told(found)))

    # --- of the worker ------------------------------------------------------------------------

    def _serves_now(self, ledgers: Callable[[], Ledgers]) -> bool:
        """As `_serve`, behind what ends the time as live before this one."""
        self._voting.wants(ledgers)
        self._listening.wants(self._setup.listens)
        return self._serve()

    def _serve(self) -> bool:
        """False: an address, or the ledgers, are somebody else's, who may be just ending."""
        is_voting = self._voting.begin()
        is_open = self._messages.open()  # before anybody comes: their messages go into our queues
        may_come = is_open or not self._setup.cluster.hops
        return may_come and self._listening.listen() and is_voting and is_open

    def _listener(self, place: Place) -> Listener:
        setup = self._setup
        return Listener(
            self._thread, *place, setup.credentials, self._ours, roles=ROLES, times=setup.times,
            clusters=Accepted(self), tell=self._tell,
        )  # fmt: skip

    def _goes_by(self, setup: Setup) -> bool:
        self._listening.goes_by(setup.credentials, setup.listens)
        return self._serve()

    def _complain(self, state: str, detail: str) -> None:
        """Once: it is tried again and again."""
        if state not in self._complaints:
            self._complaints.add(state)
            self._log("error", state, detail)

    def _serves_no_more(self) -> None:
        self._voting.end()
        self._listening.end()
        self._messages.close()
        self._voting.close()

    # --- of the ends --------------------------------------------------------------------------

    def came(self, end: End) -> None:
        self._links += 1
        self._ends[end], self._end_of[self._links] = self._links, end
        self._does(self.machine.up(self._links, time.monotonic()))

    def accepted(self, end: End) -> None:
        self._accepted.add(end)
        if (witness := self._voting.witness) is not None:
            witness.came(end)
        self.came(end)

    def heard(self, end: End, frame: Frame) -> None:
        link = self._ends.get(end)
        if link is None:
            return
        try:
            if isinstance(frame, Talk):
                what = decode(frame.body)
                if isinstance(what, Leaving):
                    self.successor.heard(end, self.machine.present[link], what)
                elif isinstance(what, Grouped):
                    self._messages.of_groups(self.machine.present[link], what)
                    self._look()
                elif isinstance(what, OfBackups):
                    self.colocating.heard(end, self.machine.present[link], what)
                    self._look()
                else:
                    actions = self.machine.heard(link, what, time.monotonic())
                    is_of_queues = isinstance(what, (Ask, Told))
                    self._does(actions, is_of_queues=is_of_queues)
            elif isinstance(frame, Vote) and end not in self._accepted:
                self.asked.heard(end, frame)
            elif (witness := self._voting.witness) is not None:
                witness.heard(end, frame)
        except Malformed as error:
            end.does(end.machine.malformed(error, time.monotonic()))

    def gone(self, end: End) -> None:
        link = self._ends.pop(end, None)
        if link is None:
            return
        del self._end_of[link]
        self.successor.gone(end, self.machine.parted_by(link))
        if end in self._accepted:
            self._accepted.discard(end)
            if (witness := self._voting.witness) is not None:
                witness.gone(end)
        self._does(self.machine.down(link, time.monotonic()))

    def _tell_others(self) -> None:
        if (found := others(self.machine)) != self._others:
            self._others = found
            self._others_are(found)

    # --- what the machine says ----------------------------------------------------------------

    def _does(self, actions: Iterable[Action], *, is_of_queues: bool = False) -> None:
        """`is_of_queues`: nothing follows of who is in the cluster."""
        for action in list(actions):
            if isinstance(action, Say):
                if (end := self._end_of.get(action.link)) is not None:
                    end.say(Talk(encode(action.what)))
            elif isinstance(action, KeepLives):
                self._kept_lives.keep(action.quorum)
            elif isinstance(action, KeepLeft):
                self._left.keep()
            else:
                self._log(action.level, action.state, action.detail, action.node)
        if is_of_queues:
            self._look_at_queues()
        else:
            self._look()
            self._tell_others()

    def _log(self, level: str, state: str, detail: str, node: Node = b"") -> None:
        line = {"event": "cluster", "level": level, "cluster": self._setup.cluster.name,
                "state": state, "detail": detail}  # fmt: skip
        self._tell(line | ({"node": node.hex()} if node else {}))

    def _look(self) -> None:
        """At all that follows from what it knows."""
        if self._is_closed:
            return
        if (groups := self._messages.groups) is not None:
            groups.reaches(self._lives())
        self.colocating.reaches(self._lives(), self.machine)
        self._look_at_queues()
        self._dials.wants(self.machine.wanted)
        for live in self._arrivals.see(self.machine.there):
            self._dials.start(live.uri)
        self.asked.looks(self._ends, self._accepted)
        if (witness := self._voting.witness) is not None:
            gone = self.machine.orphans
            witness.forgets({node: self.machine.forgotten[node] for node in gone})
        self._show()

    def _look_at_queues(self) -> None:
        if self._is_closed:
            return
        self._messages.looks(self.machine)
        self.due = min(
            self.machine.deadline, self._tries_at, self._looks_at, self._messages.deadline,
            self.colocating.deadline, self._kept_lives.due,
        )  # fmt: skip

    def _dial(self, uri: str) -> Dialled:
        """In the worker."""
        setup = self._setup
        return Dialled(
            self, self._thread, f"{setup.cluster.link_name}: {uri}"[:255],
            options.plan(setup.cluster, uri), setup.credential, self._ours, (), times=setup.times,
            role=Role.CLUSTER, refused_retry=REFUSED_RETRY_SECONDS, tell=self._tell,
            pair=setup.pair,
        )  # fmt: skip

    def _lives(self) -> dict[Node, End]:
        """A link to each of the other lives."""
        there: dict[Node, End] = {}
        for end, link in self._ends.items():
            if (live := self.machine.live_at(link)) is not None:
                there.setdefault(live.node, end)
        return there

    # --- people -------------------------------------------------------------------------------

    def _show(self, *, always: bool = False) -> None:
        votes = self._voting.witness is not None
        shown = whole(self._setup.cluster.name, self.machine, votes=votes)
        if shown != self._shown:
            self._shown = shown
            self._shows(FILE, shown | self._discovery)
        if always:
            ways = self._messages.show()
            nodes = [row | ways.get(bytes.fromhex(row["node"]), {}) for row in shown["nodes"]]
            self._shows(FILE, shown | {"nodes": nodes} | self._messages.grouping | self._discovery)

    @property
    def _discovery(self) -> dict[str, Any]:
        found = self._discoverer
        return {} if found is None else {"discovery": found.show()}

    def _forget(self, name: str) -> tuple[Node, str]:
        others = self._messages.led_to | {each.to for each in self.machine.left.values()}
        node = self.machine.named(name, others)
        if isinstance(node, str):
            raise InvalidArgument(node)
        if why := self.machine.forget(node, others):
            raise InvalidArgument(why)
        live = self.machine.lives.get(node)
        self._does(self.machine.forgets(node))
        is_id = node.hex().startswith(name.lower())
        return node, live.name if live is not None else "" if is_id else name
