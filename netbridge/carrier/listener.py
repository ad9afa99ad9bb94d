"""The end that is connected to: one ROUTER, and a machine for each who has connected."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import zmq

from shmbroker.ipc.base.closable import Closable
from shmbroker.netbridge.carrier.accepted import CONNECTIONS_MAX, Accepted
from shmbroker.netbridge.carrier.authenticator import DOMAIN, key_of
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.monitor import STRANGE, Event, Monitor
from shmbroker.netbridge.carrier.socket import (
    LAST,
    MORE,
    RECEIVED_MAX,
    Received,
    is_readable,
    router,
    send,
    whole,
)
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.unread import Unread
from shmbroker.netbridge.link.deadlines import Deadlines
from shmbroker.netbridge.link.ending import Ending, Reason, State
from shmbroker.netbridge.link.handshake import Far
from shmbroker.netbridge.link.machine import Machine
from shmbroker.netbridge.link.peer import Gate, Identity, Place, Service
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.plan.state import LEVELS
from shmbroker.netbridge.plan.state import State as PlanState
from shmbroker.netbridge.security.credential import Credentials, KeyPair
from shmbroker.netbridge.security.curve import public_of
from shmbroker.netbridge.security.proof import CHALLENGE_BYTES, Channel, FarEnd
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.frame import Frame
from shmbroker.netbridge.wire.words import OF_PROGRAMS, PAIR_LINK, Role, is_of_agent, is_of_network

Tell = Callable[[Mapping[str, Any]], None]
FRAMES_MAX = 256
"""That are taken in a turn of the thread."""
UNREAD_MAX = 2 * RECEIVED_MAX
"""Of a connection, amply."""
PEERS_MAX = 1000
GOODBYE_SECONDS = 0.25
"""For those who are told that it closes; who hangs finds out by himself."""
NEWEST_MAX = 10_000
"""Links of which it is remembered which connection counts, beyond those that are there."""


class Serving(Protocol):
    """Of links of programs: `netbridge/serving`; of replicas: `netbridge/replica`; of members to
    their voter: `netbridge/witness`; of the other one of a pair: `netbridge/paired`; of members of
    a cluster: `netbridge/clustered`; of network links: `netbridge/networked`; of agents:
    `netbridge/transferred`."""

    def came(self, end: End) -> None: ...

    def heard(self, end: End, frame: Frame) -> None: ...

    def gone(self, end: End) -> None: ...


class Listener(Closable):
    def __init__(
        self,
        thread: NetworkThread,
        address: str,
        key: Stretched | KeyPair,
        credentials: Credentials,
        ours: Identity,
        *,
        roles: frozenset[Role] = frozenset({Role.PEERING}),
        vhosts: frozenset[str] = frozenset({"/"}),
        times: LinkTimes | None = None,
        serves: Serving | None = None,
        replicates: Serving | None = None,
        votes: Serving | None = None,
        pairs: Serving | None = None,
        clusters: Serving | None = None,
        networks: Serving | None = None,
        agents: Serving | None = None,
        gate: Gate | None = None,
        tell: Tell = lambda _: None,
        is_active: bool = True,
    ) -> None:
        """`key`: of the password that gives the key pair of this address, or that pair.

        `serves`: programs, `replicates`: replicas, `votes`: links of members to a witness;
        each if `roles` admits them; `pairs`: the link of the other one of a pair; `clusters`:
        links of members of a cluster; `networks`: network links; `agents`: those of agents.
        `gate`: whether applications are accepted.
        `is_active`: False, the broker is passive: all are told who is live, until `serve`.
        """
        self.times = times or LinkTimes()
        self.address = ""
        """Where it listens, with its port."""
        self._thread, self._ours, self._tell = thread, ours, tell
        self._key, self._credentials = key, credentials
        self._roles, self._vhosts = roles, vhosts
        self._serves, self._replicates, self._votes = serves, replicates, votes
        self._pairs, self._gate, self._clusters = pairs, gate, clusters
        self._networks, self._agents = networks, agents
        self._is_active = is_active
        self.live = ""
        """The address of the live, if it is known, while this broker is passive."""
        self._public = public_of(key.listening)
        self._peers: dict[bytes, End | None] = {}
        """By routing id; None: it has ended, and its connection is still there."""
        self._ids: dict[End, bytes] = {}
        self._deadlines: Deadlines[End] = Deadlines(lambda end: end.due)
        self._by_link: dict[Place, End] = {}
        """The connection of each link that counts."""
        self._descriptors: dict[int, bytes] = {}
        self._accepted = Accepted(self.times.handshake_timeout)
        self._newest: dict[Place, tuple[bytes, int]] = {}
        self._events: deque[tuple[Event, int]] = deque()
        """That were told and not looked at: one may lead to a look at the next ones."""
        self._unread = Unread(time.monotonic(), UNREAD_MAX)
        self._is_quiet = threading.Event()
        """All who were told that it closes have said that they are done."""
        self.due = math.inf
        thread.ask(lambda: self._start(address))

    def _start(self, address: str) -> None:
        thread = self._thread
        self._socket: Any = router(thread.context, self.times, address, self._key.listening, DOMAIN)
        self._received = Received(self._socket)
        self._monitor = Monitor(self._socket)
        thread.add(self._monitor.socket, self._happened)
        try:
            self._socket.bind(address)
        except zmq.ZMQError:
            self._close_sockets()
            raise
        self.address = self._socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()
        thread.add(self._socket, self._readable)
        thread.members.append(self)

    def serve(self, ours: Identity, serves: Serving | None) -> None:
        """The broker is live from now on; those who wait for that are told."""
        self._thread.ask(lambda: self._serve(ours, serves))

    def _serve(self, ours: Identity, serves: Serving | None) -> None:
        self._ours, self._serves, self._is_active = ours, serves, True
        for end in list(self._ids):
            if end.machine.state is State.PEER_PASSIVE:
                end.does(end.machine.activate(time.monotonic()))
            self._admits(end)

    def _admits(self, end: End) -> None:
        """Unless it was welcomed already; else it would be told that we wait."""
        far = end.machine.handshake
        if isinstance(far, Far) and far.peer is None:
            far.ours = self._ours
            far.service = replace(far.service, served=far.service.admitted)

    def expect(self, ours: Identity, serves: Serving | None) -> None:
        """The broker is about to be live: programs that wait for that shake hands by then."""
        self._thread.ask(lambda: self._expect(ours, serves))

    def _expect(self, ours: Identity, serves: Serving | None) -> None:
        self._ours, self._serves = ours, serves
        for end in list(self._ids):
            is_waiting = end.machine.state is State.PEER_PASSIVE
            if is_waiting and end.machine.handshake.role in OF_PROGRAMS:
                end.does(end.machine.activate(time.monotonic()))
                self._admits(end)

    def admit(self, credentials: Credentials, roles: frozenset[Role]) -> None:
        """From now on; connections by what is no longer accepted end."""
        self._thread.ask(lambda: self._admit(credentials, roles))

    def _admit(self, credentials: Credentials, roles: frozenset[Role]) -> None:
        self._roles = roles
        self.learns(credentials)
        for end in list(self._ids):
            far = end.machine.handshake
            assert isinstance(far, Far)
            if far.hello is None or not isinstance(far.prover, FarEnd):
                continue
            found = credentials.find(far.hello.user, far.hello.role)
            is_good = found is not None and far.prover.admitted in (*found.keys, None)
            if not is_good or far.hello.role not in self._roles_of(far.prover.channel.near):
                end.does(end.machine.stop(time.monotonic(), "the credentials were changed"))

    def _roles_of(self, key: bytes) -> frozenset[Role]:
        """That a peer with this key may have here."""
        known = self._thread.known_keys
        return self._roles if known is None else self._roles & known.get(key, frozenset())

    def learns(self, credentials: Credentials) -> None:
        """In the thread: of those who come from now on, or shake hands; connections that are there
        go on."""
        self._credentials = credentials
        for end in self._ids:
            far = end.machine.handshake
            assert isinstance(far, Far)
            if far.peer is None and isinstance(far.prover, FarEnd):
                far.prover.credentials = credentials
                roles = self._roles_of(far.prover.channel.near)
                served = roles if self._is_active else frozenset[Role]()
                far.service = replace(far.service, admitted=roles, served=served)

    def close_applications(self, why: str) -> None:
        """In the thread; with them agents of other brokers.  Others stay, and those who wait for a
        passive broker."""
        for end in list(self._ids):
            shaken = end.machine.handshake
            is_agent = is_of_agent(shaken.role, shaken.link)
            if shaken.peer is not None and (is_agent or shaken.role is Role.CLIENT):
                end.does(end.machine.stop(time.monotonic(), why))

    def move_programs(self, uri: str) -> None:
        """In the thread: they shall go to that broker, also who comes before this one is closed."""
        self._is_active, self.live = False, uri
        for end in list(self._ids):
            shaken = end.machine.handshake
            if shaken.peer is not None and shaken.role in OF_PROGRAMS:
                end.does(end.machine.move(uri, time.monotonic()))

    def call_back(self) -> None:
        """In the thread: who was told that this broker is passive may come again."""
        for end in list(self._ids):
            end.does(end.machine.activate(time.monotonic()))

    def close(self) -> None:
        """The other ends are told that it closes."""
        if self.address:
            self._thread.ask(self._stop)
            # closed with something unread, TCP would take back what they were told
            self._is_quiet.wait(GOODBYE_SECONDS)
            self._thread.ask(self._lose)
            self.address = ""

    def _stop(self) -> None:
        self._is_quiet.clear()
        for end in list(self._ids):
            end.does(end.machine.stop(time.monotonic(), "the broker stops"))
        self._look_whether_quiet()

    def _lose(self) -> None:
        """Who has said nothing is gone, too, for those who serve its link."""
        for end in list(self._ids):
            end.lost()
        self.end()

    def _look_whether_quiet(self) -> None:
        if not self._ids:
            self._is_quiet.set()

    def end(self) -> None:
        if self in self._thread.members:
            self._thread.members.remove(self)
            for end in list(self._ids):
                end.close()
            self._close_sockets()

    def _close_sockets(self) -> None:
        self._thread.remove(self._socket)
        self._thread.remove(self._monitor.socket)
        self._monitor.close()
        self._socket.close()

    # --- of the thread ------------------------------------------------------------------------

    def woken(self, now: float) -> None:
        heard = self._unread.heard if self._unread.is_behind else now
        for end in self._deadlines.late(now):
            end.woken(now, heard)
            self.wakes(end)
        self._accepted.shut_late(heard)
        self.due = min(self._accepted.due, self._deadlines.first)

    def _readable(self) -> None:
        is_behind, unread = False, self._unread
        for number in range(FRAMES_MAX):
            if not self._take(is_signalled=number == 0):
                self._thread.is_empty(self._socket)
                break
        else:
            self._thread.used(self._socket)
            is_behind = is_readable(self._socket)
        connections = len(self._accepted) if is_behind else 0
        unread.looked(time.monotonic(), connections, is_behind=is_behind)
        if unread.leaving:
            for peer in unread.gone():
                self._gone(peer)

    def _take(self, *, is_signalled: bool = False) -> bool:
        parts = self._received.next(is_signalled=is_signalled)
        if not parts:
            return parts is not None
        self._unread.taken += 1
        name = parts.pop(0)
        peer = name.bytes
        if peer not in self._peers:
            self._came(peer, name)
        end = self._peers.get(peer)
        if end is not None:
            end.arrived(whole(parts))
        return True

    def _happened(self) -> None:
        self._look()
        if self._unread.leaving:
            self._readable()

    def _look(self) -> None:
        now = time.monotonic()
        self._events.extend(self._monitor.events())
        while self._events:
            event, descriptor = self._events.popleft()
            if event is Event.ACCEPTED:
                if not self._accepted.came(descriptor, now):
                    self.told("too many connections", f"{CONNECTIONS_MAX} are there")
                self.due = min(self.due, self._accepted.due)
            elif event is Event.DISCONNECTED:
                self._accepted.gone(descriptor)
                peer = self._descriptors.pop(descriptor, None)
                if peer is not None:
                    self._unread.leaves(peer, len(self._accepted))
            elif event in STRANGE:
                self.told("a stranger was refused", STRANGE[event])

    def _came(self, peer: bytes, part: Any) -> None:
        """Its first frame.

        A descriptor is used again by later connections.  All that happened to former ones was told
        before this one was accepted, so it is taken now, and what comes later is of this one.
        """
        self._look()
        descriptor = part.get(zmq.SRCFD)
        if descriptor not in self._accepted:
            return
        self._descriptors[descriptor] = peer
        self._accepted.spoke(descriptor)
        if len(self._ids) >= PEERS_MAX:
            self._over(peer)
            self.told("too many links", f"{PEERS_MAX} are there")
            return
        key = key_of(part)
        channel = Channel(key, self._public)
        roles = self._roles_of(key)
        proofs = FarEnd(self._credentials, channel, secrets.token_bytes(CHALLENGE_BYTES))
        served = roles if self._is_active else frozenset[Role]()
        service = Service(
            self._vhosts, roles, served, live=self.live, newest=self._newest, gate=self._gate
        )
        far = Far(self._ours, service, proofs, proofs)
        end = End(self._thread, Machine(self.times, far, time.monotonic()), self)
        end.address = part.get("Peer-Address")
        self._peers[peer], self._ids[end] = end, peer
        self.wakes(end)
        end.connected()

    def _over(self, peer: bytes) -> None:
        """Nothing is heard of it any more; its connection is shut soon."""
        self._peers[peer] = None
        for descriptor, other in self._descriptors.items():
            if other == peer:
                self._accepted.ended(descriptor, time.monotonic())
        self.due = min(self.due, self._accepted.due)

    def _gone(self, peer: bytes) -> None:
        """Its connection was closed, and what it had sent before was taken."""
        end = self._peers.pop(peer, None)
        if end is not None:
            end.lost()
            self._forget(end)

    def _forget(self, end: End) -> bytes | None:
        self._deadlines.drop(end)
        if end.machine.handshake.peer is not None:
            place, _ = _link_of(end)
            if self._by_link.get(place) is end:
                del self._by_link[place]
        peer = self._ids.pop(end, None)
        self._look_whether_quiet()
        return peer

    # --- of an end ----------------------------------------------------------------------------

    def wakes(self, end: End) -> None:
        if end in self._ids:
            self._deadlines.look(end)
            self.due = min(self.due, end.due)

    def send(self, end: End, message: bytes) -> bool:
        self._thread.used(self._socket)
        try:
            send(self._socket, self._ids[end], MORE)
            send(self._socket, message, LAST)
        except zmq.ZMQError:  # ROUTER_MANDATORY: it is gone
            return False
        return True

    def became(self, end: End, state: State) -> None:
        if state is State.SYNCING:
            self._supersede(end)
            serving = self._serving(end)
            if serving is not None:
                end.hears = serving.heard
                serving.came(end)
        elif state is State.UP:
            self._log(end, "up", "")

    def _supersede(self, end: End) -> None:
        """A former connection of the same link is over, whether it knows or not."""
        place, attempt = _link_of(end)
        self._newest.pop(place, None)
        self._newest[place] = attempt
        if len(self._newest) > NEWEST_MAX + PEERS_MAX:
            del self._newest[next(iter(self._newest))]
        former = self._by_link.get(place)
        self._by_link[place] = end
        if former is not None:
            former.does(former.machine.supersede(time.monotonic()))

    def unserved(self, end: End, reason: str) -> None:
        """Of what this end ships; whoever has made the link comes again, and is asked again."""
        self.told("not served there", reason)
        end.does(end.machine.refuse(Reason.UNSERVED, reason, time.monotonic()))

    def waits(self, end: End, live: str) -> None:
        """Only the near end waits."""

    def _serving(self, end: End) -> Serving | None:
        role = end.machine.handshake.role
        if role is Role.REPLICA:
            return self._replicates
        if role is Role.WITNESS:
            return self._votes
        if role is Role.CLUSTER:
            return self._clusters
        if is_of_network(role, end.machine.handshake.link):
            return self._networks
        if is_of_agent(role, end.machine.handshake.link):
            return self._agents
        if role is Role.PEERING:
            return self._pairs if end.machine.handshake.link == PAIR_LINK else None
        return self._serves if role in OF_PROGRAMS else None

    def heard(self, end: End, frame: Frame) -> None:
        """Nobody serves it."""

    def ended(self, end: End, how: Ending) -> None:
        serving = self._serving(end)
        if serving is not None:
            serving.gone(end)
        peer = self._forget(end)
        if peer is not None:
            if peer in self._peers:
                self._over(peer)
            if end.machine.handshake.peer is not None or how.reason is Reason.VHOST:
                self._log(end, how.state.value, f"{how.reason.value} {how.detail}".strip())
            elif how.reason is not Reason.DISCONNECTED and not _has_waited(end):
                self.told("a stranger was refused", f"{how.reason.value} {how.detail}".strip())

    def _log(self, end: End, state: str, reason: str) -> None:
        hello = end.machine.handshake.hello if isinstance(end.machine.handshake, Far) else None
        level = LEVELS.get(PlanState(state), "info")
        self._tell({"event": "link", "level": level, "link": hello.link if hello else "",
                    "state": state, "name": hello.name if hello else "",
                    "reason": reason})  # fmt: skip

    def told(self, what: str, detail: str) -> None:
        self._tell({"event": "link", "level": "warning", "what": what, "detail": detail})


def _has_waited(end: End) -> bool:
    """It knew the secret, and was told that this broker is passive."""
    far = end.machine.handshake
    return isinstance(far, Far) and far.is_passive


def _link_of(end: End) -> tuple[Place, tuple[bytes, int]]:
    far = end.machine.handshake
    hello = far.hello if isinstance(far, Far) else None
    assert hello is not None
    return (hello.node, hello.link, hello.role), (hello.incarnation, hello.attempt)
