"""The program's end of a session: events and a time in, actions out.

    IDLE --start--> CONNECTING --a link is up--> ATTACHING --attached--> REMAKING --made--> UP
    UP, ATTACHING, REMAKING --the link is lost--> CONNECTING
    any --the deadline, or, where the program decides itself, a loss--> LOST --reconnect--> ...

A session that its broker does not know any more is made again with the next generation.  A call is
kept until it is answered; what becomes of it at a loss is in `fate.py`.
"""

from __future__ import annotations

from typing import Final

from shmbroker.core.codes import REVOKED
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.netbridge.remote.action import (
    Action,
    Connect,
    Disconnect,
    Drop,
    Event,
    Finish,
    Hand,
    Say,
    StopConnecting,
    Tell,
    Unmade,
)
from shmbroker.netbridge.remote.answers import Answers, malformed
from shmbroker.netbridge.remote.body import numbers_of, why_ended
from shmbroker.netbridge.remote.broken import SessionBroken
from shmbroker.netbridge.remote.call import MADE_AGAIN, NEVER, OF_DELIVERIES, Call, Many
from shmbroker.netbridge.remote.calls import Calls
from shmbroker.netbridge.remote.closing import Closing
from shmbroker.netbridge.remote.doubt import Doubt
from shmbroker.netbridge.remote.fate import Fate, remade_at
from shmbroker.netbridge.remote.moving import Moving
from shmbroker.netbridge.remote.options import NO_LIMIT, Mode, SessionOptions
from shmbroker.netbridge.remote.outcome import End, Outcome, Token, Why
from shmbroker.netbridge.remote.parts import Assembly, parted
from shmbroker.netbridge.remote.phase import OVER, RECOVERING, Phase
from shmbroker.netbridge.remote.prefetched import Prefetched
from shmbroker.netbridge.remote.producing import Producing
from shmbroker.netbridge.remote.standing import made_again
from shmbroker.netbridge.remote.travelling import Travelling
from shmbroker.netbridge.remote.voided import Voided
from shmbroker.netbridge.wire.frame import Attach, Attached, Body, Delivery, Frame, Result, Seen
from shmbroker.netbridge.wire.words import Verb

WAITING_MEMORY: Final = 64 << 20


class Client:
    def __init__(self, session: bytes, options: SessionOptions) -> None:
        self.session = session
        self.options = options
        self.phase = Phase.IDLE
        self.generation = 1
        """Of the session; deliveries and transactions are those of one generation."""
        self.attempt, self.node, self.process = 0, b"", b""
        self.seen = self.ids = 0
        self.has_session = False
        """A broker has made one of this generation, and may have it still."""
        self.resumes = False
        self.was_up = self.is_recovering = False
        self.until = NEVER
        """Of a recovery."""
        self.calls = Calls(options.confirmation_window, WAITING_MEMORY)
        self.standing: dict[int, Call] = {}
        self.producers: dict[int, Producing] = {}
        self.doubt = Doubt(self.producers)
        self.voided = Voided(self)
        self.consumers: dict[int, Prefetched] = {}
        self.in_hand: dict[int, Prefetched | None] = {}
        """By delivery: whose it is."""
        self.settling: set[int] = set()
        self.travelling = Travelling(self)
        self.assembly = Assembly(options.message_bytes)
        self.unsaid = 0
        self.moving, self.closing, self.answers = Moving(self), Closing(self), Answers(self)
        self.now = 0.0
        """When something was called, or has come, or was due."""
        self.did: list[Action] = []

    # --- its life -----------------------------------------------------------------------------

    def start(self, now: float) -> list[Action]:
        self._connects(now)
        return self._done()

    def reconnect(self, now: float) -> list[Action]:
        """After everything was given up: another session, in which the producers go on."""
        if self.phase is Phase.LOST:
            self._connects(now)
        return self._done()

    def connected(self, now: float, node: bytes = b"", process: bytes = b"") -> list[Action]:
        """A link is up, to this node; another process of it than before has no session of ours."""
        if self.phase is Phase.CONNECTING:
            self.node, self.phase = node, Phase.ATTACHING
            self.assembly.clear()
            is_another, self.process = self.process not in (b"", process), process
            self._attach(is_gone=is_another)
        return self._done()

    def lost(self, now: float, kind: Event = Event.LOST, detail: str = "") -> list[Action]:
        """The link has ended; one that was never up is an attempt, and its plan tries again."""
        if self.phase in OVER or self.phase is Phase.CONNECTING:
            return self._done()
        self.moving.lost()
        if self.options.failover_mode is Mode.APPLICATION:
            self.gives_up(kind, detail)
            return self._done()
        if kind is Event.MOVED:
            self.did.append(Tell(Event.MOVING, detail))
        self.closing.loses(now)
        self.recovers(now)
        return self._done()

    def unreachable(self, now: float, why: str = "") -> list[Action]:
        """No member could be reached, and that is not tried again."""
        if self.phase is Phase.CONNECTING:
            self.gives_up(Event.FAILOVER_FAILED, why)
        return self._done()

    def move(self, uri: str, former: str, uses: tuple[bytes, ...], now: float) -> list[Action]:
        """The broker asks for it."""
        self.moving.asked(uri, former, uses, now)
        return self._done()

    def abandon(self) -> list[Action]:
        """At once, whatever is on its way."""
        if self.phase not in OVER:
            self.gives_up(Event.CLOSED)
        self.phase = Phase.CLOSED
        return self._done()

    def received(self, frame: Frame, now: float) -> list[Action]:
        self.now = now
        try:
            self._received(frame, now)
        except SessionBroken as error:
            self.did.append(Disconnect(str(error)))
        self.moving.look(now)
        return self._done()

    def tick(self, now: float) -> list[Action]:
        self.now = now
        if self.phase in RECOVERING and now >= self.until:
            self.gives_up(Event.FAILOVER_FAILED, "reconnect-deadline")
        for call in self.calls.late(now):
            self.voided.abandon(call, Why.LATE)
        self.closing.look(now)
        self.moving.look(now)
        return self._done()

    @property
    def deadline(self) -> float:
        until = self.until if self.phase in RECOVERING else NEVER
        return min(until, self.calls.deadline, self.moving.due, self.closing.due)

    def close(self, now: float) -> list[Action]:
        """In good order, behind all that was called before."""
        if self.phase in OVER:
            self.phase = Phase.CLOSED
        else:
            self.closing.begin(now)
            self._call(Call(self.next_id(), Verb.END, is_internal=True), now)
        return self._done()

    # --- calls --------------------------------------------------------------------------------

    def call(self, call: Call, now: float, timeout: float | None = None) -> list[Action]:
        """Say it; the program gave it its id by `next_id`."""
        self.now = now
        call.until = now + self._patience(timeout)
        if call.verb is Verb.PUBLISH:
            call.begins_to_wait(now)
        if (many := call.many) is not None:
            call.is_behind, many.has_begun = many.has_begun, True
            if (failed := many.failed) is not None:
                is_new = not call.repeated
                self.finish(call, failed if is_new else self.doubt.given_up(call, failed.why))
                return self._done()
        self._call(call, now)
        return self._done()

    def cancel(self, id: int, now: float) -> list[Action]:
        self.now = now
        call = self.calls.find(id)
        if call is not None:
            self.voided.abandon(call, Why.CANCELLED)
        return self._done()

    def retry(
        self, token: Token, id: int, now: float, many: Many | None = None,
        wait_ms: int | None = None, timeout: float | None = None,
    ) -> list[Action]:  # fmt: skip
        """Publish what may have been published: once, whatever had become of it."""
        first, told = self.doubt.of(token), self.doubt.known.get(token)
        on_its_way = first and self.calls.on_its_way(first)
        if told is not None or first is None or (on_its_way and not on_its_way.is_abandoned):
            nobody_knows = Outcome(End.UNKNOWN, Why.LATE, token=token)
            self.did.append(Finish(id, told or nobody_knows))
            return self._done()
        if on_its_way:  # to send it twice could have it refused, and done
            on_its_way.id = id
            on_its_way.waits_again(now, wait_ms)
            self.calls.wait_again(on_its_way, now + self._patience(timeout))
            return self._done()
        again = first.again(id, wait_ms)
        again.many = many
        return self.call(again, now, timeout)

    def work(self, number: int, deliveries: list[int] | None = None, generation: int = 0) -> None:
        """Something was done in a transaction since its last commit; 0: in this session."""
        self.travelling.begun(number, [] if deliveries is None else deliveries, generation)

    def want(self, consumer: int, messages: int) -> list[Action]:
        """Of a consumer without prefetch: so many more."""
        flow = self.consumers.get(consumer)
        if flow is not None and self.phase is Phase.UP:
            flow.wanted += messages
            self._say(flow.telling())
        return self._done()

    def _patience(self, timeout: float | None) -> float:
        if timeout is not None:
            return timeout
        options = self.options
        limit = options.call_timeout if self.phase is Phase.UP else options.call_failover_timeout
        return NEVER if limit == NO_LIMIT else limit

    def _call(self, call: Call, now: float) -> None:
        if call.verb is Verb.COMMIT and not call.repeated and not self.travelling.may_commit(call):
            return
        if call.verb in OF_DELIVERIES and not self._may_settle(call):
            return
        if self.phase in OVER or self.closing.refuses(call):
            self.finish(call, self.doubt.given_up(call, Why.CLOSED))
            return
        if call.verb is Verb.LEAVE:
            self.leave(call.target)
        self.calls.put(call)
        self.pump()

    def next_id(self) -> int:
        self.ids += 1
        return self.ids

    def _may_settle(self, call: Call) -> bool:
        """Each delivery once, and in the session that it came in."""
        numbers = call.numbers
        why = Why.DONE
        if not self.travelling.is_ours(call):
            why = Why.REVOKED
        elif any(each not in self.in_hand or each in self.settling for each in numbers):
            why = Why.DEALT_WITH
        if why is not Why.DONE:
            self.did.append(Finish(call.id, Outcome(End.FAILED, why, REVOKED)))
            return False
        self.settling.update(numbers)
        return True

    def leave(self, target: int) -> None:
        """A producer of which something is unknown stays one of the sessions to come."""
        self.consumers.pop(target, None)
        producing = self.producers.get(target)
        if producing is not None:
            producing.is_open, producing.is_left = False, True
        if producing is None or not (producing.unknown or self.calls.is_said_again(target)):
            self.standing.pop(target, None)
            self.producers.pop(target, None)

    # --- connecting ---------------------------------------------------------------------------

    def _connects(self, now: float) -> None:
        self.phase = Phase.CONNECTING
        limit = self.options.reconnect_deadline or self.options.call_timeout
        self.until = NEVER if limit == NO_LIMIT else now + limit
        self.did.append(Connect())

    def recovers(self, now: float) -> None:
        if self.is_recovering or not self.was_up:
            self.phase = Phase.CONNECTING
            self.did.append(Connect())
            return
        self.is_recovering = True
        self.did.append(Tell(Event.FAILURE_DETECTED))
        if self.options.reconnect_deadline == 0:
            self.gives_up(Event.FAILOVER_FAILED)
        else:
            self._connects(now)

    def _attach(self, *, is_gone: bool = False) -> None:
        window = self.options.confirmation_window
        if self.has_session and (is_gone or window == NO_LIMIT):
            self._remake()
        self.resumes = self.has_session
        self.attempt += 1
        self._say(
            Attach(self.session, self.generation, self.attempt, self.resumes, self.seen, window)
        )

    def _attached(self, frame: Attached) -> None:
        if self.phase is not Phase.ATTACHING or (frame.resumed and not self.resumes):
            raise SessionBroken("a session is attached that was not asked for")
        if frame.resumed:
            self._reattached(frame)
        elif self.resumes:
            self._remake()
            self._attach()
        elif frame.seen:
            raise SessionBroken("a new session knows commands")
        else:
            self.has_session = True
            self.phase = Phase.REMAKING
            if not self.moving.looks_first():
                self.make_again()

    def _reattached(self, frame: Attached) -> None:
        if frame.seen > self.calls.next:
            raise SessionBroken(f"{frame.seen} commands were seen, {self.calls.next} were said")
        self.phase = Phase.REMAKING
        for number, call in self.calls.sent.items():
            if number >= frame.seen:
                self._say_call(call)
        self.tells_credit()
        self.pump()
        self.look_whether_made(Event.REATTACHED)

    def tells_credit(self) -> None:
        for consumer in self.consumers.values():
            self._say(consumer.telling())

    # --- the session is made again ------------------------------------------------------------

    def _remake(self) -> None:
        """The broker has nothing of the session any more."""
        self.moving.remade()
        self.travelling.ends()
        self.next_generation()
        for call in self.doubt.forgets(self.calls.withdraw()):
            is_made_again = call.is_internal and call.verb in MADE_AGAIN
            if call.is_abandoned or is_made_again or call is self.moving.end:
                continue
            what = remade_at(self.node, call)
            if self.travelling.takes(call) or what in (Fate.AGAIN, Fate.ASKED):
                self.calls.put(call)
            else:
                self.finish(call, self.doubt.unanswered(call, what, Why.CLOSED))
        for consumer in self.consumers.values():
            consumer.again()
            self.did.append(Drop(consumer.target))

    def next_generation(self) -> None:
        self.generation += 1
        self.has_session = False
        self.seen = self.unsaid = 0
        self.in_hand.clear()
        self.settling.clear()
        self.assembly.clear()

    def make_again(self) -> None:
        for target in [target for target, each in self.producers.items() if each.is_left]:
            self.leave(target)
        waiting = list(self.calls.waiting)
        self.calls.waiting.clear()
        if (asks := self.travelling.asks()) is not None:
            self.calls.put(asks)
        for call in made_again(self, waiting):
            self.calls.put(call)
        self.calls.waiting.extend(waiting)
        self.pump()
        self.look_whether_made(Event.FAILOVER_COMPLETED)

    def look_whether_made(self, event: Event) -> None:
        if self.phase is not Phase.REMAKING or self._is_making:
            return
        self.phase = Phase.UP
        self.closing.hears(self.now)
        self.until = NEVER
        self.did.append(StopConnecting())
        if self.is_recovering:
            self.did.append(Tell(event))
        self.is_recovering, self.was_up = False, True
        self.pump()

    @property
    def _is_making(self) -> bool:
        calls = (*self.calls.sent.values(), *self.calls.waiting)
        return any(call.is_internal and call.verb in MADE_AGAIN for call in calls)

    # --- giving up ----------------------------------------------------------------------------

    def gives_up(self, event: Event, detail: str = "") -> None:
        self.lets_go()
        self.standing = {
            each.target: each for each in self.standing.values() if each.verb is Verb.PRODUCER
        }
        if event is Event.FAILOVER_FAILED and not self.is_recovering:
            event = Event.REFUSED
        self.is_recovering = self.was_up = False
        self.phase = Phase.LOST
        self.did += [StopConnecting(), Disconnect("given up"), Tell(event, detail)]

    def lets_go(self) -> None:
        """There is no session any more: whoever waits for something of it is told."""
        for call in self.doubt.forgets(self.calls.withdraw()):
            if not call.is_abandoned:
                self.finish(call, self.doubt.given_up(call, Why.CLOSED))
        for consumer in self.consumers:
            self.did.append(Drop(consumer))
        self.moving.ends()
        self.travelling.forget()
        self.next_generation()
        self.consumers.clear()

    def finish(self, call: Call, outcome: Outcome) -> None:
        self.voided.ended(call, outcome)
        if not call.is_internal and not call.is_abandoned:
            self.did.append(Finish(call.id, outcome))

    # --- what is said -------------------------------------------------------------------------

    def pump(self) -> None:
        if self.phase not in (Phase.UP, Phase.REMAKING):
            return
        for call in self.calls.next_to_send(self._may_send):
            if call.verb is Verb.PUBLISH and call.target in self.producers:
                self.producers[call.target].number(call)
            self._say_call(call)

    def _may_send(self, call: Call) -> bool:
        if self.phase is Phase.REMAKING:
            return call.is_internal and call.verb in MADE_AGAIN
        if self.moving.holds(call):
            return False
        if call.verb is Verb.END and not (self.moving.is_leaving or self.closing.may_end):
            return False
        producing = self.producers.get(call.target)
        if call.verb is not Verb.PUBLISH or producing is None:
            return True
        return producing.may_publish(call)

    def _say_call(self, call: Call) -> None:
        self.unsaid = 0
        call.node = call.node or self.node
        call.begins_to_wait(self.now)
        command = call.command(self.seen, self.now)
        self.did += map(Say, parted(command, self.options.frame_bytes))

    def _say(self, frame: Frame) -> None:
        self.did.append(Say(frame))

    def _done(self) -> list[Action]:
        did, self.did = self.did, []
        return did

    # --- what comes ---------------------------------------------------------------------------

    def _received(self, frame: Frame, now: float) -> None:
        if isinstance(frame, Attached):
            self._attached(frame)
        elif self.phase not in (Phase.UP, Phase.REMAKING):
            raise SessionBroken("something comes before the session is attached")
        elif isinstance(frame, Result | Delivery):
            if frame.number != self.seen:
                raise SessionBroken(f"{frame.number} comes, not {self.seen}")
            self.unsaid += len(frame.body) + 64
            whole = self.assembly.add(frame)
            if whole is None:
                return
            self.seen += 1
            if isinstance(whole, Result):
                self.answers.hears(whole, now)
            else:
                self._delivered(whole, now)
        elif not self.travelling.hears(frame):
            raise SessionBroken(f"{type(frame).__name__.lower()} comes to a program")
        self._tell_seen()

    def _tell_seen(self) -> None:
        """The broker keeps or counts what we have not seen, and its memory is bounded."""
        if self.unsaid >= self.options.unsaid_max:
            self.unsaid = 0
            self._say(Seen(self.seen))

    def _delivered(self, frame: Delivery, now: float) -> None:
        consumer = self.consumers.get(frame.consumer)
        if self.moving.is_leaving:
            return
        numbers = numbers_of(frame.first, frame.messages, frame.body)
        self.in_hand.update(dict.fromkeys(numbers, consumer))
        if consumer is None:  # it has left while this was on its way
            self.gives_back(frame.first, frame.messages, now)
            return
        if not frame.messages:
            self.leave(frame.consumer)
            self._ended(frame.consumer, frame.body)
            return
        consumer.take(frame.first, frame.messages, len(frame.body))
        self.did.append(
            Hand(frame.consumer, self.generation, frame.first, frame.messages, frame.body)
        )

    def _ended(self, consumer: int, body: Body) -> None:
        """Whatever the broker says of it, nothing more comes."""
        try:
            self.did.append(Unmade(consumer, why_ended(body)))
        except InvalidArgument as odd:
            self.did.append(Unmade(consumer, malformed(odd)))
            raise SessionBroken(str(odd)) from None

    def gives_back(self, first: int, count: int, now: float) -> None:
        """What was taken for a call, or for a consumer, that nobody waits for."""
        if count:
            back = Call(self.next_id(), Verb.GIVE_BACK, 0, first, count, is_internal=True)
            back.generation = self.generation
            self._call(back, now)
