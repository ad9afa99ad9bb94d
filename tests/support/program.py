"""A program on another host: the pure machine of its end of a session, over a real socket.

It has no thread of its own: whoever waits for something drives it.
"""

from __future__ import annotations

import itertools
import os
import secrets
import time
from collections.abc import Callable
from typing import Any

import zmq

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.journal.stored import stored
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.monitor import LOST, Event, Monitor
from shmbroker.netbridge.carrier.socket import Received, dealer, whole
from shmbroker.netbridge.link.ending import Ending, State
from shmbroker.netbridge.link.handshake import Near
from shmbroker.netbridge.link.machine import Machine
from shmbroker.netbridge.link.peer import Identity, Wish
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.remote.action import (
    Action,
    Connect,
    Disconnect,
    Finish,
    Hand,
    Say,
    Tell,
    Unmade,
)
from shmbroker.netbridge.remote.body import asked, raised, told
from shmbroker.netbridge.remote.call import Call
from shmbroker.netbridge.remote.client import Client
from shmbroker.netbridge.remote.options import SessionOptions
from shmbroker.netbridge.remote.outcome import Outcome
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.security.curve import new_pair, public_of
from shmbroker.netbridge.security.proof import CHALLENGE_BYTES, Channel, NearEnd
from shmbroker.netbridge.wire.frame import Body, Frame
from shmbroker.netbridge.wire.words import Role, Standing, Verb
from tests.support.records import stream

PATIENCE = 60.0
AGAIN_SECONDS = 0.02


class Program:
    def __init__(
        self,
        port: int,
        credential: Credential,
        *,
        options: SessionOptions | None = None,
        role: Role = Role.CLIENT,
        name: str = "program",
        times: LinkTimes | None = None,
        session: bytes | None = None,
    ) -> None:
        self.client = Client(session or secrets.token_bytes(16), options or SessionOptions())
        self.outcomes: dict[int, Outcome] = {}
        self.hands: list[Hand] = []
        self.events: list[str] = []
        self.unmade: list[Unmade] = []
        self.endings: list[Ending] = []
        self._port, self._credential, self._role = port, credential, role
        self._ours = Identity(os.urandom(16), os.urandom(16), name, Standing.NONE, 0)
        self._times = times or LinkTimes()
        self._context: zmq.Context[Any] = zmq.Context()
        self._attempts = itertools.count(1)
        self._socket: Any = None
        self._monitor: Monitor | None = None
        self._end: End | None = None
        self._connects_at = float("inf")
        self._targets = itertools.count(1)
        self._does(self.client.start(time.monotonic()))

    # --- what a test says ---------------------------------------------------------------------

    def begin(self, verb: Verb, timeout: float | None = None, **fields: Any) -> int:
        call = Call(self.client.next_id(), verb, **fields)
        self._does(self.client.call(call, time.monotonic(), timeout))
        return call.id

    def call(self, verb: Verb, **fields: Any) -> Outcome:
        return self.outcome(self.begin(verb, **fields))

    def outcome(self, call: int) -> Outcome:
        self.until(lambda: call in self.outcomes)
        return self.outcomes[call]

    def ask(self, verb: Verb, target: int = 0, **fields: Any) -> Outcome:
        """A verb with a map; raises what the broker refuses."""
        return ok(self.call(verb, target=target, body=asked(**fields)))

    def retry(self, outcome: Outcome) -> Outcome:
        """Of a publish that is unknown."""
        assert outcome.token is not None
        call = self.client.next_id()
        self._does(self.client.retry(outcome.token, call, time.monotonic()))
        return self.outcome(call)

    def reconnect(self) -> Program:
        """As often as it takes until there is a broker."""

        def is_up() -> bool:
            if self.client.phase is Phase.LOST:
                self._does(self.client.reconnect(time.monotonic()))
            return self.client.phase is Phase.UP

        self.until(is_up)
        return self

    def producer(self, **to: Any) -> int:
        target = next(self._targets)
        self.ask(Verb.PRODUCER, target, **to)
        return target

    def publish(self, producer: int, *bodies: bytes, **fields: Any) -> Outcome:
        return ok(self.call(Verb.PUBLISH, **publish(producer, *bodies), **fields))

    def consumer(self, prefetch: int, **of: Any) -> int:
        target = next(self._targets)
        ok(self.call(Verb.CONSUMER, target=target, value=prefetch, body=asked(**of)))
        return target

    def get(
        self, queue: str, count: int = 1, wait: float = 0, **of: Any
    ) -> tuple[int, list[bytes]]:
        """The number of the first delivery, and the bodies."""
        outcome = ok(
            self.call(
                Verb.GET, count=count, wait_ms=int(wait * 1000), body=asked(queue=queue, **of)
            )
        )
        return outcome.value, bodies(outcome.body)

    def settle(self, verb: Verb, first: int, count: int = 1, **place: Any) -> Outcome:
        generation = self.client.generation
        return self.call(verb, value=first, count=count, generation=generation, body=asked(**place))

    def handed(self, count: int) -> list[bytes]:
        """Wait for so many messages in all."""
        self.until(lambda: sum(hand.messages for hand in self.hands) >= count)
        return [body for hand in self.hands for body in bodies(hand.body)]

    def until(self, holds: Callable[[], bool], patience: float = PATIENCE) -> None:
        late = time.monotonic() + patience
        while not holds():
            if time.monotonic() > late:
                raise AssertionError(f"{self.client.phase}, {self.events}, {self.endings}")
            self.turn(0.05)

    def up(self) -> Program:
        self.until(lambda: self.client.phase is Phase.UP)
        return self

    def close(self) -> None:
        self._does(self.client.close(time.monotonic()))
        self.until(lambda: self.client.phase in (Phase.CLOSED, Phase.LOST))
        self.vanish()

    def vanish(self) -> None:
        """As if it had been killed."""
        self.cut()
        self._context.destroy(linger=0)

    def cut(self) -> None:
        """The connection breaks, for both ends."""
        if self._socket is not None and self._monitor is not None:
            self._monitor.close()
            self._socket.close(linger=0)
            self._socket = self._monitor = self._end = None

    # --- the socket ---------------------------------------------------------------------------

    def turn(self, seconds: float) -> None:
        now = time.monotonic()
        if now >= self._connects_at:
            self._connect()
        if self._socket is None:
            time.sleep(min(seconds, AGAIN_SECONDS))
        else:
            self._poll(seconds)
        now = time.monotonic()
        if self._end is not None and self._end.due <= now:
            self._end.woken(now)
        if self.client.deadline <= now:
            self._does(self.client.tick(now))

    def _poll(self, seconds: float) -> None:
        assert self._monitor is not None
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor.socket, zmq.POLLIN)
        for _ in poller.poll(seconds * 1000):
            self._take()
            for event, _ in list(self._monitor.events()) if self._monitor else []:
                if event is Event.SECURED and self._end is not None:
                    self._end.connected()
                elif event in LOST and self._end is not None:
                    self._take()
                    self.lost()
                    return

    def _take(self) -> None:
        while self._socket is not None and self._end is not None:
            parts = Received(self._socket).next()
            if not parts:
                return
            self._end.arrived(whole(parts))

    def _connect(self) -> None:
        self.cut()
        self._connects_at = float("inf")
        keys = self._credential.keys[0]
        pair, far = new_pair(), public_of(keys.listening)
        channel = Channel(pair[0], far)
        proofs = NearEnd(self._credential, keys, channel, secrets.token_bytes(CHALLENGE_BYTES))
        wish = Wish("/", "session", self._role, self._credential.user, next(self._attempts))
        near = Near(self._ours, wish, proofs, proofs)
        thread: Any = None
        self._end = End(thread, Machine(self._times, near, time.monotonic()), self)
        self._socket = dealer(self._context, self._times, "", pair, far)
        self._monitor = Monitor(self._socket)
        self._socket.connect(f"tcp://127.0.0.1:{self._port}")

    def lost(self) -> None:
        """The link has ended."""
        self.cut()
        self._does(self.client.lost(time.monotonic()))
        if self.client.phase is Phase.CONNECTING:
            self._connects_at = time.monotonic() + AGAIN_SECONDS

    # --- the session --------------------------------------------------------------------------

    def _does(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Say) and self._end is not None:
                self._end.does(self._end.machine.say(action.frame, time.monotonic()))
            elif isinstance(action, Disconnect) and self._end is not None:
                self._end.does(self._end.machine.disconnected(time.monotonic()))
            elif isinstance(action, Connect):
                self._connects_at = time.monotonic()
            elif isinstance(action, Finish):
                assert action.call not in self.outcomes
                self.outcomes[action.call] = action.outcome
            elif isinstance(action, Hand):
                self.hands.append(action)
            elif isinstance(action, Tell):
                self.events.append(action.event.value)
            elif isinstance(action, Unmade):
                self.unmade.append(action)

    # --- of its end ---------------------------------------------------------------------------

    def wakes(self, end: End) -> None:
        """It is asked in each turn."""

    def send(self, end: End, message: bytes) -> bool:
        try:
            if self._socket is not None:
                self._socket.send(message, zmq.NOBLOCK)
        except zmq.Again:  # the connection is gone
            return False
        return self._socket is not None

    def became(self, end: End, state: State) -> None:
        if state is State.UP:
            self._does(self.client.connected(time.monotonic()))

    def waits(self, end: End, live: str) -> None:
        """No member is passive here."""

    def ended(self, end: End, how: Ending) -> None:
        self.endings.append(how)
        if end is self._end:
            self.lost()

    def heard(self, end: End, frame: Frame) -> None:
        self._does(self.client.received(frame, time.monotonic()))

    def told(self, what: str, detail: str) -> None:
        self.events.append(f"{what}: {detail}")


def publish(producer: int, *contents: bytes, **more: Any) -> dict[str, Any]:
    """The fields of a publish."""
    return {"target": producer, "count": len(contents), "body": stream(contents, **more)}


def ok(outcome: Outcome) -> Outcome:
    if outcome.code < 0:
        raise raised(outcome.code, outcome.body)
    if outcome.end.value != "ok":
        raise Error(f"{outcome.end.value}: {outcome.why.value}")
    return outcome


def bodies(records: Body) -> list[bytes]:
    return [body_of(bytes(each.body)) for each in stored(memoryview(records))]


def body_of(chunk: bytes) -> bytes:
    length = int.from_bytes(chunk[:8], "little") >> 32
    return chunk[len(chunk) - length :] if length else b""


def answered(outcome: Outcome) -> dict[str, Any]:
    return told(outcome.body)
