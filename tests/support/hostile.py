"""A peer with the right key and password that says what no peer of ours says, over real sockets."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

import zmq
from zmq.utils import z85

from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.security.curve import new_pair, public_of
from shmbroker.netbridge.security.proof import CHALLENGE_BYTES, Channel, NearEnd
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.codec import decode, encode
from shmbroker.netbridge.wire.field import Bound, Choice, Flag, Number, Octets, Text
from shmbroker.netbridge.wire.frame import (
    FRAME_BYTES_MAX,
    Carrying,
    Challenge,
    Frame,
    Hello,
    Proof,
    Result,
    Welcome,
    bounds_of,
)
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.version import HIGHEST, LOWEST
from shmbroker.netbridge.wire.vocabulary import Made, Many, Pair, Perhaps, Vocabulary
from shmbroker.netbridge.wire.words import Role, Standing

PATIENCE_MS: Final = 60_000
BODIES: Final = (b"", b"\xc1", bytes(32), b"\xff" * 64)
"""That are of no kind."""
TEXTS: Final = ("", "\0", "x", "a/b", "$own", "\n\u00e9\U0001f600")


@dataclass(frozen=True)
class Far:
    """Where a peer goes to, and as whom."""

    port: int
    key: Stretched
    """Of the acceptor."""
    own: Stretched
    """Of the user."""
    role: Role
    link: str = "a link"
    name: str = "peer"
    node: bytes = b"h" * 16

    @property
    def hello(self) -> Hello:
        return Hello(
            LOWEST, HIGHEST, self.node, os.urandom(16), self.name, Standing.LIVE, 0, "/",
            self.link, 1, self.role, self.own.user, bytes(CHALLENGE_BYTES), 60_000, 1 << 20,
        )  # fmt: skip


class Peer:
    def __init__(self, context: zmq.Context[Any], far: Far) -> None:
        ours, theirs = new_pair(), public_of(far.key.listening)
        self._far, self._sent = far, 0
        self.far: Welcome
        """Who is there."""
        self._channel = Channel(ours[0], theirs)
        self.socket: Any = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 1000)
        self.socket.setsockopt(zmq.RECONNECT_IVL, -1)
        self.socket.setsockopt(zmq.CURVE_PUBLICKEY, z85.encode(ours[0]))
        self.socket.setsockopt(zmq.CURVE_SECRETKEY, z85.encode(ours[1]))
        self.socket.setsockopt(zmq.CURVE_SERVERKEY, z85.encode(theirs))
        self.socket.connect(f"tcp://127.0.0.1:{far.port}")

    def says(self, frame: Frame) -> Self:
        self.sends(encode(frame, self._sent))
        return self

    def sends(self, message: bytes) -> Self:
        self._sent += 1
        self.socket.send(message)
        return self

    def hears(self, *kinds: type[Frame], patience: int = PATIENCE_MS) -> Frame | None:
        """The next one of these; None: it does not come."""
        until = time.monotonic() + patience / 1000
        while self.socket.poll(max(0, int((until - time.monotonic()) * 1000))):
            frame = decode(self.socket.recv(), FRAME_BYTES_MAX)[1]
            if isinstance(frame, kinds):
                return frame
        return None

    def hears_of(self, call: int) -> bool:
        """The result of this command."""
        while found := self.hears(Result):
            if isinstance(found, Result) and found.call == call:
                return True
        return False

    def challenged(self, hello: Hello | None = None) -> Proof:
        """What it is to say then."""
        found = self.says(hello or self._far.hello).hears(Challenge)
        assert isinstance(found, Challenge), "it does not listen any more"
        own = self._far.own
        credential = Credential("own", own.user, (self._far.role,), (own,))
        ours = NearEnd(credential, own, self._channel, bytes(CHALLENGE_BYTES))
        return Proof(ours.answer(found.challenge))

    def welcomed(self) -> Self:
        found = self.says(self.challenged()).hears(Welcome)
        assert isinstance(found, Welcome), "it serves no honest peer any more"
        self.far = found
        return self

    def close(self) -> None:
        self.socket.close()


# --- odd values -----------------------------------------------------------------------------------


def odd(bound: Bound) -> list[Any]:
    """Values that are allowed; the first one is nothing special, then the least and the most."""
    match bound:
        case Number():
            ordinary = min(max(1, bound.least), bound.most)
            return list(dict.fromkeys((ordinary, bound.least, bound.most)))
        case Flag():
            return [False, True]
        case Text():
            most = "\u00e9" * (bound.most // 2)
            fit = [each for each in TEXTS if bound.least <= len(each.encode()) <= bound.most]
            return list(dict.fromkeys(("x" * max(1, bound.least), *fit, most)))
        case Octets():
            return list(dict.fromkeys((b"o" * max(bound.least, min(16, bound.most)),
                                       bytes(bound.least), b"\xff" * bound.most)))  # fmt: skip
        case Choice():
            return list(bound.of)
        case Made():
            return [bound._kind(*each) for each in _varied(bound._bounds)]
        case Many():
            each = odd(bound._of)
            most = tuple(each[0] for _ in range(min(bound._most, 16)))
            return [(each[0],), (), most, *((one,) for one in each[1:])]
        case Pair():
            return [tuple(each) for each in _varied(bound._both)]
        case Perhaps():
            return [None, *odd(bound._of)]
    return [*_read(bound, b"o" * 16, bytes(16), b"\xff" * 16, b"")]


def _read(bound: Bound, *given: object) -> Iterator[Any]:
    for each in given:
        with suppress(Malformed):
            yield bound.read(each)


def _varied(bounds: tuple[Bound, ...]) -> Iterator[list[Any]]:
    """All of them nothing special, all the least or the most, and each by itself."""
    every = [odd(each) for each in bounds]
    yield [each[0] for each in every]
    if every:
        yield [each[min(1, len(each) - 1)] for each in every]
        yield [each[-1] for each in every]
    for place, each in enumerate(every):
        for one in each[1:]:
            yield [*(of[0] for of in every[:place]), one, *(of[0] for of in every[place + 1 :])]


def frames(kind: type[Frame], bodies: tuple[bytes, ...] = BODIES) -> Iterator[Frame]:
    """Well-formed ones, and with each of these bodies."""
    bounds = tuple(bound for _, bound in bounds_of(kind))
    for values in _varied(bounds):
        for body in bodies if issubclass(kind, Carrying) else [None]:
            made: Any = kind(*values, *([] if body is None else [body]))
            try:
                encode(made, 0)
            except Malformed:  # its fields do not fit each other
                continue
            yield made


def words(of: Vocabulary) -> Iterator[bytes]:
    for kind, made in of._words:
        for values in _varied(made._bounds):
            try:
                yield of.encode(kind(*values))
            except Malformed:
                continue
