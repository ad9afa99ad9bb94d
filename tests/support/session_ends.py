"""Both ends of a session in one process: what one says the other hears at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shmbroker.core.layout import RECORD_HEAD_BYTES
from shmbroker.netbridge.remote.action import (
    Action,
    Disconnect,
    Finish,
    GiveBack,
    Hand,
    Perform,
    Say,
    Tell,
)
from shmbroker.netbridge.remote.call import Call
from shmbroker.netbridge.remote.client import Client
from shmbroker.netbridge.remote.options import Mode, SessionOptions
from shmbroker.netbridge.remote.outcome import Outcome
from shmbroker.netbridge.remote.session import Session, SessionLimits
from shmbroker.netbridge.remote.sessions import Sessions
from shmbroker.netbridge.wire.codec import decode, encode
from shmbroker.netbridge.wire.frame import FRAME_BYTES_MIN, Command, Frame
from shmbroker.netbridge.wire.words import Verb

Kind = TypeVar("Kind")
LIMITS = SessionLimits(ttl=5.0, frame_bytes=FRAME_BYTES_MIN)
STANDING = (Verb.PRODUCER, Verb.CONSUMER, Verb.TEMPORARY_QUEUE)


def options(mode: Mode = Mode.AUTOMATIC, **more: Any) -> SessionOptions:
    more.setdefault("frame_bytes", FRAME_BYTES_MIN)
    return SessionOptions(failover_mode=mode, **more)


@dataclass
class Ends:
    client: Client
    sessions: Sessions = field(default_factory=lambda: Sessions(LIMITS))
    now: float = 0.0
    link: int = 0
    is_up: bool = False
    loses_to_broker: bool = False
    """What the program says does not arrive."""
    opens: int = 0
    """What is answered to who opens something."""
    body: bytes = b""
    """With it."""
    loses_to_program: bool = False
    did: list[Action] = field(default_factory=list)
    broker_did: list[Action] = field(default_factory=list)
    performed: list[Command] = field(default_factory=list)
    _waiting: deque[tuple[bool, Frame]] = field(default_factory=deque)
    _is_busy: bool = False

    def connect(self, node: bytes = b"", process: bytes = b"") -> Ends:
        self.link += 1
        self.is_up = True
        self.loses_to_broker = self.loses_to_program = False
        self.does(self.client.connected(self.now, node, process))
        return self

    def does(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.did.append(action)
            if isinstance(action, Say) and self.is_up and not self.loses_to_broker:
                self._waiting.append((True, action.frame))
        self._carry()

    def broker_does(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.broker_did.append(action)
            if isinstance(action, Perform):
                self.performed.append(action.command)
                if action.command.verb in STANDING:
                    self.broker_does(
                        self.session.done(action.command.number, self.opens, body=self.body)
                    )
            elif isinstance(action, Say) and self.is_up and not self.loses_to_program:
                self._waiting.append((False, action.frame))
        self._carry()

    def _carry(self) -> None:
        if self._is_busy:
            return
        self._is_busy = True
        while self._waiting:
            to_broker, frame = self._waiting.popleft()
            _, frame = decode(encode(frame, 0), FRAME_BYTES_MIN)
            if to_broker:
                for _, _, actions in self.sessions.received(self.link, frame, self.now):
                    self.broker_does(actions)
            else:
                self.does(self.client.received(frame, self.now))
        self._is_busy = False

    def cut(self) -> None:
        """The link is gone, and both ends are told."""
        self.is_up = False
        self._waiting.clear()
        self.does(self.client.lost(self.now))
        for _, _, actions in self.sessions.detached(self.link, self.now):
            self.broker_does(actions)

    def broker_dies(self) -> None:
        self.is_up = False
        self.sessions = Sessions(LIMITS)
        self.performed.clear()
        self.does(self.client.lost(self.now))

    @property
    def session(self) -> Session:
        (only,) = self.sessions.by_id.values()
        return only

    # --- what a program does ------------------------------------------------------------------

    def call(self, verb: Verb, timeout: float | None = None, **fields: Any) -> int:
        number = self.client.next_id()
        self.does(self.client.call(Call(number, verb, **fields), self.now, timeout))
        return number

    def outcome(self, call: int) -> Outcome | None:
        """How it has ended: once at most."""
        ended = [each.outcome for each in self.of(Finish) if each.call == call]
        assert len(ended) <= 1
        return ended[0] if ended else None

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self.did if isinstance(each, kind)]

    def of_broker(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self.broker_did if isinstance(each, kind)]

    def events(self) -> list[str]:
        return [each.event.value for each in self.of(Tell)]

    # --- what a broker does -------------------------------------------------------------------

    def answer(self, command: Command, code: int = 0, **told: Any) -> None:
        if messages := told.get("takes"):
            told["body"] = record(told.get("body", b""), messages)
        self.broker_does(self.session.done(command.number, code, **told))

    def deliver(self, consumer: int, messages: int = 1, body: bytes = b"m") -> None:
        self.broker_does(self.session.deliver(consumer, messages, record(body, messages)))

    def given_back(self) -> list[int]:
        return [each for back in self.of_broker(GiveBack) for each in back.deliveries]

    def handed(self) -> list[Hand]:
        return self.of(Hand)

    def broken(self) -> list[str]:
        return [each.why for each in (*self.of(Disconnect), *self.of_broker(Disconnect))]


def record(body: bytes, messages: int = 1) -> bytes:
    """As long as so many records are at least."""
    return body.ljust(messages * RECORD_HEAD_BYTES, b"\0")


def ends(mode: Mode = Mode.AUTOMATIC, **more: Any) -> Ends:
    """A session that is up."""
    made = Ends(Client(b"s" * 16, options(mode, **more)))
    made.does(made.client.start(0.0))
    return made.connect()


def consuming(prefetch: int = 4, **more: Any) -> Ends:
    of = ends(**more)
    of.call(Verb.CONSUMER, target=2, value=prefetch)
    of.performed.clear()
    return of
