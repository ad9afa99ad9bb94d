"""The end that connects: a plan says to whom and when, and each connection is a new machine."""

from __future__ import annotations

import math
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import zmq

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, InvalidArgument
from shmbroker.netbridge.carrier.end import End, Meter
from shmbroker.netbridge.carrier.greeting import greets
from shmbroker.netbridge.carrier.listed import Listed
from shmbroker.netbridge.carrier.monitor import LOST, Event, Monitor
from shmbroker.netbridge.carrier.socket import LAST, Received, dealer, send, whole
from shmbroker.netbridge.carrier.source import Shipped, Source
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.ending import Ending, Reason, State, ending
from shmbroker.netbridge.link.handshake import Near
from shmbroker.netbridge.link.machine import Machine
from shmbroker.netbridge.link.option import of_member
from shmbroker.netbridge.link.peer import Identity, Wish
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.plan import action as plans
from shmbroker.netbridge.plan.plan import Plan
from shmbroker.netbridge.plan.plans import REFUSED_RETRY, Draft, drafts
from shmbroker.netbridge.plan.terms import Owner
from shmbroker.netbridge.plan.text import heard, parse
from shmbroker.netbridge.plan.uri import PIN, Member, Single
from shmbroker.netbridge.security.credential import Credential, Credentials, KeyPair
from shmbroker.netbridge.security.curve import new_pair, public_of
from shmbroker.netbridge.security.proof import CHALLENGE_BYTES, Channel, NearEnd
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.frame import Frame
from shmbroker.netbridge.wire.words import Refusal, Role

Tell = Callable[[Mapping[str, Any]], None]
"""For the log: a line, as it is in JSON."""
FRAMES_MAX = 64
"""That are taken of a connection in a turn of the thread."""
WAITS_SECONDS: Final = 1.0
"""So long a member that is passive is not asked again over another connection: it says when it is
so no more, and has better things to do while it takes over."""
SUSPECT: Final = 3
"""After so many connections in a row that a member ends while CURVE shakes hands it is said to be
the password: a far end that dies in that millisecond looks the same."""
GREETING_SECONDS: Final = 1.0
"""So long it is waited for a word of who listens there."""


def planned(draft: Draft) -> Plan:
    return draft.plan(random.Random())


def _draft(uri: str | Draft, owner: Owner, refused_retry: float) -> Draft:
    found = (uri,) if isinstance(uri, Draft) else drafts(parse(uri), owner, refused_retry)
    if len(found) != 1:
        raise InvalidArgument(f"{uri!r} stands for {len(found)} links, and this is one")
    return found[0]


class Link(Closable):
    """Ships queues of this vhost to queues of another one, as long as it is open."""

    _active: _Connection | None = None
    """To a member that was passive, and has said just now that it serves."""

    def __init__(
        self,
        thread: NetworkThread,
        name: str,
        uri: str | Draft,
        credential: Credential,
        ours: Identity,
        ships: Iterable[Shipped],
        *,
        times: LinkTimes | None = None,
        role: Role = Role.PEERING,
        refused_retry: float = REFUSED_RETRY,
        tell: Tell = lambda _: None,
        owner: Owner = "link",
        pair: KeyPair | None = None,
        meter: Meter | None = None,
        shows: Callable[[Link], None] = lambda _: None,
    ) -> None:
        """`pair`: by which the far end knows this broker; without it each connection has a new one.
        `shows`: called at each change of what people see of it.
        """
        self.name = name
        self.credential, self.ours, self.role = credential, ours, role
        self.ships = tuple(ships)
        self.times = times or LinkTimes()
        self.tell = tell
        self.pair, self.meter = pair, meter
        self.over: Callable[[], None] = lambda: None
        """Called once it has ended."""
        self.why = ""
        """The reason of the last end."""
        self.epochs: dict[bytes, int] = {}
        """The highest that was seen of each node: nothing goes back to a lower one."""
        self.has_drained = False
        """It was stopped in good order, and nothing was on its way any more."""
        self.losses = 0
        self.since = time.time()
        """When it became what it is."""
        self._shown = ""
        self._shows = shows
        self.ended_at = threading.Event()
        self._thread = thread
        self._plan = planned(_draft(uri, owner, refused_retry))
        self._listed = Listed(
            thread.call, self.takes_list, lambda why: self.told("no list of members", why)
        )
        self._connection: _Connection | None = None
        self._passive: dict[Single, _Connection] = {}
        self._attempts = time.monotonic_ns()
        """It rises with each link of this process; the far end compares them within one."""
        self._key = 0
        self._suspect: Counter[Single] = Counter()
        """How often in a row a member that was never met, and greets, has ended the handshake."""
        self._secured: set[Single] = set()
        """Members that have had one of our keys, once."""
        self._question: object = None
        """What is asked about the member that is tried, if it is so still."""
        self._is_stopping = False
        self.due = math.inf
        thread.ask(self._start)

    def _start(self) -> None:
        self._thread.members.append(self)
        if self._thread.credentials is not None:
            self.credential = self._now(self._thread.credentials)
        self._plan_says(self._plan.start(time.monotonic()))

    @property
    def state(self) -> str:
        return self._plan.state.value

    @property
    def attempts(self) -> int:
        return sum(self._plan.attempts.values())

    @property
    def peer(self) -> tuple[Single | None, Identity | None]:
        """The member that is tried or met, and who it is, if it has said so."""
        connection = self._connection
        if connection is None:
            return None, None
        return connection.member, connection.end.machine.handshake.peer

    def start(self) -> None:
        """A new round, if none goes on."""
        self._thread.call(lambda: self._plan_says(self._plan.start(time.monotonic())))

    def stop(self) -> None:
        """In good order; `ended_at` says when that is done."""
        if not self.ended_at.is_set():
            self._thread.call(self._stop)

    def close(self) -> None:
        """In good order: what is on its way is confirmed first, if that is soon enough."""
        if not self.ended_at.is_set():
            self.stop()
            self.ended_at.wait(self.times.pending_ack_timeout + self.times.silence)
            self._thread.ask(self.end)

    def _stop(self) -> None:
        if self.ended_at.is_set():
            return
        self._is_stopping = True
        if self._connection is None:
            self._plan_says(self._plan.stop(time.monotonic()))
            self.end()
        else:
            end = self._connection.end
            end.does(end.machine.stop(time.monotonic()))

    def end(self) -> None:
        self._disconnect()
        for each in list(self._passive.values()):
            each.close()
        self._passive.clear()
        if self in self._thread.members:
            self._thread.members.remove(self)
        if not self.ended_at.is_set():
            self.ended_at.set()
            self.over()

    # --- of the thread ------------------------------------------------------------------------

    def learns(self, credentials: Credentials) -> None:
        """For the next connection, which is tried at once if there is none."""
        credential = self._now(credentials)
        if credential != self.credential:
            self.credential, self._key = credential, 0
            self._secured.clear()
            self._suspect.clear()
            if not self._is_stopping:
                self._plan_says(self._plan.start(time.monotonic()))

    def _now(self, credentials: Credentials) -> Credential:
        """What its own have become; the same, if they are there no more."""
        own = self.credential
        return credentials.named(own.name) or credentials.find(own.user, self.role) or own

    def _look(self) -> None:
        """At all that it waits for."""
        plan = self._plan.due
        due = [each.end.due for each in self._connections]
        self.due = min([*due, math.inf if plan is None else plan])

    @property
    def _connections(self) -> list[_Connection]:
        return [*([self._connection] if self._connection else []), *self._passive.values()]

    def woken(self, now: float) -> None:
        for each in self._connections:
            if each.is_drained and each.end.due <= now:
                each.end.woken(now)
        if self._plan.due is not None and self._plan.due <= now:
            self._plan_says(self._plan.woken(now))
        self._look()

    # --- of the plan --------------------------------------------------------------------------

    def _plan_says(self, actions: plans.Actions) -> None:
        for action in list(actions):
            if isinstance(action, plans.Connect):
                self._connect(action.member)
            elif isinstance(action, (plans.Disconnect, plans.Release)):
                self._disconnect()
            elif isinstance(action, plans.Hold):
                self._plan.hold_failed(action.member, time.monotonic())
            elif isinstance(action, plans.Changed):
                self._log_change(action)
            elif isinstance(action, plans.ReadMembers):
                self._listed.read(action.place)
            elif isinstance(action, plans.NoMember):
                self.found_none(action.said)
            elif isinstance(action, plans.Refused):
                self.was_refused(action.reason)
        self._look()
        self._show()

    def _show(self) -> None:
        if self.state != self._shown:
            self._shown, self.since = self.state, time.time()
        self._shows(self)

    def found_none(self, said: Mapping[Single, str]) -> None:
        """The rounds of its plan are used up."""

    def was_refused(self, reason: str) -> None:
        """By a member that is not tried again soon."""

    def takes_list(self, members: tuple[Member, ...]) -> None:
        """Of `update-uris-url`: it takes the place of the one that was given."""
        self._plan_says(self._plan.offered(members, time.monotonic(), was_read=True))

    def _log_change(self, change: plans.Changed) -> None:
        self.why = change.reason or self.why
        line = {
            "event": "link", "level": change.level, "link": self.name,
            "state": change.state.value, "was": change.was.value, "for": change.seconds,
            "uri": str(change.member or ""), "reason": change.reason,
        }  # fmt: skip
        peer = self._connection and self._connection.end.machine.handshake.peer
        if peer:
            line |= {"node": peer.node.hex(), "name": peer.name}
        self.tell(line)

    def _connect(self, member: Single) -> None:
        self._disconnect()
        passive, now = self._passive.get(member), time.monotonic()
        if passive is not None and now < passive.waits_from + WAITS_SECONDS:
            why, live = passive.said
            self._plan_says(self._plan.refused(now, Refusal.PASSIVE, why, live))
            return
        if passive is not None:
            del self._passive[member]
            passive.close()
        if self._active is not None and self._active.member == member:
            self._connection, self._active = self._active, None
            self._plan.connected()
            self._connection.goes_on(now)
            return
        self._attempts += 1
        keys = self.credential.keys
        self._connection = _Connection(self, self._thread, member, keys[self._key % len(keys)])
        self._connection.open(self._attempts)

    def _disconnect(self) -> None:
        self._question = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- of the end ---------------------------------------------------------------------------

    def wakes(self, end: End) -> None:
        self.due = min(self.due, end.due)

    def send(self, end: End, message: bytes) -> bool:
        connection = self._connection
        if connection is None or connection.end is not end:
            connection = next((each for each in self._connections if each.end is end), None)
        return connection is not None and connection.send(message)

    def secured(self, member: Single) -> None:
        """CURVE has shaken hands."""
        self._secured.add(member)
        self._plan.connected()
        self._look()

    def became(self, end: End, state: State) -> None:
        if state is State.HANDSHAKING:
            self._has_activated(end)
        elif state is State.SYNCING:
            self._plan.welcomed()
            self._look()
            self._show()
        elif state is State.UP:
            if (peer := end.machine.handshake.peer) is not None:
                self.epochs[peer.node] = peer.epoch
            self._plan_says(self._plan.up(time.monotonic()))

    def waits(self, end: End, live: str) -> None:
        connection = self._connection
        if connection is not None and connection.end is end:
            self._connection = None
            self._passive[connection.member] = connection
            where = heard(live)
            named = where and connection.member.tells_of(where)
            now = time.monotonic()
            why = f"{Refusal.PASSIVE.value}: {end.machine.why_passive}"
            why += f", and {live} is live" if live else ""
            connection.waits(now, why, named)
            self._plan_says(self._plan.refused(now, Refusal.PASSIVE, why, named))

    def _has_activated(self, end: End) -> None:
        """A member that was passive: it is tried on the connection that is there, if it is now."""
        for member, connection in list(self._passive.items()):
            if connection.end is end:
                del self._passive[member]
                self._active = connection
                self._plan_says(self._plan.active(member, time.monotonic()))
        unwanted, self._active = self._active, None
        if unwanted is not None:
            unwanted.close()

    def ended(self, end: End, how: Ending) -> None:
        connection, now = self._connection, time.monotonic()
        if connection is None or connection.end is not end:
            self._passive_ended(end)
            return
        was_secured = connection.is_secured
        reason = how.reason.value + (f": {how.detail}" if how.detail else "")
        if how.reason is Reason.DISCONNECTED and not connection.was_tcp:
            reason = UNREACHED
        self.why = reason
        if self._is_stopping:
            self.has_drained = end.machine.has_drained
            self._plan_says(self._plan.stop(now))
            self.end()
        elif self._plan.present is not None:
            self.losses += 1
            first, is_malformed = self._first_after(how), how.state is State.FAILED
            lost = self._plan.lost(
                now, reason, is_malformed=is_malformed, is_silent=how.reason is Reason.SILENCE,
                first=first,
            )  # fmt: skip
            self._plan_says(lost)
        elif how.reason is Reason.PEER_PROOF:
            self._plan_says(self._plan.refused(now, Refusal.CREDENTIALS, reason))
        elif how.reason.value in REFUSALS:
            self._plan_says(self._plan.refused(now, Refusal(how.reason.value), reason))
        elif how.reason is Reason.DISCONNECTED and connection.was_tcp and not was_secured:
            self._curve_failed(connection.member, now)
        else:
            self._plan_says(self._plan.attempt_failed(now, reason))

    def _first_after(self, how: Ending) -> tuple[Single, ...]:
        """Whom to try first: the broker that the other end has named."""
        named = heard(how.uri)
        return () if named is None else (named,)

    def _curve_failed(self, member: Single, now: float) -> None:
        """Its key may be another: the password, unless it died in that moment, or is away."""
        self._key += 1
        if member in self._secured:
            self.why = ENDED_EARLY
            self._plan_says(self._plan.attempt_failed(now, self.why))
            return
        self._disconnect()
        self._question = question = object()
        asks = partial(greets, member.host, member.port, GREETING_SECONDS)
        self._thread.worker.do(asks, partial(self._greeted, question, member), of=question)

    def _greeted(self, question: object, member: Single, greeted: bool | Exception) -> None:
        if question is not self._question:
            return  # another member is tried by now
        self._question, now = None, time.monotonic()
        self.why = ANOTHER_KEY if greeted is True else AWAY
        self._suspect[member] = self._suspect[member] + 1 if greeted is True else 0
        if self._suspect[member] >= SUSPECT * len(self.credential.keys):
            del self._suspect[member]
            self._plan_says(self._plan.refused(now, Refusal.CREDENTIALS, self.why))
        else:
            self._plan_says(self._plan.attempt_failed(now, self.why))

    def _passive_ended(self, end: End) -> None:
        for member, connection in list(self._passive.items()):
            if connection.end is end:
                del self._passive[member]
                connection.close()

    def heard(self, end: End, frame: Frame) -> None:
        """A session is said on links of programs only (netbridge/client)."""

    def unserved(self, end: End, reason: str) -> None:
        """With others that are served the link goes on."""
        if any(each.is_opened or not each.is_answered for each in end.machine.outflows.values()):
            self.told("not served there", reason)
        else:
            end.does(end.machine.refuse(Reason.UNSERVED, reason, time.monotonic()))

    def told(self, what: str, detail: str) -> None:
        self.tell({"event": "link", "level": "warning", "link": self.name,
                   "what": what, "detail": detail})  # fmt: skip


UNREACHED: Final = "nobody listens there, or it cannot be reached"
"""ZeroMQ does not say which: it closes a socket that was never connected."""
ENDED_EARLY: Final = (
    "the far end has ended the connection while keys were exchanged: it went away, it has too many "
    "connections, or its password is another one"
)
AWAY: Final = (
    "what listens there is no broker, or a proxy in front of one that is away: it accepts "
    "connections and ends them"
)
ANOTHER_KEY: Final = (
    "credentials: the far end has another key: the password is another one, or its key is that of "
    "another user's password, and key= is missing (shmbroker key show)"
)
REFUSALS: Final = frozenset(each.value for each in Refusal)


class _Connection:
    """One socket, and the end on it."""

    def __init__(self, link: Link, thread: NetworkThread, member: Single, keys: Stretched) -> None:
        self.member = member
        self.is_drained = True
        self.was_tcp = self.is_secured = self._is_lost = False
        self.waits_from = -math.inf
        self.said: tuple[str, Single | None] = "", None
        """When the far end has said that it is passive, why, and who is live."""
        self._link, self._thread, self._keys = link, thread, keys
        self._times = of_member(link.times, dict(member.values))
        self._socket: Any = None
        self._received: Received | None = None
        self._monitor: Monitor | None = None

    def open(self, attempt: int) -> None:
        link, thread = self._link, self._thread
        pair = (link.pair.public, link.pair.secret) if link.pair else new_pair()
        pin = dict(self.member.values).get(PIN)
        far = bytes.fromhex(pin) if pin else public_of(self._keys.listening)
        proofs = NearEnd(
            link.credential, self._keys, Channel(pair[0], far),
            secrets.token_bytes(CHALLENGE_BYTES),
        )  # fmt: skip
        wish = Wish(self.member.vhost, link.name, link.role, link.credential.user, attempt)
        near = Near(link.ours, wish, proofs, proofs, link.epochs)
        self.end = End(thread, Machine(self._times, near, time.monotonic()), link, link.meter)
        try:
            self._socket = dealer(thread.context, self._times, self.member.peer, pair, far)
            self._received = Received(self._socket)
            self._monitor = Monitor(self._socket)
        except zmq.ZMQError as error:  # no descriptor is free
            if self._socket is not None:
                self._socket.close()
                self._socket = self._received = None
            self._is_without(error)
            return
        thread.add(self._monitor.socket, self._happened)
        thread.add(self._socket, self._readable)
        if self._ships():
            try:
                self._socket.connect(f"tcp://{self.member.peer}")
            except zmq.ZMQError as error:  # no such host
                self._is_without(error)

    def waits(self, now: float, why: str, live: Single | None) -> None:
        """Its member is passive: the link ships by another connection meanwhile, and there is one
        gate of this link in each queue."""
        self.waits_from, self.said = now, (why, live)
        self.end.close()
        self.end.machine.outlets.clear()

    def goes_on(self, now: float) -> None:
        """Its member was passive, and serves now."""
        if self._ships():
            self.end.does(self.end.machine.go_on(now))

    def _ships(self) -> bool:
        """False: something cannot be shipped, and the link is told soon."""
        try:
            for target, shipped in enumerate(self._link.ships):
                self._ship(target, shipped)
        except Error as error:  # no such queue
            self._is_without(error)
            return False
        return True

    def _is_without(self, error: Exception) -> None:
        why = ending(Reason.NO_SOURCE, str(error))
        self._thread.call(lambda: self._link.ended(self.end, why))

    def _ship(self, target: int, shipped: Shipped) -> None:
        link, end = self._link, self.end
        source = Source(
            self._thread.broker, self._thread.sleeper, link.name, shipped,
            lambda: end.news(target),
        )  # fmt: skip
        end.sources[target] = source
        exact = self._times.exact
        outlet = source.outlet(target, link.ours.node, link.ours.history, exact=exact)
        end.does(end.machine.open(outlet, time.monotonic()))

    def _happened(self) -> None:
        if self._monitor is None:
            return
        for event, _ in list(self._monitor.events()):
            if event is Event.CONNECTED:
                self.was_tcp = True
            elif event is Event.SECURED:
                self.is_secured = True
                self._link.secured(self.member)
                self.end.connected()
            elif event in LOST:
                self._is_lost = True
                self._drain()
                self.end.lost()
                return

    def _drain(self) -> None:
        """What came before it was closed counts: that it closes, say, and where to go."""
        while not self._take():
            pass

    def _readable(self) -> None:
        self.is_drained = False
        if self._take():
            self.is_drained = True
            self._thread.is_empty(self._socket)

    def _take(self) -> bool:
        """As much as may be taken in a turn; True: there is no more."""
        for number in range(FRAMES_MAX):
            received = self._received
            parts = None if received is None else received.next(is_signalled=number == 0)
            if parts is None:
                return True
            if parts:
                self.end.arrived(whole(parts))
        return False

    def send(self, message: bytes) -> bool:
        if self._socket is None:
            return True
        self._thread.used(self._socket)
        try:
            send(self._socket, message, LAST)
        except zmq.Again:  # as much waits to be sent as may
            return False
        return True

    def close(self) -> None:
        self.end.close()
        if self._socket is not None and self._monitor is not None:
            if self._is_lost or any(event in LOST for event, _ in self._monitor.events()):
                self._socket.setsockopt(zmq.LINGER, 0)  # nobody is there
            self._thread.remove(self._monitor.socket)
            self._thread.remove(self._socket)
            self._monitor.close()
            self._socket.close()
            self._socket = self._received = self._monitor = None
