"""The link of a program to whichever broker its plan finds; its session is said on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.link import Link, planned
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.ending import Ending, Reason, State
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.plan.plans import Draft
from shmbroker.netbridge.plan.text import heard
from shmbroker.netbridge.plan.uri import Member, Single, singles
from shmbroker.netbridge.remote.action import Event
from shmbroker.netbridge.remote.topology import Node, Topology, unpacked
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.wire.frame import Frame, Invite, Nodes
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.words import Standing

KINDS: Final = {Reason.PEER_CLOSING: Event.CLOSED, Reason.MOVED: Event.MOVED}
"""What a program is told of the end of its link; of any other reason: lost."""
PASSIVE: Final = Identity(b"", b"", "", Standing.BACKUP, 0)


class Speaker(Protocol):
    """A session; all of it is called in the network thread."""

    link: ProgramLink | None
    learns: Callable[[tuple[Node, ...]], None]

    def link_is_up(self, node: bytes, process: bytes) -> None: ...

    def link_is_lost(self, kind: Event, detail: str) -> None: ...

    def heard(self, frame: Frame) -> None: ...

    def invited(self, uri: str, former: str) -> None: ...

    def found_none(self, said: Mapping[Single, str]) -> None: ...


class ProgramLink(Link):
    def __init__(
        self,
        thread: NetworkThread,
        name: str,
        uri: str,
        credential: Credential,
        ours: Identity,
        times: LinkTimes,
        speaker: Speaker,
    ) -> None:
        self._speaker = speaker
        speaker.link = self
        self._attached: End | None = None
        self.met: dict[Single, Identity] = {}
        """Who was there last, of the members that have said so."""
        self.topology = Topology()
        """As brokers have told it."""
        self._given: tuple[Member, ...] = ()
        """The list that the program was given; what else is told stands before it."""
        self._goes_to: Single | None = None
        """The session has left for this broker."""
        super().__init__(
            thread, name, uri, credential, ours, (), times=times, role=credential.roles[0],
            owner="program",
        )  # fmt: skip

    @property
    def why_not(self) -> str:
        """What the members have said that were asked."""
        return self._plan.why

    @property
    def member(self) -> Single | None:
        """Whom the session is attached to."""
        return self._plan.present

    def try_again(self) -> None:
        """Unless it does so anyway."""
        if self._plan.due is None:
            self._plan_says(self._plan.start(time.monotonic()))

    def aim(self, draft: Draft) -> None:
        """At other members from now on; it has given up before."""
        self._plan = planned(draft)
        self._given = ()

    @property
    def members(self) -> tuple[Single, ...]:
        return self._plan.members

    def give_up(self) -> None:
        self._attached = None
        self._plan_says(self._plan.stop(time.monotonic()))

    def say(self, frame: Frame) -> None:
        if self._attached is not None:
            self._attached.say(frame)

    def go(self, uri: str) -> None:
        """Leave this broker; that one is tried first."""
        self._goes_to = heard(uri)
        self.disconnect()

    def disconnect(self) -> None:
        """The session is over, or has no use for this connection."""
        if self._attached is not None:
            self._attached.lost()

    def breaks(self, why: str) -> None:
        """The broker has said what no broker says."""
        if self._attached is not None:
            broken = self._attached.machine.malformed(Malformed(why), time.monotonic())
            self._attached.does(broken)

    # --- of the end ---------------------------------------------------------------------------

    def heard(self, end: End, frame: Frame) -> None:
        if end is not self._attached:
            return
        if isinstance(frame, Nodes):
            self._told(end, frame)
        elif isinstance(frame, Invite):
            self._invited(frame.uri)
        else:
            self._speaker.heard(frame)

    def _told(self, end: End, frame: Nodes) -> None:
        """Who serves, and who waits: it counts from the next round on."""
        try:
            told = unpacked(frame.body)
        except Malformed as error:
            end.does(end.machine.malformed(error, time.monotonic()))
            return
        for each in told:
            self.epochs[each.id] = max(each.epoch, self.epochs.get(each.id, 0))
        is_news = self.topology.take(told)
        self._speaker.learns(told)
        if is_news:
            self._given = self._given or self._plan.listed
            self._offer(was_read=False)

    def _invited(self, uri: str) -> None:
        """Whom it does not know it does not follow."""
        to, present = heard(uri), self.member
        if not self._plan.terms.obeys_moves or to is None or present is None:
            return
        known = {each.place[:2] for each in self.members}
        if to.place[:2] != present.place[:2] and to.place[:2] in known:
            self._speaker.invited(uri, str(present))

    def takes_list(self, members: tuple[Member, ...]) -> None:
        self._given = members
        self._offer(was_read=True)

    def _offer(self, *, was_read: bool) -> None:
        given = {one.place for each in self._given for one in singles(each)}
        known = self._known() if self._plan.terms.takes_lists else ()
        others = dict.fromkeys(each for each in known if each.place not in given)
        members = (*others, *self._given)
        self._plan_says(self._plan.offered(members, time.monotonic(), was_read=was_read))

    def _known(self, only: bytes | None = None) -> Iterator[Single]:
        """Members of nodes that were told, of all or of one of them."""
        teller = self.member or Single("")
        for node in self.topology.nodes.values():
            for uri in node.uris if only in (None, node.id) else ():
                found = heard(uri)
                if found is not None:
                    yield teller.tells_of(found)

    def became(self, end: End, state: State) -> None:
        super().became(end, state)
        if state is State.UP:
            peer = end.machine.handshake.peer
            assert peer is not None, "it has said who it is"
            if self.member is not None:
                self.met[self.member] = peer
            self._attached = end
            self._speaker.link_is_up(peer.node, peer.incarnation)

    def ended(self, end: End, how: Ending) -> None:
        was_attached = end is self._attached
        if was_attached:
            self._attached = None
        super().ended(end, how)
        if was_attached:
            kind = KINDS.get(how.reason, Event.LOST)
            self._speaker.link_is_lost(kind, how.uri or self.why)

    def _first_after(self, how: Ending) -> tuple[Single, ...]:
        """Its own broker, which may have the session still, unless that names another one; then
        those that wait to take its place, and others of the group."""
        present, goes_to = self._plan.present, self._goes_to
        self._goes_to = None
        if goes_to is not None:
            there = goes_to if present is None else present.tells_of(goes_to)
            return self._as_given((there, *(() if present is None else (present,))))
        own = super()._first_after(how)
        if present is not None:
            own = tuple(map(present.tells_of, own)) or (present,)
        met = self.met.get(present) if present is not None else None
        return self._as_given((*own, *self._known(met.node if met is not None else b"")))

    def _as_given(self, told: tuple[Single, ...]) -> tuple[Single, ...]:
        """Of those that stand in the list the parameters are known."""
        given = {each.place: each for each in self.members}
        return tuple(given.get(each.place, each) for each in told)

    def waits(self, end: End, live: str) -> None:
        if self._connection is not None and self._connection.end is end:
            self.met[self._connection.member] = PASSIVE
        super().waits(end, live)

    def found_none(self, said: Mapping[Single, str]) -> None:
        self._speaker.found_none(said)
