"""The handshake: who is there, do both know the secret, and is the link wanted.

    near end                                    far end
    Hello (who, what for, a challenge)   -->
                                         <--    Challenge, or Refused: no common version
    Proof                                -->
                                         <--    Welcome with a proof, or Refused

A far end that is passive refuses, and the connection stays.  When it serves it says `Active`, and a
near end that still wants the link goes on from its Proof:

                                         <--    Active
    Proof                                -->
                                         <--    Welcome with a proof, or Refused

Nothing but the version is answered before the near end has proved that it knows the secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shmbroker.netbridge.link.action import Action, Alert, Line
from shmbroker.netbridge.link.broken import Broken, broken
from shmbroker.netbridge.link.ending import Reason, refused
from shmbroker.netbridge.link.peer import (
    Admitter,
    Denied,
    Identity,
    Prover,
    Service,
    Verifier,
    Wish,
)
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.wire import version
from shmbroker.netbridge.wire.frame import (
    Challenge,
    Frame,
    Hello,
    Proof,
    Refused,
    Welcome,
    named,
)
from shmbroker.netbridge.wire.words import Refusal, Role, is_of_agent

Steps = Iterator[Frame | Action]


def unexpected(frame: Frame, where: str) -> Broken:
    return broken(Reason.UNEXPECTED, f"{named(type(frame))} {where}")


class Near:
    """The end that connects."""

    def __init__(
        self,
        ours: Identity,
        wish: Wish,
        prover: Prover,
        verifier: Verifier,
        epochs: Mapping[bytes, int] | None = None,
    ) -> None:
        """`epochs`: the highest that was seen of each node."""
        self.ours, self.wish = ours, wish
        self.prover, self.verifier = prover, verifier
        self.epochs = epochs or {}
        self.peer: Identity | None = None
        self.version = 0
        self.beat_seconds = 0.0
        self.frame_bytes = 0
        self._proof: Proof | None = None

    @property
    def role(self) -> Role:
        return self.wish.role

    @property
    def link(self) -> str:
        return self.wish.link

    def begin(self, times: LinkTimes) -> Steps:
        ours, wish = self.ours, self.wish
        yield Hello(
            low=version.LOWEST,
            high=version.HIGHEST,
            node=ours.node,
            incarnation=ours.incarnation,
            name=ours.name,
            standing=ours.standing,
            epoch=ours.epoch,
            vhost=wish.vhost,
            link=wish.link,
            attempt=wish.attempt,
            role=wish.role,
            user=wish.user,
            challenge=self.verifier.challenge,
            beat_ms=int(times.heartbeat_interval * 1000),
            frame_bytes=times.max_frame_size,
        )

    def take(self, frame: Frame, times: LinkTimes, day_ms: int) -> Steps:
        if isinstance(frame, Refused):
            raise Broken(refused(frame.refusal, frame.detail, frame.live))
        if isinstance(frame, Challenge) and self._proof is None:
            self._proof = Proof(self.prover.answer(frame.challenge))
            yield self._proof
        elif isinstance(frame, Welcome) and self._proof is not None:
            yield from self._welcomed(frame, times, day_ms)
        else:
            raise unexpected(frame, "in a handshake")

    def again(self) -> Steps:
        """The far end serves by now."""
        if self._proof is not None:
            yield self._proof

    def _welcomed(self, said: Welcome, times: LinkTimes, day_ms: int) -> Steps:
        if not self.verifier.check(said.proof):
            raise broken(Reason.PEER_PROOF, "the far end does not know the secret")
        if version.agreed(said.version, said.version) is None:
            raise broken(Reason.VERSION, f"version {said.version} was not offered")
        seen = self.epochs.get(said.node, 0)
        if said.epoch < seen:
            raise broken(Reason.EPOCH, f"the far end is of epoch {said.epoch}, and {seen} was seen")
        self.version = said.version
        self.peer = Identity(said.node, said.incarnation, said.name, said.standing, said.epoch)
        self.beat_seconds = said.beat_ms / 1000
        self.frame_bytes = said.frame_bytes
        apart = abs(said.clock_ms - day_ms) / 1000
        if apart > times.clock_difference:
            yield Line(Alert.CLOCKS, f"by {apart:.3f} s")


class Far:
    """The end that was connected to."""

    def __init__(
        self, ours: Identity, service: Service, prover: Prover, verifier: Admitter
    ) -> None:
        self.ours, self.service = ours, service
        self.prover, self.verifier = prover, verifier
        self.hello: Hello | None = None
        self.peer: Identity | None = None
        self.version = 0
        self.beat_seconds = 0.0
        self.frame_bytes = 0
        self.is_passive = False
        """It has shown that it knows the secret, and was told that we are passive."""

    @property
    def role(self) -> Role | None:
        return None if self.hello is None else self.hello.role

    @property
    def link(self) -> str:
        return "" if self.hello is None else self.hello.link

    def begin(self, times: LinkTimes) -> Steps:
        yield from ()

    def again(self) -> Steps:
        """The near end goes on."""
        yield from ()

    def take(self, frame: Frame, times: LinkTimes, day_ms: int) -> Steps:
        if isinstance(frame, Hello) and self.hello is None:
            self.hello = frame
            yield from self._met(frame)
        elif isinstance(frame, Proof) and self.hello is not None:
            yield from self._proved(frame, self.hello, times, day_ms)
        else:
            raise unexpected(frame, "in a handshake")

    def _met(self, hello: Hello) -> Steps:
        common = version.agreed(hello.low, hello.high)
        if common is None:
            spoken = (
                f"{version.LOWEST} to {version.HIGHEST} here, {hello.low} to {hello.high} there"
            )
            yield from self._refuse(Refusal.VERSION, f"versions are {spoken}")
        self.version = common or 0
        self.verifier.claim(hello.user, hello.role)
        yield Challenge(self.verifier.challenge)

    def _proved(self, said: Proof, hello: Hello, times: LinkTimes, day_ms: int) -> Steps:
        if not self.verifier.check(said.proof) or hello.role not in self.service.admitted:
            yield from self._refuse(Refusal.CREDENTIALS, "")
        self.beat_seconds = hello.beat_ms / 1000
        refusal, detail = refusal_of(hello, self.ours, self.service)
        if refusal is not None:
            alert = ALERTS.get(refusal)
            if alert is not None:
                yield Line(alert, detail)
            yield from self._refuse(refusal, detail)
        denied = denied_by(self.service, hello)
        if denied is not None:
            yield from self._refuse(denied.refusal, denied.detail, denied.live)
        self.is_passive = False
        self.peer = Identity(hello.node, hello.incarnation, hello.name, hello.standing, hello.epoch)
        self.frame_bytes = hello.frame_bytes
        ours = self.ours
        yield Welcome(
            version=self.version,
            node=ours.node,
            incarnation=ours.incarnation,
            name=ours.name,
            standing=ours.standing,
            epoch=ours.epoch,
            proof=self.prover.answer(hello.challenge),
            beat_ms=int(times.heartbeat_interval * 1000),
            frame_bytes=times.max_frame_size,
            clock_ms=day_ms,
        )

    def _refuse(self, refusal: Refusal, detail: str, live: str = "") -> Steps:
        self.is_passive = refusal is Refusal.PASSIVE
        live = live or (self.service.live if self.is_passive else "")
        yield Refused(refusal, detail, live)
        raise Broken(refused(refusal, detail, live))


ALERTS = {Refusal.VHOST: Alert.VHOST, Refusal.DUPLICATE_NODE: Alert.DUPLICATE_NODE}


def denied_by(service: Service, hello: Hello) -> Denied | None:
    if service.gate is not None and is_of_agent(hello.role, hello.link):
        return service.gate.passive()
    if service.gate is None or hello.role is not Role.CLIENT:
        return None
    return service.gate.denies(hello.vhost)


def refusal_of(hello: Hello, ours: Identity, service: Service) -> tuple[Refusal | None, str]:
    """What the far end says to one who knows the secret."""
    if hello.node == ours.node and hello.incarnation == ours.incarnation:
        return Refusal.SELF, "the link leads to its own broker"
    if hello.node == ours.node and hello.role is not Role.REPLICA:
        return (
            Refusal.DUPLICATE_NODE,
            f"{hello.name} and {ours.name} have node id {ours.node.hex()}",
        )
    if hello.epoch < service.epochs.get(hello.node, 0):
        seen = service.epochs[hello.node]
        return Refusal.STALE, f"{hello.name} is of epoch {hello.epoch}, and {seen} was seen"
    is_for_gate = service.gate is not None and hello.role is Role.CLIENT
    if hello.vhost not in service.vhosts and not is_for_gate:
        served = ", ".join(sorted(service.vhosts))
        return Refusal.VHOST, f"{hello.vhost!r} was asked for, {served} is served"[:500]
    if hello.role not in service.served:
        return Refusal.PASSIVE, f"{ours.name} is not active"
    if not service.has_room:
        return Refusal.BUSY, "there is no room for one more"
    incarnation, attempt = service.newest.get((hello.node, hello.link, hello.role), (b"", 0))
    if incarnation == hello.incarnation and hello.attempt <= attempt:
        return Refusal.BUSY, f"attempt {hello.attempt} is older than {attempt}"
    return None, ""
