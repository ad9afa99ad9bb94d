"""A session: the machine of netbridge/remote, carried out over a link in a thread of its own."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from shmbroker.ipc.base.errors import ConnectionClosed, Error, InvalidArgument, MessageTooLarge
from shmbroker.ipc.base.timeout import Seconds, nanoseconds
from shmbroker.ipc.connection.found import logger
from shmbroker.ipc.instance.process import memory
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.client.discovered import Discovered
from shmbroker.netbridge.client.link import ProgramLink
from shmbroker.netbridge.client.member import Member
from shmbroker.netbridge.client.pending import Pending, Several
from shmbroker.netbridge.client.waiting import Way, finished
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.plan.plans import Draft, drafts
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import Single
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
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.remote.call import NEVER, STANDING, Call, Many
from shmbroker.netbridge.remote.client import Client
from shmbroker.netbridge.remote.options import NO_LIMIT, SessionOptions
from shmbroker.netbridge.remote.outcome import End, Outcome, Token, Why
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.remote.place import Place
from shmbroker.netbridge.remote.topology import Node
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.wire.frame import Body, Frame
from shmbroker.netbridge.wire.words import Demand, Standing, Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.client.producing import Producing

NS_PER_MS = 1_000_000
ID_BYTES = 16
Listener = Callable[[Event, str], object]
UNANSWERED_SECONDS = 30.0
"""Without a limit of calls, a close looks this often whether there is a broker to answer."""
NOBODY_KNOWS = Outcome(End.UNKNOWN, Why.CLOSED)


class Receiver(Protocol):
    """Of what is delivered to a consumer; called in the network thread."""

    takes: bool
    """What it gets is in its hand, and not only shown."""

    def take(self, generation: int, first: int, messages: int, body: Body) -> None: ...

    def drop(self) -> None:
        """What was not asked for so far will come again."""

    def unmade(self, error: Error) -> None:
        """Its queue was deleted, or the new session could not have it."""


class Session:
    def __init__(
        self,
        way: Way,
        uri: str,
        credential: Credential,
        options: SessionOptions,
        times: LinkTimes,
        name: str,
        learns: Callable[[tuple[Node, ...]], None],
    ) -> None:
        """`learns`: is told of the nodes that the broker tells of, in the session's thread."""
        self.way = way
        self.learns = learns
        self.options = options
        self.uri = uri
        self.targets = count(1)
        self.handles: Mapping[tuple[str, str], Producing] = {}
        """Queues and exchanges that the program has opened, by noun and name."""
        self.prefers_memory = False
        """Where it can, its verbs go through shared memory, and what is in hand is not here."""
        self.transactions = count(1)
        """Numbers of transactions, and of messages that are scheduled."""
        self.receivers: dict[int, Receiver] = {}
        self.listeners: list[Listener] = []
        self._client = Client(secrets.token_bytes(ID_BYTES), options)
        self._pending: dict[int, Pending] = {}
        self._opened = way.signal()
        self._openings = [self._opened]
        """Of all that wait until it is attached, or given up."""
        self._failure = ""
        self._why_lost = ""
        """What the broker has said when it closed the link."""
        self._acks: deque[tuple[str, int, int, tuple[int, int]]] = deque()
        self._is_acking = False
        self._thread = NetworkThread()
        node, incarnation = secrets.token_bytes(ID_BYTES), secrets.token_bytes(ID_BYTES)
        ours = Identity(node, incarnation, name, Standing.NONE, 0)
        self.link: ProgramLink | None = None
        self._closings: list[Any] = []
        """Of all that wait until it is over."""
        self._discovered: Discovered | None = None
        self._thread.ask(self._begin)
        try:
            ProgramLink(
                self._thread, self._client.session.hex(), uri, credential, ours, times, self
            )
        except BaseException:
            self._thread.close()
            raise

    def _begin(self) -> None:
        self._thread.members.append(self)
        self._thread.at_failure.append(self.end)
        self._does(self._client.start(time.monotonic()))

    def follows(self, discovered: Discovered) -> None:
        """Whom it finds is tried, from the next round on; it ends with this session."""

        def takes(members: tuple[Single, ...]) -> None:
            if self.link is not None:
                self._thread.call(partial(self.link.takes_list, members))

        self._discovered = discovered
        discovered.gives(takes)

    def topology(self) -> tuple[Member, ...]:
        """As far as it is known, without asking anybody."""
        link = self.link
        if link is None:
            return ()
        nodes = tuple(link.topology.nodes.values())  # the network thread learns of others
        return tuple(Member.of(each, link.met.get(each), nodes) for each in link.members)

    @property
    def near(self) -> Node | None:
        """The node that serves us, if its shared memory is that of this host."""
        link = self.link
        met = link.met.get(link.member) if link is not None and link.member is not None else None
        node = link.topology.nodes.get(met.node) if link is not None and met is not None else None
        is_here = node is not None and bool(node.vhost) and node.memory == memory()
        return node if is_here else None

    async def open(self, patience: float | None = None) -> None:
        """Until it is attached to a broker; ConnectionClosed says what each member has said."""
        try:
            if not await self.way.wait(self._opened, patience):
                self._failure = f"nobody has answered in {patience:g} s"
        except BaseException:
            await self._shut()
            raise
        if self._failure:
            await self._shut()
            raise ConnectionClosed(f"connecting to {self.uri}: {self._failure}")

    @property
    def is_closed(self) -> bool:
        return self._client.phase in (Phase.CLOSED, Phase.LOST) or self._thread.has_ended

    @property
    def generation(self) -> int:
        return self._client.generation

    @property
    def message_bytes_max(self) -> int:
        return self.options.message_bytes

    @property
    def is_up(self) -> bool:
        return self._client.phase is Phase.UP

    @property
    def in_hand(self) -> int:
        """So many messages nobody has dealt with."""
        shown = {target for target, each in tuple(self.receivers.items()) if not each.takes}
        whose = tuple(self._client.in_hand.values())
        return sum(each is None or each.target not in shown for each in whose)

    def ends_loops(self) -> None:
        """That take messages: those that wait for one."""
        for receiver in tuple(self.receivers.values()):
            if receiver.takes:
                receiver.unmade(ConnectionClosed("the connection is being drained"))

    @property
    def member(self) -> Single | None:
        return None if self.link is None else self.link.member

    async def close(self) -> None:
        """In good order: behind all that was called before."""
        self.check_may_wait("closing")
        if not self.is_closed:
            over = self.way.signal()
            self._soon(partial(self._close, over))
            await self._wait_for_end(over)
        await self._shut()

    @property
    def may_wait(self) -> bool:
        return not self._thread.is_current

    def check_may_wait(self, what: str) -> None:
        """InvalidArgument: the answer would come in the thread that waits for it."""
        if not self.may_wait:
            raise InvalidArgument(
                f"{what}: a listener of on_event cannot wait, because it is called in the network "
                f"thread: call it from another thread"
            )

    async def _wait_for_end(self, over: Any) -> None:
        limit = self.options.call_timeout
        if limit != NO_LIMIT:
            await self.way.wait(over, limit)
            return
        while not await self.way.wait(over, UNANSWERED_SECONDS) and self.is_up:
            pass

    def _close(self, over: Any) -> None:
        self._closings.append(over)
        self._does(self._client.close(time.monotonic()))

    def drop(self) -> None:
        """Without waiting: nobody has the connection any more."""
        with suppress(ConnectionClosed):
            self._soon(self._thread.stop)

    async def _shut(self) -> None:
        """Its thread takes up to a second to send what it has."""
        await self.way.aside(self._thread.close)

    def _soon(self, step: Callable[[], object]) -> None:
        """In the network thread."""
        if not self._thread.takes(step):
            raise ConnectionClosed("the connection was closed before") from self.failure

    # --- calls, from any thread ---------------------------------------------------------------

    def begin(
        self,
        what: str,
        verb: Verb,
        target: int = 0,
        value: int = 0,
        count: int = 1,
        body: Body = b"",
        demand: Demand = Demand.EFFECTIVE,
        *,
        waits: Seconds | None = 0,
        generation: int = 0,
        settles: tuple[int, ...] = (),
        many: Many | None = None,
        place: Place | None = None,
    ) -> Pending:
        """`waits`: for so long the broker may wait for room, or a message; None: for ever.

        MessageTooLarge: the broker would end the session, and nobody would know why.
        """
        if len(body) > self.message_bytes_max:
            raise MessageTooLarge(
                f"{what}: {len(body):,} bytes are more than goes over a link at once, which is "
                f"{self.message_bytes_max:,}; a program on the broker's host may send them"
            )
        call = Call(0, verb, target, value, count, body, demand, generation=generation)
        call.settles, call.many, call.place = settles, many, place
        call.wait_ms, timeout = self._patience(waits)
        pending = Pending(self, what, count)
        pending.takes = verb is Verb.GET
        pending.opens = target if verb in STANDING else 0
        self._soon(partial(self._call, pending, call, timeout))
        return pending

    def _patience(self, waits: Seconds | None) -> tuple[int, float | None]:
        """So many ms the broker may wait, and so many seconds we do; None: as for what waits for
        nothing."""
        waits_ns = nanoseconds(waits)
        limit = self.options.call_timeout
        timeout = NEVER if waits_ns < 0 or limit == NO_LIMIT else waits_ns / 1e9 + limit
        wait_ms = NO_LIMIT if waits_ns < 0 else -(-waits_ns // NS_PER_MS)
        return wait_ms, None if waits_ns == 0 else timeout

    def _call(self, pending: Pending, call: Call, timeout: float | None) -> None:
        if pending.is_refused:
            return
        pending.id = call.id = self._client.next_id()
        self._pending[call.id] = pending
        self._does(self._client.call(call, time.monotonic(), timeout))

    def cancel(self, pending: Pending) -> None:
        pending.is_refused = self._thread.is_current
        self._thread.call(partial(self._cancel, pending))

    def _cancel(self, pending: Pending) -> None:
        """What it has taken goes back, and what it has opened is left: also if the answer came
        before whoever waited was woken."""
        outcome = pending.outcome
        if not pending.id:
            return  # it was refused
        if outcome is None:
            self._does(self._client.cancel(pending.id, time.monotonic()))
        elif pending.takes and outcome.end is End.OK and outcome.code:
            self.give_back(pending.generation, outcome.value, outcome.code)
        elif pending.opens and outcome.end is End.OK:  # at once: it may be opened anew already
            leave = Call(self._client.next_id(), Verb.LEAVE, pending.opens, is_internal=True)
            self._does(self._client.call(leave, time.monotonic()))

    def give_back(self, generation: int, first: int, messages: int = 1) -> None:
        """Nobody waits for that."""
        what = "giving back what was sent ahead"
        body = asked(positions=[])
        self.begin(what, Verb.GIVE_BACK, 0, first, messages, body, generation=generation)

    def ack_soon(
        self, queue: str, generation: int, delivery: int, which: tuple[int, int]
    ) -> None:
        """Nobody waits for that: what has gathered when the network thread comes is one command.

        `which`: its position, and when it was published.
        """
        self._acks.append((queue, generation, delivery, which))
        if not self._is_acking:
            self._is_acking = True
            self._soon(self._ack)

    def _ack(self) -> None:
        self._is_acking = False  # before we look: what comes later calls again
        acks = self._acks
        while acks:
            queue, generation, first, which = acks.popleft()
            those = [which]
            while acks and acks[0][:3] == (queue, generation, first + len(those)):
                those.append(acks.popleft()[3])
            positions, published = zip(*those, strict=True)
            body = asked(queue=queue, positions=positions, published=published)
            call = Call(0, Verb.ACK, 0, first, len(those), body, generation=generation)
            self._call(Pending(self, "acknowledging"), call, None)

    def retries(self, token: Token, what: str) -> Callable[[Seconds | None], object]:
        """For Unconfirmed.confirm."""

        def ask(timeout: Seconds | None) -> object:
            asked = _result(self.retry(token, what, *self._patience(timeout)))
            return finished(asked) if self.way.is_blocking else asked

        return ask

    def retry(
        self, token: Token, what: str, wait_ms: int | None = None, timeout: float | None = None
    ) -> Several:
        """All of it at once, in its order.  `wait_ms`: for so long the broker may wait; None: for
        as long as the first time."""
        each = (replace(token, behind=()), *token.behind)
        begin = partial(self._client.retry, many=Many(), wait_ms=wait_ms, timeout=timeout)
        return Several([self._retry(one, what, begin) for one in each])

    def _retry(self, token: Token, what: str, begin: Callable[..., list[Action]]) -> Pending:
        pending = Pending(self, what, token.count)

        def again() -> None:
            if pending.is_refused:
                return
            pending.id = self._client.next_id()
            self._pending[pending.id] = pending
            self._does(begin(token, pending.id, time.monotonic()))

        self._soon(again)
        return pending

    def work(self, transaction: int, deliveries: list[int], generation: int) -> None:
        self._soon(partial(self._client.work, transaction, deliveries, generation))

    def no_work(self, transaction: int) -> None:
        """It was rolled back."""
        self._soon(lambda: self._client.travelling.works.pop(transaction, None))

    def want(self, consumer: int, messages: int) -> None:
        self._soon(lambda: self._does(self._client.want(consumer, messages)))

    async def reconnect(self, uri: str | None) -> None:
        """Until it is attached; a listener, which is called in the network thread, only begins."""
        opened = self.way.signal()
        found = () if uri is None else drafts(parse(uri), "program")
        if uri is not None and len(found) != 1:
            raise InvalidArgument(
                f"{uri!r} stands for {len(found)} links: name a broker, or a list"
            )
        self._soon(partial(self._reconnect, uri or self.uri, found, opened))
        if not self._thread.is_current:
            await self.way.wait(opened)
            if self._failure:
                raise ConnectionClosed(f"connecting to {self.uri}: {self._failure}")

    def _reconnect(self, uri: str, found: tuple[Draft, ...], opened: Any) -> None:
        if found and self.link is not None and self._client.phase is Phase.LOST:
            self.uri = uri
            self.link.aim(found[0])
        self._openings.append(opened)
        self._failure = ""
        self._does(self._client.reconnect(time.monotonic()))

    # --- of the thread ------------------------------------------------------------------------

    @property
    def due(self) -> float:
        return self._client.deadline

    def woken(self, now: float) -> None:
        self._does(self._client.tick(now))

    def end(self) -> None:
        """The thread ends: whoever still waits is told."""
        try:
            self._does(self._client.abandon())
        finally:  # an error may have come between a call and its end
            self._failure = self._failure or str(self.failure or "")
            self._opened.set()
            self._has_closed()
            for call in tuple(self._pending):
                self._carry_out(Finish(call, NOBODY_KNOWS))
            if self.failure is not None:
                for receiver in tuple(self.receivers.values()):
                    receiver.unmade(self.ended())
            if self._discovered is not None:
                self._discovered.close()

    @property
    def failure(self) -> BaseException | None:
        """By which its thread has ended."""
        return self._thread.failure

    def ended(self) -> ConnectionClosed:
        error = ConnectionClosed("the session has ended")
        if self.failure is not None:
            error.__cause__ = self.failure
        return error

    def link_is_up(self, node: bytes, process: bytes) -> None:
        self._does(self._client.connected(time.monotonic(), node, process))

    def link_is_lost(self, kind: Event, detail: str) -> None:
        self._why_lost = detail if kind is Event.CLOSED else ""
        self._does(self._client.lost(time.monotonic(), kind, detail))

    def heard(self, frame: Frame) -> None:
        self._does(self._client.received(frame, time.monotonic()))

    def invited(self, uri: str, former: str) -> None:
        if not (self.prefers_memory and self.near is not None):
            uses = tuple(asked(opens=True, **{noun: name}) for noun, name in list(self.handles))
            self._does(self._client.move(uri, former, uses, time.monotonic()))

    def found_none(self, said: Mapping[Single, str]) -> None:
        self._failure = "; ".join(f"{member.peer}: {why}" for member, why in said.items())
        self._does(self._client.unreachable(time.monotonic(), self._failure))

    def _does(self, actions: list[Action]) -> None:
        for action in actions:
            self._carry_out(action)
        if self._openings and (self.is_up or self.is_closed):
            said = self._failure or (self.link.why_not if self.link is not None else "")
            self._failure = "" if self.is_up else said or "no broker has answered"
            while self._openings:
                self._openings.pop().set()
        if self._closings and self.is_closed:
            self._has_closed()

    def _has_closed(self) -> None:
        while self._closings:
            self._closings.pop().set()

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Say):
            if self.link is not None:
                self.link.say(action.frame)
        elif isinstance(action, Finish):
            pending = self._pending.pop(action.call, None)
            if pending is not None:
                pending.generation = self._client.generation
                pending.end(action.outcome)
        elif isinstance(action, (Hand, Drop, Unmade)):
            self._of_consumer(action)
        elif isinstance(action, Tell):
            is_loss = action.event is Event.FAILURE_DETECTED
            self._tell(action.event, self._why_lost if is_loss else action.detail)
        elif self.link is not None:
            self._of_link(self.link, action)

    def _tell(self, event: Event, detail: str) -> None:
        for listener in tuple(self.listeners):
            try:
                listener(event, detail)
            except Exception:  # noqa: BLE001  # the program's: calls that wait go on
                logger.exception("a listener has raised when it was told of %s", event.value)

    def _of_link(self, link: ProgramLink, action: Action) -> None:
        if isinstance(action, Disconnect):
            if self.is_closed:
                link.give_up()
            else:
                link.breaks(action.why)
        elif isinstance(action, Go):
            link.go(action.uri)
        elif isinstance(action, Connect):
            link.try_again()
        elif isinstance(action, StopConnecting) and not self.is_up:
            link.give_up()

    def _of_consumer(self, action: Hand | Drop | Unmade) -> None:
        target = action.target if isinstance(action, Unmade) else action.consumer
        receiver = self.receivers.get(target)
        if receiver is None:
            if isinstance(action, Hand):  # it has left just now
                self.give_back(action.generation, action.first, action.messages)
            elif isinstance(action, Unmade):  # a producer: it is opened with the next message
                for producing in tuple(self.handles.values()):
                    producing.forget(target)
        elif isinstance(action, Hand):
            receiver.take(action.generation, action.first, action.messages, action.body)
        elif isinstance(action, Drop):
            receiver.drop()
        else:
            receiver.unmade(action.error)


async def _result(asked: Several) -> Any:
    return await asked
