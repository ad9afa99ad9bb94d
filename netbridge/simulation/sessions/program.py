"""A program on another host: it publishes, consumes, commits, and decides what is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shmbroker.netbridge.link.action import Action as LinkAction
from shmbroker.netbridge.link.action import Became, Heard
from shmbroker.netbridge.link.ending import Reason, State
from shmbroker.netbridge.link.handshake import Near
from shmbroker.netbridge.remote.action import (
    Action,
    Connect,
    Disconnect,
    Drop,
    Event,
    Finish,
    Go,
    Hand,
    Say,
    StopConnecting,
    Tell,
    Unmade,
)
from shmbroker.netbridge.remote.call import Call
from shmbroker.netbridge.remote.client import Client
from shmbroker.netbridge.remote.options import Mode, SessionOptions
from shmbroker.netbridge.remote.outcome import End, Outcome, Token, Why
from shmbroker.netbridge.remote.phase import OVER, Phase
from shmbroker.netbridge.simulation.end import ROUNDING_SECONDS, LinkEnd
from shmbroker.netbridge.simulation.history import History
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.sessions.broker import WORD
from shmbroker.netbridge.simulation.sessions.history import SessionHistory
from shmbroker.netbridge.simulation.world import Wrong
from shmbroker.netbridge.wire.frame import FRAME_BYTES_MIN
from shmbroker.netbridge.wire.words import Verb

PRODUCER, CONSUMER = 1, 2
STEP_SECONDS = 0.01, 0.12
LARGE_EACH = 40
MOVES_EACH = 40
LARGE_BYTES = 150 << 10
WINDOWS = (-1, 300, 4000)
DEADLINES = (-1, 0.0, 0.6, 30.0)
TIMEOUTS = (0.05, 1.0, 30.0)

Ending = Callable[[Outcome], None]


class ProgramEnd(LinkEnd):
    def __init__(self, host: Host, handshake: Near, history: History, program: Program) -> None:
        super().__init__(host, handshake, history)
        self.program = program

    def carry_out(self, action: LinkAction) -> None:
        client, clock = self.program.client, self.host.clock
        if isinstance(action, Heard):
            if self.program.end is self:
                self.program.does(client.received(action.frame, clock))
        elif isinstance(action, Became) and action.state is State.UP:
            peer = self.machine.handshake.peer
            if self.program.end is self and peer is not None:
                self.program.does(client.connected(clock, peer.node, peer.incarnation))
        else:
            super().carry_out(action)

    def has_ended(self, reason: Reason) -> None:
        if self.program.end is self:
            self.program.end = None
            self.program.does(self.program.client.lost(self.host.clock))


@dataclass(frozen=True, slots=True)
class InHand:
    message: int
    position: int
    generation: int
    delivery: int


@dataclass
class Program:
    host: Host
    history: SessionHistory
    connect: Callable[[], None]
    client: Client = field(init=False)
    end: ProgramEnd | None = None
    wants_link: bool = False
    is_draining: bool = False
    is_opening: bool = False
    messages: int = 0
    transaction: int = 0
    endings: dict[int, Ending] = field(default_factory=dict)
    in_hand: list[InHand] = field(default_factory=list)
    tokens: list[tuple[Token, Ending]] = field(default_factory=list)
    _ticks_at: float = float("inf")

    def __post_init__(self) -> None:
        random = self.host.world.random
        options = SessionOptions(
            failover_mode=random.choice(tuple(Mode)),
            reconnect_deadline=random.choice(DEADLINES),
            confirmation_window=random.choice(WINDOWS),
            frame_bytes=FRAME_BYTES_MIN,
        )
        self.client = Client(b"program." * 2, options)
        self.client.calls.together = self.client.calls.window  # calls wait for all others, too

    def begin(self) -> None:
        self.does(self.client.start(self.host.clock))
        self._produces()
        self._consumes()
        self._step()

    def _opened(self, verb: Verb, outcome: Outcome) -> None:
        """Whoever could not open it tries again."""
        if verb is Verb.CONSUMER:
            self.is_opening = False
        if outcome.end is End.OK:
            return
        again = self._produces if verb is Verb.PRODUCER else self._consumes
        self.host.later(0.2, again)

    def _produces(self) -> None:
        ending = lambda outcome: self._opened(Verb.PRODUCER, outcome)  # noqa: E731
        self.call(Verb.PRODUCER, ending, PRODUCER)

    def _consumes(self) -> None:
        if CONSUMER not in self.client.consumers and not self.is_opening:
            ending = lambda outcome: self._opened(Verb.CONSUMER, outcome)  # noqa: E731
            self.is_opening = True
            self.call(Verb.CONSUMER, ending, CONSUMER, value=4, timeout=60.0)

    # --- what its session does ----------------------------------------------------------------

    def does(self, actions: list[Action]) -> None:
        for action in actions:
            self._carry_out(action)
        due = self.client.deadline - self.host.jumped + ROUNDING_SECONDS
        if due < self._ticks_at:
            self._ticks_at = due
            self.host.at(due, self._tick)

    def _tick(self) -> None:
        self._ticks_at = float("inf")
        self.does(self.client.tick(self.host.clock))

    def _carry_out(self, action: Action) -> None:
        clock = self.host.clock
        if isinstance(action, Say):
            if self.end is not None:
                self.end.does(self.end.machine.say(action.frame, clock))
        elif isinstance(action, Disconnect):
            self.history.disconnects(action.why)
            self.host.world.tell(f"program: {action.why}")
            self.wants_link &= self.client.phase not in OVER
            if self.end is not None:
                self.end.does(self.end.machine.disconnected(clock))
        elif isinstance(action, Go):
            self._leaves()
            if self.end is not None:
                self.end.does(self.end.machine.disconnected(clock))
        elif isinstance(action, Connect):
            self.wants_link = True
            self.host.later(0, self.connect)
        elif isinstance(action, StopConnecting):
            self.wants_link = self.end is not None
        elif isinstance(action, Finish):
            self.endings.pop(action.call)(action.outcome)
        elif isinstance(action, Hand):
            self._hands(action)
        elif isinstance(action, Drop):
            if self.host.world.random.randrange(2):  # or acknowledge what is not its any more
                self.in_hand.clear()
        elif isinstance(action, Tell):
            self._tells(action.event)
        elif isinstance(action, Unmade):
            raise Wrong(f"{action.target} was not made again: {action.error}")

    def _tells(self, event: Event) -> None:
        self.host.world.tell(f"program: {event.value}")
        self.history.tells(event)
        if event in (Event.LOST, Event.REFUSED, Event.FAILOVER_FAILED, Event.MOVED):
            self.host.later(self.host.world.between(0, 0.3), self._reconnect)

    def _reconnect(self) -> None:
        self.does(self.client.reconnect(self.host.clock))
        self._consumes()

    def _hands(self, action: Hand) -> None:
        message, position = WORD.unpack_from(action.body)
        self.history.hands(message)
        self.in_hand.append(InHand(message, position, action.generation, action.first))

    def call(
        self,
        verb: Verb,
        ending: Ending,
        target: int = 0,
        *,
        value: int = 0,
        count: int = 1,
        body: bytes = b"",
        generation: int = 0,
        timeout: float | None = None,
    ) -> int:
        self.history.calls += 1
        id = self.client.next_id()
        self.endings[id] = ending
        call = Call(id, verb, target, value, count, body, generation=generation)
        self.does(self.client.call(call, self.host.clock, timeout))
        return id

    # --- what it does -------------------------------------------------------------------------

    def _step(self) -> None:
        random = self.host.world.random
        if self.is_draining:
            self._drains()
        else:
            random.choice((self._publish, self._publish, self._ack, self._ack, self._ack_twice,
                           self._get, self._give_back, self._commit, self._retry))()  # fmt: skip
            if random.randrange(MOVES_EACH) == 0:
                self._moves()
        self.host.later(self.host.world.between(*STEP_SECONDS), self._step)

    def _moves(self) -> None:
        """To the same broker, where its session is another one."""
        self.does(self.client.move("west", "west", (), self.host.clock))

    def _leaves(self) -> None:
        """For another broker, which knows nothing of what this one was told."""
        self.history.left += 1
        calls = (*self.client.calls.sent.values(), *self.client.calls.waiting)
        again = [each for each in calls if each.repeated and each.verb is not Verb.GET]
        kept = [each for each in self.in_hand if each.generation == self.client.generation - 1]
        if again or kept:
            raise Wrong(f"it leaves with {again} that were said, and with {kept} in hand")

    def _drains(self) -> None:
        if self.client.phase is Phase.LOST:
            return
        self._consumes()
        self._retry()
        for _ in range(3):
            self._ack()

    def _timeout(self) -> float | None:
        return None if self.is_draining else self.host.world.random.choice((None, *TIMEOUTS))

    def _next(self) -> int:
        self.messages += 1
        return self.messages

    def _publish(self) -> None:
        random = self.host.world.random
        if PRODUCER not in self.client.producers:
            return
        messages = [self._next() for _ in range(random.choice((1, 1, 3)))]
        body = b"".join(WORD.pack(message, 0) for message in messages)
        if random.randrange(LARGE_EACH) == 0:
            body += bytes(LARGE_BYTES)
        self.history.published.update(dict.fromkeys(messages))

        def ended(outcome: Outcome) -> None:
            self.history.published.update(dict.fromkeys(messages, outcome.end))
            if outcome.end is End.UNKNOWN:
                if outcome.token is None:
                    raise Wrong(f"messages {messages} are unknown, and have no token")
                self.tokens.append((outcome.token, ended))

        count = len(messages)
        id = self.call(
            Verb.PUBLISH, ended, PRODUCER, count=count, body=body, timeout=self._timeout()
        )
        if random.randrange(6) == 0:
            call = self.client.calls.find(id)
            if call is not None:  # it is late at once
                self.client.calls.wait_again(call, self.host.clock)
            self.does(self.client.tick(self.host.clock))
            self._retry()

    def _retry(self) -> None:
        if not self.tokens or PRODUCER not in self.client.producers:
            return
        if self.client.phase is not Phase.UP:
            return
        self.history.retries += 1
        token, ended = self.tokens.pop(self.host.world.random.randrange(len(self.tokens)))
        id = self.client.next_id()
        self.endings[id] = ended
        self.does(self.client.retry(token, id, self.host.clock))

    def _pick(self) -> InHand | None:
        if not self.in_hand:
            return None
        return self.in_hand.pop(self.host.world.random.randrange(len(self.in_hand)))

    def _ack(self) -> None:
        self._acks(self._pick(), 1)

    def _ack_twice(self) -> None:
        self._acks(self._pick(), 2)

    def _acks(self, picked: InHand | None, times: int) -> None:
        if picked is None:
            return
        for time in range(times):

            def ended(outcome: Outcome, time: int = time) -> None:
                if outcome.end is End.OK:
                    self.history.acks(picked.message, (picked.generation, picked.delivery))
                if time and (outcome.end, outcome.why) != (End.FAILED, Why.DEALT_WITH):
                    if outcome.why is not Why.REVOKED:
                        raise Wrong(f"{picked} was acknowledged twice: {outcome}")

            self._settles(Verb.ACK, picked, ended)

    def _settles(self, verb: Verb, picked: InHand, ending: Ending) -> None:
        body = WORD.pack(picked.message, picked.position)
        self.call(
            verb, ending, value=picked.delivery, body=body, generation=picked.generation,
            timeout=60.0,
        )  # fmt: skip

    def _give_back(self) -> None:
        picked = self._pick()
        if picked is not None:
            self._settles(Verb.GIVE_BACK, picked, lambda outcome: None)

    def _get(self) -> None:
        def ended(outcome: Outcome) -> None:
            if outcome.end is End.OK and outcome.code:
                message, position = WORD.unpack_from(outcome.body)
                self.history.hands(message)
                generation = self.client.generation
                self.in_hand.append(InHand(message, position, generation, outcome.value))

        id = self.call(Verb.GET, ended, timeout=self._timeout())
        if self.host.world.random.randrange(3) == 0:
            self.does(self.client.cancel(id, self.host.clock))

    def _commit(self) -> None:
        if self.client.phase is Phase.LOST:
            return
        self.transaction += 1
        transaction = self.transaction
        messages = [self._next(), self._next()]
        self.history.sets[transaction] = messages, None
        self.client.work(transaction)

        def ended(outcome: Outcome) -> None:
            self.history.sets[transaction] = messages, outcome.end

        def commits() -> None:
            body = b"".join(WORD.pack(message, 0) for message in messages)
            self.call(Verb.COMMIT, ended, value=transaction, body=body, timeout=60.0)

        self.host.later(self.host.world.between(0, 0.1), commits)

    @property
    def is_at_rest(self) -> bool:
        calls = [call for call in self.client.calls.sent.values() if not call.is_abandoned]
        return not (self.in_hand or self.tokens or calls or self.client.calls.waiting)
