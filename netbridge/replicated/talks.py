"""The links between the members of a node: one between each two, for what they say and for frames.

Of two members the one that stands later in `ha.members` connects to the other.  Each first says of
which group and process it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import zmq

from shmbroker.ipc.base.closable import Closable
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.cluster.hosting import NAME as HOSTED
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.link.handshake import Far
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.member.codec import Here, decode, encode
from shmbroker.netbridge.member.said import Said
from shmbroker.netbridge.plan.plans import of_member
from shmbroker.netbridge.security.credential import Credential, Credentials, KeyPair
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.frame import Frame, Talk
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import Role

Tell = Callable[[Mapping[str, Any]], None]
RETRY_SECONDS: Final = 0.2


class Hears(Protocol):
    """Called in the network thread."""

    def member_up(self, member: str, here: Here) -> None: ...

    def member_is_at(self, member: str, uri: str) -> None:
        """Programs reach it there from now on."""

    def member_down(self, member: str) -> None: ...

    def member_said(self, member: str, what: Said) -> None: ...

    def member_sent(self, member: str, frame: Frame) -> None:
        """Of replication."""

    def member_refused(self, member: str, why: str) -> None:
        """There is no link: a wrong password, or somebody else."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where this member is connected to."""

    uri: str
    key: Stretched | KeyPair


@dataclass(slots=True)
class _Peer:
    end: End
    is_here: bool = False
    """It has said who it is."""


class _Dialled(Dialled):
    """To a member that stands before this one."""

    def __init__(self, talks: Talks, member: str, *given: Any, **named: Any) -> None:
        self._talks, self._member = talks, member
        super().__init__(talks, *given, role=Role.REPLICA, **named)

    def was_refused(self, reason: str) -> None:
        self._talks.hears.member_refused(self._member, reason)


class Talks(Closable):
    """Close it before the thread."""

    def __init__(
        self,
        thread: NetworkThread,
        ours: Identity,
        here: Here,
        members: Sequence[tuple[str, str]],
        listens: Sequence[Address],
        credential: Credential,
        credentials: Credentials,
        times: LinkTimes,
        hears: Hears,
        tell: Tell,
        *,
        takes_hosted: bool = False,
    ) -> None:
        """`members`: names and uris, this one among them; `takes_hosted`: so are backups that run
        at other lives, and come here."""
        self.hears = hears
        self._thread, self._here, self._tell = thread, here, tell
        self._names = frozenset(name for name, _ in members) - {ours.name}
        self._takes_hosted = takes_hosted
        self._peers: dict[str, _Peer] = {}
        self._by_end: dict[End, str] = {}
        self._listens = tuple(listens)
        self._unbound = list(listens)
        self._members = tuple(members)
        self._credential, self._credentials, self._times = credential, credentials, times
        self._ours = ours
        self._told = False
        self._listeners: list[tuple[Address, Listener]] = []
        self._is_closed = False
        self._links: list[_Dialled] = []

    # --- from outside of the thread -----------------------------------------------------------

    def begin(self) -> None:
        """If an address is taken it is tried again."""
        ours = self._ours
        before = [name for name, _ in self._members].index(ours.name)
        self._links = [
            _Dialled(
                self, name, self._thread, f"member {ours.name}"[:255], of_member(uri),
                self._credential, ours, (), times=self._times, tell=self._tell,
                pair=self._credentials.pair,
            )
            for name, uri in self._members[:before]
        ]  # fmt: skip
        if not self.listen():
            threading.Thread(target=self._bind, daemon=True).start()

    def listen(self) -> bool:
        """False: an address is taken."""
        for each in list(self._unbound):
            try:
                made = Listener(
                    self._thread, each.uri, each.key, self._credentials, self._ours,
                    roles=frozenset({Role.REPLICA}), times=self._times, replicates=self,
                    tell=self._tell,
                )  # fmt: skip
            except zmq.ZMQError as error:
                if not self._told:
                    self._told = True
                    detail = f"{each.uri}: {error}"
                    self._tell({"event": "acceptor", "level": "error", "acceptor": "members",
                                "state": "cannot listen", "detail": detail})  # fmt: skip
                continue
            # in this order: `_look_at_keys` runs in the thread meanwhile
            self._listeners.append((each, made))
            self._unbound.remove(each)
        return not self._unbound

    def reload(self, listens: Sequence[Address], credentials: Credentials, uri: str) -> None:
        """For links from now on: those that are there go on, for whoever is without its live may
        take over.  `uri`: where programs reach this member."""

        def step() -> None:
            self._credentials, self._listens = credentials, tuple(listens)
            self._is_reached_at(uri)
            self._look_at_keys()

        self._thread.call(step)

    def _is_reached_at(self, uri: str) -> None:
        if uri != self._here.uri:
            self._here = replace(self._here, uri=uri)
            for peer in self._peers.values():
                peer.end.say(Talk(encode(self._here)))

    def _look_at_keys(self) -> None:
        """In the thread.  Who was accepted would be lost with the socket that has another key by
        now, so that one is closed when nobody is there."""
        if any(isinstance(end.machine.handshake, Far) for end in self._by_end):
            return
        for each in list(self._listeners):
            address, listener = each
            if address not in self._listens:
                self._listeners.remove(each)
                listener.end()
        if not self._unbound:
            there = [address for address, _ in self._listeners]
            self._unbound = [each for each in self._listens if each not in there]
            if self._unbound:
                threading.Thread(target=self._bind, daemon=True).start()

    def _bind(self) -> None:
        """Nobody tells when an address is free."""
        while not self.listen() and not self._is_closed:
            time.sleep(RETRY_SECONDS)
        if not self._is_closed:  # it may have another key again
            self._thread.call(self._look_at_keys)

    def close(self) -> None:
        self._is_closed = True
        for each in self._links:
            each.close()
        for _, listener in self._listeners:
            listener.close()

    # --- of the thread ------------------------------------------------------------------------

    def say(self, member: str, what: Said) -> bool:
        return self.send(member, Talk(encode(what)))

    def send(self, member: str, frame: Frame) -> bool:
        """False: it is not linked."""
        peer = self._peers.get(member)
        is_here = peer is not None and peer.is_here
        if peer is not None and is_here:
            peer.end.say(frame)
        return is_here

    def end(self, member: str) -> End | None:
        peer = self._peers.get(member)
        return None if peer is None or not peer.is_here else peer.end

    def break_off(self, member: str, why: str) -> None:
        """The link is made anew."""
        peer = self._peers.get(member)
        if peer is not None:
            self._refuse(peer.end, why)

    def _refuse(self, end: End, why: str) -> None:
        end.does(end.machine.refuse(Reason.DROPPED, why, time.monotonic()))

    # --- of the ends --------------------------------------------------------------------------

    def came(self, end: End) -> None:
        peer = end.machine.handshake.peer
        assert peer is not None
        is_hosted = self._takes_hosted and peer.name.startswith(HOSTED)
        if peer.name not in self._names and not is_hosted:
            self._tell({"event": "link", "level": "warning", "what": "no member",
                        "detail": f"{peer.name} is not one of ha.members"})  # fmt: skip
            self._refuse(end, f"{peer.name} is no member of this node")
            return
        former = self._peers.get(peer.name)
        if former is not None:
            self.gone(former.end)
        self._peers[peer.name] = _Peer(end)
        self._by_end[end] = peer.name
        end.say(Talk(encode(self._here)))

    def heard(self, end: End, frame: Frame) -> None:
        name = self._by_end.get(end)
        if name is None:
            return
        if not isinstance(frame, Talk):
            if self._peers[name].is_here:
                self.hears.member_sent(name, frame)
            return
        try:
            what = decode(frame.body)
        except Malformed as error:
            end.does(end.machine.malformed(error, time.monotonic()))
            return
        if isinstance(what, Here):
            self._is_here(name, end, what)
        elif self._peers[name].is_here:
            self.hears.member_said(name, what)

    def _is_here(self, name: str, end: End, here: Here) -> None:
        why = self._refusal(name, here)
        if why:
            self.hears.member_refused(name, why)
            self._refuse(end, why)
        elif not self._peers[name].is_here:
            self._peers[name].is_here = True
            self.hears.member_up(name, here)
        else:
            self.hears.member_is_at(name, here.uri)

    def _refusal(self, name: str, here: Here) -> str:
        ours = self._here
        if here.group != ours.group:
            return f"{name} is of group {here.group!r}, and this member of {ours.group!r}"
        if here.engine and ours.engine and here.engine != ours.engine:
            return f"{name} lets {here.engine} grant epochs, and this member {ours.engine}"
        return ""

    def gone(self, end: End) -> None:
        name = self._by_end.pop(end, None)
        if name is not None:
            peer = self._peers.pop(name)
            if peer.is_here:
                self.hears.member_down(name)
            self._thread.call(self._look_at_keys)  # not while its socket is read
