"""What a link says while there is nothing to say: its handshake, and then its beats.

Both machines are real, and so are the proofs: of a connection of members, and of one that ships the
queue towards a node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import cache
from typing import Final

from shmbroker.netbridge.link.action import Action, OpenSink, Send
from shmbroker.netbridge.link.handshake import Far, Near
from shmbroker.netbridge.link.machine import Machine
from shmbroker.netbridge.link.outflow import Outlet
from shmbroker.netbridge.link.peer import Identity, Service, Wish
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.proof import CHALLENGE_BYTES, Channel, FarEnd, NearEnd
from shmbroker.netbridge.security.stretched import KEY_BYTES, Stretched
from shmbroker.netbridge.simulation.cost.member import id_of
from shmbroker.netbridge.simulation.cost.tally import Tally
from shmbroker.netbridge.wire import codec
from shmbroker.netbridge.wire.words import Level, Role, Standing, TargetKind

TIMES: Final = LinkTimes()
DAY_MS: Final = 1_800_000_000_000
SECONDS: Final = 20
"""So long nothing is said."""


class QuietLink:
    def __init__(self, *, ships: bool) -> None:
        self.tally = Tally()
        self.now = 0.0
        keys = _keys()
        known = Credential("town", "town", (Role.CLUSTER,), (keys,))
        channel = Channel(bytes(KEY_BYTES), bytes(KEY_BYTES))
        challenge = bytes(CHALLENGE_BYTES)
        service = Service(frozenset({"main"}), frozenset({Role.CLUSTER}), frozenset({Role.CLUSTER}))
        near = Near(
            _named("broker-0000"), Wish("main", "cluster town", Role.CLUSTER, "town", 1),
            NearEnd(known, keys, channel, challenge), NearEnd(known, keys, channel, challenge),
        )  # fmt: skip
        there = FarEnd(Credentials((known,)), channel, challenge)
        far = Far(_named("broker-0001"), service, there, there)
        self._ends = Machine(TIMES, near, 0.0), Machine(TIMES, far, 0.0)
        if ships:
            node = id_of("node", "broker-0001")
            self._does(0, self._ends[0].open(
                Outlet(0, TargetKind.NODE, node.hex(), node, Level.DISK, 0, 0, 0, 0), 0.0
            ))  # fmt: skip
        for side in (1, 0):
            self._does(side, self._ends[side].connected(0.0))

    def _does(self, side: int, actions: Iterable[Action]) -> None:
        waiting = deque((side, each) for each in actions)
        while waiting:
            at, action = waiting.popleft()
            if isinstance(action, Send):
                message = codec.encode(action.frame, action.number)
                self.tally.sent(type(action.frame).__name__, len(message))
                number, frame = codec.decode(message, TIMES.max_frame_size)
                heard = self._ends[1 - at].received(number, frame, self.now, DAY_MS)
                waiting.extend((1 - at, each) for each in heard)
            elif isinstance(action, OpenSink):
                opened = self._ends[at].opened(
                    action.target, 0, 0, TIMES.max_message_size, self.now
                )
                waiting.extend((at, each) for each in opened)

    def waits(self, seconds: float) -> Tally:
        """What was said until then, and not before."""
        until = self.now + seconds
        while (due := min(each.deadline for each in self._ends)) <= until:
            self.now = max(self.now, due)
            for side, end in enumerate(self._ends):
                if end.deadline <= self.now:
                    self._does(side, end.tick(self.now))
        self.now = until
        told, self.tally = self.tally, Tally()
        return told


@cache
def _keys() -> Stretched:
    return Stretched("town", "correct horse battery")  # takes 100 ms


def _named(name: str) -> Identity:
    return Identity(id_of("node", name), id_of("process", name), name, Standing.LIVE, 1)
