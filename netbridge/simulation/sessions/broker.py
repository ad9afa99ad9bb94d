"""The broker's host: sessions over a store, a process at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from struct import Struct

from shmbroker.core.codes import EMPTY, ENDED, FULL, OK, REVOKED
from shmbroker.netbridge.link.action import Action as LinkAction
from shmbroker.netbridge.link.action import Became, Heard
from shmbroker.netbridge.link.ending import Reason, State
from shmbroker.netbridge.link.handshake import Far
from shmbroker.netbridge.remote.action import (
    Action,
    Disconnect,
    GiveBack,
    Perform,
    Say,
    Wanted,
)
from shmbroker.netbridge.remote.numbers import Verdict
from shmbroker.netbridge.remote.session import Session, SessionLimits
from shmbroker.netbridge.remote.sessions import Done, Sessions
from shmbroker.netbridge.simulation.end import LinkEnd
from shmbroker.netbridge.simulation.history import History
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.sessions.history import SessionHistory
from shmbroker.netbridge.simulation.sessions.store import State as Stored
from shmbroker.netbridge.simulation.sessions.store import Store, acked, published
from shmbroker.netbridge.simulation.world import Wrong
from shmbroker.netbridge.wire.frame import FRAME_BYTES_MIN, Command
from shmbroker.netbridge.wire.words import Level, Verb

WORD = Struct("<QQ16x")
"""Of a message: its number, and where it was."""
LIMITS = SessionLimits(ttl=1.0, window=4000, frame_bytes=FRAME_BYTES_MIN)
FULL_EACH = 8
CHANCE_SECONDS = 0.0, 0.05
LARGEST = 200 << 10


class ServiceEnd(LinkEnd):
    """The broker's end of one connection."""

    def __init__(
        self, host: Host, handshake: Far, history: History, process: Process, link: int
    ) -> None:
        super().__init__(host, handshake, history)
        self.process = process
        self.link = link

    def carry_out(self, action: LinkAction) -> None:
        if isinstance(action, Heard):
            process = self.process
            process.does(process.sessions.received(self.link, action.frame, self.host.clock))
        elif isinstance(action, Became) and action.state is State.SYNCING:
            self.process.links[self.link] = self
        else:
            super().carry_out(action)

    def has_ended(self, reason: Reason) -> None:
        if self.process.links.pop(self.link, None) is not None:
            self.process.does(self.process.sessions.detached(self.link, self.host.clock))


class Process:
    """Of the broker: it performs what sessions ask for."""

    def __init__(self, host: Host, store: Store) -> None:
        self.host = host
        self.life = host.life
        self.store = store
        self.sessions = Sessions(LIMITS)
        self.links: dict[int, ServiceEnd] = {}
        self.places: dict[tuple[Session, int], int] = {}
        """By session and delivery: the position."""
        self.last: dict[int, Session] = {}
        """By position: to whom it was delivered last."""
        self.wanting: dict[tuple[Session, int], bool] = {}
        store.changed = lambda: host.at(host.world.now, self._offer)
        self._tick()

    def _tick(self) -> None:
        self.does(self.sessions.tick(self.host.clock))
        self.host.later(0.1, self._tick)

    def does(self, done: Done) -> None:
        for link, session, actions in done:
            for action in actions:
                self._carry_out(link, session, action)

    def of(self, session: Session, actions: list[Action]) -> None:
        link = self.sessions.link_of(session)
        for action in actions:
            self._carry_out(link, session, action)
        if session.kept_bytes > session.window + LARGEST:
            raise Wrong(f"a session keeps {session.kept_bytes} bytes")

    def _carry_out(self, link: int, session: Session | None, action: Action) -> None:
        end = self.links.get(link)
        if isinstance(action, Say) and end is not None:
            end.does(end.machine.say(action.frame, self.host.clock))
        elif isinstance(action, Disconnect) and end is not None:
            SessionHistory.disconnects(action.why)
            end.does(end.machine.disconnected(self.host.clock))
        elif session is None:
            return
        elif isinstance(action, Perform):
            wait = self.host.world.between(*CHANCE_SECONDS)
            self.host.later(wait, partial(self._perform, session, action.command))
        elif isinstance(action, Wanted):
            self.wanting[session, action.consumer] = True
            self.host.later(0, self._offer)
        elif isinstance(action, GiveBack):
            for delivery in action.deliveries:
                self.store.taken.discard(self.places.pop((session, delivery), -1))

    def _done(self, session: Session, command: Command, code: int = OK, value: int = 0) -> None:
        """When it is synced; of another process nobody wants to know."""

        def tell() -> None:
            if self.host.life == self.life:
                self.of(session, session.done(command.number, code, value, Level.DISK))

        self.host.at(self.host.world.now, tell)

    # --- the verbs ----------------------------------------------------------------------------

    def _perform(self, session: Session, command: Command) -> None:
        if session.is_over:
            return
        done = partial(self._done, session, command)
        verb = command.verb
        if verb is Verb.PRODUCER:
            self.store.does(lambda state: state.numbers.begin(command.value), lambda: None)
            done(value=self.store.memory.numbers.highest)
        elif verb is Verb.PUBLISH:
            self._publish(command, done)
        elif verb is Verb.DECIDED:
            numbers = range(command.value, command.value + command.count)
            self.store.does(lambda state: state.numbers.decided(numbers), done)
        elif verb is Verb.GET:
            self._get(session, command)
        elif verb in (Verb.ACK, Verb.GIVE_BACK):
            self._settle(session, command, done)
        elif verb is Verb.COMMIT:
            self._commit(session, command, done)
        else:
            done()

    def _publish(self, command: Command, done: Callable[..., None]) -> None:
        numbers = self.store.memory.numbers
        verdict = numbers.verdict(command.value)
        if verdict is Verdict.WAITS:
            raise Wrong(f"number {command.value} waits behind {numbers.highest}")
        if verdict is Verdict.NEW and self.host.world.random.randrange(FULL_EACH) == 0:
            done(FULL)
            return
        messages = [
            WORD.unpack_from(command.body, WORD.size * at)[0] for at in range(command.count)
        ]
        fresh = [numbers.verdict(command.value + at) is Verdict.NEW for at in range(command.count)]

        def change(state: Stored) -> None:
            for at, message in enumerate(messages):
                if fresh[at]:
                    state.numbers.take(command.value + at)
                    published(message)(state)

        self.store.does(change, done)

    def _get(self, session: Session, command: Command) -> None:
        position = self.store.take()
        if position is None:
            self.of(session, session.done(command.number, EMPTY))
            return
        self._delivers(session, position)
        body = self._word(position)
        self.of(session, session.done(command.number, OK, body=body, takes=1))

    def _delivers(self, session: Session, position: int) -> None:
        self.places[session, session.next_delivery] = position
        self.last[position] = session

    def _word(self, position: int) -> bytes:
        return WORD.pack(self.store.memory.messages[position], position)

    def _settle(self, session: Session, command: Command, done: Callable[..., None]) -> None:
        if command.repeated:
            position = WORD.unpack_from(command.body)[1]
            if self._is_of_others(session, command.target, position):
                done(REVOKED)
                return
        else:
            position = self.places.pop((session, command.value))
            self.store.taken.discard(position)
        if command.verb is Verb.GIVE_BACK:
            done()
            self._offer()
        else:
            self.store.does(acked(position), done)

    def _is_of_others(self, session: Session, generation: int, position: int) -> bool:
        """It was delivered since."""
        last = self.last.get(position)
        return last is not None and (last.id, last.generation) != (session.id, generation)

    def _commit(self, session: Session, command: Command, done: Callable[..., None]) -> None:
        transaction = command.value
        if command.repeated:
            is_there = transaction in self.store.memory.committed
            self.store.does(lambda state: None, partial(done, OK if is_there else ENDED))
            return
        count = len(command.body) // WORD.size
        messages = [WORD.unpack_from(command.body, WORD.size * at)[0] for at in range(count)]

        def change(state: Stored) -> None:
            state.committed.add(transaction)
            for message in messages:
                published(message)(state)

        self.store.does(change, done)

    def _offer(self) -> None:
        for session, consumer in list(self.wanting):
            if session.is_over or consumer not in session.flows:
                del self.wanting[session, consumer]
                continue
            while session.room(consumer)[0]:
                position = self.store.take()
                if position is None:
                    return
                self._delivers(session, position)
                self.of(session, session.deliver(consumer, 1, self._word(position)))
