"""A session, and what it has in the vhost: producers, consumers, what is in hand, its queues.

It has a connection of its own as soon as it does more than look, so that the vhost knows this
program as one of its participants: groups, single consumers and shares of the memory are its own,
and what is left in hand, and temporary queues, go when it leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from shmbroker.core.codes import GONE, INVALID, OK, REVOKED
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import (
    ConnectionClosed,
    Error,
    InvalidArgument,
    NotAllowed,
    NotFound,
    error_for,
)
from shmbroker.ipc.connection.broker import Broker, connect
from shmbroker.ipc.exchange.named_subscription import NamedSubscription
from shmbroker.ipc.message.confirm import level_of
from shmbroker.ipc.message.room import Room
from shmbroker.ipc.queue.consuming import Consuming
from shmbroker.ipc.queue.publishing import checked_position
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.request.return_address import name_end
from shmbroker.ipc.selector.selection import Selection
from shmbroker.netbridge.broker.gates import TOWARDS
from shmbroker.netbridge.carrier.reached import (
    Place,
    all_of,
    everything_in,
    is_durable,
    queues_that_begin,
    serving,
)
from shmbroker.netbridge.remote.body import asked, ended, named, refusal, told
from shmbroker.netbridge.remote.session import Session
from shmbroker.netbridge.serving.answer import UNFIT, Answer, too_large, unfit
from shmbroker.netbridge.serving.commit import Commit, Committed
from shmbroker.netbridge.serving.confirms import in_time, wait_for_all
from shmbroker.netbridge.serving.consumer import Consumer, Get
from shmbroker.netbridge.serving.declaring import (
    DECLARING,
    Fields,
    declared,
    described,
    settings_of,
    subscription,
)
from shmbroker.netbridge.serving.destination import ToExchange, ToQueue, origin_of
from shmbroker.netbridge.serving.hands import Batch, Hands
from shmbroker.netbridge.serving.looking import Browse, looked
from shmbroker.netbridge.serving.naming import queue_named, temporary
from shmbroker.netbridge.serving.operating import cancelled, operated
from shmbroker.netbridge.serving.orders import check
from shmbroker.netbridge.serving.producer import LEVEL_WORDS, Producer, until
from shmbroker.netbridge.serving.requests import Request, reply
from shmbroker.netbridge.serving.taking import Taken
from shmbroker.netbridge.serving.travelling import transactions
from shmbroker.netbridge.serving.watcher import Watcher
from shmbroker.netbridge.wire.frame import Body, Command
from shmbroker.netbridge.wire.words import Level, Role, Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.serving.service import Service

T = TypeVar("T")


class Served:
    def __init__(
        self, service: Service, session: Session, program: str, user: str, role: Role
    ) -> None:
        self.service, self.session = service, session
        self.program, self.user, self.role = program, user, role
        self.producers: dict[int, Producer] = {}
        self._unopened: dict[int, Error] = {}
        """Why: what was published behind it is told the same."""
        self.consumers: dict[int, Consumer | Watcher] = {}
        self.gets: set[Get] = set()
        self.commits: set[Commit] = set()
        self.hands = Hands()
        self.open: dict[int, list[int]] = {}
        """Transactions of a program whose broker leaves, with their deliveries."""
        self.travelled: set[int] = set()
        """Transactions that have begun at another broker."""
        self._temporary: dict[int, str] = {}
        self._subscriptions: dict[int, NamedSubscription] = {}
        """Both of the worker: what is left is let go before it opens what is asked for next."""
        self._own: Broker | None = None

    def own(self) -> Broker:
        """Of the worker: its connection."""
        if self._own is None:
            self._own = connect(f"shm://{self.service.broker.vhost}", name=self.program or None)
        return self._own

    @property
    def participant(self) -> int | None:
        """Its number in the vhost; None: it has only looked so far."""
        return None if self._own is None else self._own.participant

    # --- what is asked for ----------------------------------------------------------------------

    def perform(self, command: Command) -> None:
        verb = VERBS.get(command.verb)
        try:
            if verb is None:
                raise InvalidArgument(f"{command.verb.value!r} is no verb of this broker")
            if self.role is not Role.CLIENT and not _only_looks(command):
                who = {Role.VIEWER: "a viewer only looks", Role.ADMIN: "an admin looks and orders"}
                raise NotAllowed(f"{who[self.role]}: {command.verb.value!r} is not allowed")
            verb(self, command)
        except Error as error:
            self.refuse(command, error)
        except UNFIT as error:
            self.refuse(command, unfit(error))

    def in_worker(self, command: Command, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """`then` is told what was made, also if the session is over by then; unless it failed."""

        def came(made: T | Exception) -> None:
            if isinstance(made, Error):
                self.refuse(command, made)
            elif isinstance(made, Exception):
                self.refuse(command, unfit(made))
            else:
                try:
                    then(made)
                except Error as error:
                    self.refuse(command, error)
                except UNFIT as error:
                    self.refuse(command, unfit(error))

        self.service.worker.do(work, came)

    def in_one_go(self, work: Callable[[Broker, Command], Answer], command: Command) -> None:
        """With the session's connection."""
        self.in_worker(command, lambda: work(self.own(), command), partial(self._answer, command))

    def looks(self, work: Callable[[Broker, Command], Answer], command: Command) -> None:
        """With the shared connection."""
        broker = self.service.broker
        self.in_worker(command, lambda: work(broker, command), partial(self._answer, command))

    def declares(self, command: Command) -> None:
        def came(answer: Answer) -> None:
            answers = partial(self._answer, command, answer)
            if answer.in_journal:
                self.service.after_sync(answers)
            else:
                answers()

        self.in_worker(command, lambda: declared(self.own(), command), came)

    def browse(self, command: Command) -> None:
        broker = self.service.broker

        def came(browse: Browse) -> None:
            if browse.is_done:
                self._answer(command, browse.answer)
            elif not self.session.is_over:
                self.in_worker(command, browse.go_on, came)

        self.in_worker(command, lambda: Browse(broker, command).go_on(), came)

    def _answer(self, command: Command, answer: Answer) -> None:
        self.done(command, answer.code, answer.value, answer.level, answer.body)

    # --- what came of it ------------------------------------------------------------------------

    def done(
        self, command: Command, code: int = OK, value: int = 0, level: Level = Level.SHM,
        body: Body = b"",
    ) -> None:  # fmt: skip
        session, limit = self.session, self.session.limits.message_bytes
        if len(body) > limit:
            code, body = refusal(
                too_large(f"the answer to {command.verb.value!r}", len(body), limit)
            )
        self.service.does(session, session.done(command.number, code, value, level, body))

    def refuse(self, command: Command, error: Error, published: int = 0) -> None:
        if self.is_thrown_out_by(error):
            self._is_thrown_out(error)
            return
        code, body = refusal(error)
        self.done(command, code, published, body=body)

    def is_thrown_out_by(self, error: Error) -> bool:
        """Its connection was closed: the command is said again in another session."""
        own = self._own
        return isinstance(error, ConnectionClosed) and own is not None and own.is_closed

    def took(self, command: Command, taken: Taken) -> None:
        session = self.session
        self.hands.add(session.next_delivery, taken.count, taken.batch)
        did = session.done(command.number, OK, body=taken.body, takes=taken.count)
        self.service.does(session, did)

    def delivers(self, consumer: int, count: int, body: Body, batch: Batch) -> None:
        session = self.session
        self.hands.add(session.next_delivery, count, batch)
        self.service.does(session, session.deliver(consumer, count, body))

    # --- producers ------------------------------------------------------------------------------

    def open_producer(self, command: Command) -> None:
        fields = told(command.body)
        origin = fields.get("origin") or origin_of(self.session.id, command.target)
        service = self.service

        def opened() -> tuple[Producer, int, bool]:
            kind, field = (ToQueue, "queue") if "queue" in fields else (ToExchange, "exchange")
            name = named(fields, field)
            try:
                to = kind(self.own(), service.broker, name, origin, service.confirms)
                return Producer(self, to), to.begin(command.value), to.may_confirm
            except Error as error:
                self._unopened[command.target] = error
                raise

        def came(made: tuple[Producer, int, bool]) -> None:
            producer, highest, durable = made
            if self.session.is_over:
                producer.close(forgets=False)
                return
            self.producers[command.target] = producer
            self.done(command, value=highest, body=asked(durable=durable))

        self.in_worker(command, opened, came)

    def publish(self, command: Command) -> None:
        self._producer(command).publish(command)

    def decided(self, command: Command) -> None:
        self._producer(command).decided(command.value, command.count)
        self.done(command)

    def _producer(self, command: Command) -> Producer:
        producer = self.producers.get(command.target)
        if producer is not None:
            return producer
        if command.target in self._unopened:
            raise self._unopened[command.target].with_traceback(None)
        raise NotFound(f"producer {command.target} was left, and publishes nothing more")

    # --- requests -------------------------------------------------------------------------------

    def request(self, command: Command) -> None:
        fields = told(command.body)

        def opened() -> Queue:
            self.service.requests.opened()
            return self.own().queue(queue_named(fields))

        def came(queue: Queue) -> None:
            if not self.session.is_over:
                self.service.requests.ask(Request(self, command, queue, fields))

        self.in_worker(command, opened, came)

    def reply(self, command: Command) -> None:
        self.in_worker(command, lambda: reply(self.own(), command), lambda _: self.done(command))

    # --- taking ---------------------------------------------------------------------------------

    def open_consumer(self, command: Command) -> None:
        fields = told(command.body)

        def came(consumer: Consumer | Watcher) -> None:
            if self.session.is_over:
                consumer.close()
                return
            self.consumers[command.target] = consumer
            stands = consumer.stands() if isinstance(consumer, Watcher) else {}
            self.done(command, body=described(consumer.queue, **stands))

        def made(consumer: Consumer | Watcher) -> None:
            declares = "subscription" in fields and not command.repeated
            if declares and is_durable(consumer.queue._queue):
                self.service.after_sync(partial(came, consumer))
            else:
                came(consumer)

        self.in_worker(command, lambda: self._consumer(command, fields), made)

    def _consumer(self, command: Command, fields: Fields) -> Consumer | Watcher:
        """Of the worker."""
        own, text = self.own(), fields.get("selector")
        if fields.get("looks"):
            return Watcher(self, command.target, own, fields, text)
        by_name = "subscription" in fields
        if by_name:
            queue = self._subscriptions[command.target] = subscription(own, fields)
        else:
            queue = own.queue(queue_named(fields))
        selection = None if text is None else Selection(text)
        consuming = Consuming(
            queue, fields.get("priority", 0), fields.get("exclusive", False), selection
        )
        if command.value or not by_name:
            consuming.begin()
        return Consumer(self, command.target, queue, selection, consuming)

    def lost_consumer(self, target: int, error: Error) -> None:
        """Its queue was deleted: nothing more will come.  Or our connection was closed, because a
        consumer was slow: then the session is over, and its program makes another."""
        consumer = self.consumers.pop(target, None)
        if consumer is None:  # the session has ended with its link, by what was told just before
            return
        consumer.close()
        self.service.worker.do(partial(self._let_go, target), lambda _: None)
        if isinstance(error, ConnectionClosed):
            self._is_thrown_out(error)
        else:
            self.service.does(self.session, self.session.ends_consumer(target, ended(error)))

    def _is_thrown_out(self, error: Error) -> None:
        """Its program makes another session, in which what is not answered is said again."""
        if not self.session.is_over:
            self.service.ends(self.session, str(error))

    def get(self, command: Command) -> None:
        fields = told(command.body)
        selector = fields.get("selector")

        def opened() -> Get:
            queue = self.own().queue(queue_named(fields))
            return Get(self, command, queue, None if selector is None else Selection(selector))

        def came(get: Get) -> None:
            if not self.session.is_over:
                self.gets.add(get)
                get.go_on()

        self.in_worker(command, opened, came)

    def is_back(self) -> None:
        """Its program is here again: what was not taken while it was away."""
        for get in tuple(self.gets):
            if get in self.gets:
                get.go_on()

    def settle(self, command: Command) -> None:
        if command.repeated:
            self._settle_again(command)
            return
        how = _ack if command.verb is Verb.ACK else _give_back
        if self.hands.settle(how, command.value, command.count) == command.count:
            self.done(command)
        else:
            self.refuse(command, error_for(REVOKED, "settling deliveries"))

    def reject(self, command: Command) -> None:
        if command.repeated:
            self._settle_again(command)
        else:
            self.service.rejections.reject(self, command)

    def _settle_again(self, command: Command) -> None:
        """What a former session was given, and has settled perhaps: by its place.  If the queue was
        made anew, there may be a message that nobody has seen."""
        fields = told(command.body)
        positions = named(fields, "positions", list)
        published = fields.get("published") or [None] * len(positions)
        settle = lib.sb_ack if command.verb is Verb.ACK else lib.sb_reject

        def settled() -> bool:
            queue = self.own().queue(queue_named(fields))
            message = ffi.new("sb_message *")
            codes = []
            for position, time in zip(positions, published, strict=True):
                if _is_another(queue, position, time):
                    codes.append(REVOKED)
                    continue
                code = lib.sb_take_at(queue._queue, position, message)
                codes.append(settle(queue._queue, message) if code == OK else code)
            return all(code in (OK, GONE) for code in codes)

        def came(is_ours: bool) -> None:
            if is_ours:
                self.done(command)
            else:
                self.refuse(command, error_for(REVOKED, "settling deliveries of a former session"))

        self.in_worker(command, settled, came)

    def give_back(self, deliveries: tuple[int, ...]) -> None:
        self.hands.give_back(deliveries)

    # --- the rest -------------------------------------------------------------------------------

    def temporary_queue(self, command: Command) -> None:
        fields = told(command.body)
        mine = f"tmp.{self.session.id.hex()}.{command.target}"

        def made() -> Queue:
            own = self.own()
            name = temporary(str(fields.get("name") or f"{mine}{name_end(own)}"))
            queue = own._temporary_queue(name, fields.get("slots"), settings_of(fields))
            self._temporary[command.target] = queue.name
            return queue

        def came(queue: Queue) -> None:
            self.done(command, body=described(queue))

        self.in_worker(command, made, came)

    def commit(self, command: Command) -> None:
        """A transaction, or a scheduled message."""
        commit = Commit(self, command, until(command))

        def came(committed: Committed | None) -> None:
            if committed is not None:
                committed.answer(self, command, commit.until)
            elif self.session.is_over:
                commit.close()
            else:
                self.commits.add(commit)
                commit.begin()

        self.in_worker(command, commit.prepare, came)

    def session_is_over(self) -> bool:
        return self.session.is_over

    def confirm(self, command: Command) -> None:
        """That all up to a position of a queue is there at a level, or all that was published and
        scheduled before."""
        fields = told(command.body)
        service = self.service
        level = level_of(fields.get("level"))
        position = fields.get("position")
        if position is not None:  # it may wait behind others, and is looked at when its turn comes
            checked_position(position)

        def found() -> tuple[Queue, list[Place]]:
            queue = serving(service.broker, queue_named(fields))
            if position is not None:
                return queue, [(queue._queue, position)]
            return queue, all_of(queue) + everything_in(*self._ways(queue.name))

        def came(found: tuple[Queue, list[Place]]) -> None:
            queue, places = found
            code = lib.sb_confirm(queue._queue, 0, level, 0)
            if code == INVALID:  # it is not durable
                raise queue._error(code, "confirming what was published to")

            def confirmed(level: int) -> None:
                if level < OK:
                    self.refuse(command, queue._error(level, "confirming what was published to"))
                else:
                    self.done(command, level=LEVEL_WORDS[level])

            told = in_time(service.alarms, until(command), confirmed, self.session_is_over)
            if places:
                wait_for_all(service.confirms, places, level, told)
            else:
                told(lib.sb_confirm_level(queue._queue))

        self.in_worker(command, found, came)

    def _ways(self, name: str) -> list[Any]:
        """Queues towards other nodes, as C knows them, if what this program publishes to that queue
        may be in them."""
        if self._own is None or not self._own.queue(name)._towards():
            return []
        return [each._queue for each in queues_that_begin(self.service.broker, TOWARDS)]

    def operate(self, command: Command) -> None:
        does = told(command.body).get("does")
        if does == "confirm":
            self.confirm(command)
        elif does == "take_back":
            self.in_one_go(self.service.requests.taken_back, command)
        else:
            self.in_one_go(operated, command)

    def order(self, command: Command) -> None:
        fields = told(command.body)
        check(fields, self.role)

        def came(made: list[dict[str, object]] | Exception) -> None:
            if isinstance(made, Exception):
                self.refuse(command, made if isinstance(made, Error) else unfit(made))
            else:
                self.done(command, body=asked(found=made))

        who = {"user": f"{self.user} ({self.program}) over a link", "login": self.user,
               "asks": self.session.name}  # fmt: skip
        self.service.orders.do(fields | who, came)

    def leave(self, command: Command) -> None:
        """Behind what the worker still opens; what waits for a message waits no longer at once."""
        target = command.target

        def came(_: object) -> None:
            if producer := self.producers.pop(target, None):
                producer.leave()
            self._unopened.pop(target, None)
            if consumer := self.consumers.pop(target, None):
                consumer.close()
            self._leave_gets(target)
            self.done(command)

        self._leave_gets(target)
        self.in_worker(command, partial(self._let_go, target), came)

    def _let_go(self, target: int) -> None:
        """Of the worker."""
        if target in self._temporary:
            with suppress(NotFound):  # it was deleted
                self.own().delete_queue(self._temporary.pop(target), force=True)
        if target in self._subscriptions:
            self._subscriptions.pop(target).close()

    def _leave_gets(self, target: int) -> None:
        for get in tuple(self.gets):
            get.leave(target)

    def close(self, *, forgets: bool) -> None:
        self.service.requests.forget(self)
        for waiting in (*self.gets, *self.commits, *self.consumers.values()):
            waiting.close()
        for producer in self.producers.values():
            producer.close(forgets=forgets)
        self.consumers.clear()
        self.producers.clear()
        self.service.worker.do(self._disconnect, lambda _: None)

    def _disconnect(self) -> None:
        """Of the worker, behind what it still opens for us."""
        if self._own is not None:
            self._own.close()


def _ack(batch: Batch, start: int, count: int) -> int:
    return batch.ack(start, count)


def _give_back(batch: Batch, start: int, count: int) -> int:
    return batch.give_back(start, count)


def _is_another(queue: Queue, position: int, published: int | None) -> bool:
    """The message there, than the one that was published then; None: not told, by a program of an
    earlier version."""
    if published is None:
        return False
    found = queue._look(queue._queue, checked_position(position), Room(), unconfirmed=True)
    return found is not None and found[0].published_at != published


def _only_looks(command: Command) -> bool:
    if command.verb is Verb.CONSUMER:
        return bool(told(command.body).get("looks"))
    return command.verb in (Verb.LOOK, Verb.ORDER, Verb.BROWSE, Verb.ACK, Verb.LEAVE)


VERBS: dict[Verb, Callable[[Served, Command], None]] = {
    Verb.PRODUCER: Served.open_producer,
    Verb.PUBLISH: Served.publish,
    Verb.PUBLISH_BEHIND: Served.publish,
    Verb.DECIDED: Served.decided,
    Verb.SCHEDULE: Served.commit,
    Verb.REQUEST: Served.request,
    Verb.REPLY: Served.reply,
    Verb.CONSUMER: Served.open_consumer,
    Verb.GET: Served.get,
    Verb.ACK: Served.settle,
    Verb.GIVE_BACK: Served.settle,
    Verb.REJECT: Served.reject,
    Verb.COMMIT: Served.commit,
    Verb.TEMPORARY_QUEUE: Served.temporary_queue,
    Verb.LEAVE: Served.leave,
    Verb.OPERATE: Served.operate,
    Verb.ORDER: Served.order,
    Verb.TRANSACTIONS: transactions,
    Verb.CANCEL_SCHEDULED: lambda served, command: served.in_one_go(cancelled, command),
    Verb.LOOK: lambda served, command: served.looks(looked, command),
    Verb.BROWSE: Served.browse,
    **dict.fromkeys(DECLARING, Served.declares),
}
