"""A queue of a broker on another host: the verbs of ipc/queue/queue.py, as coroutines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.aio.verb import described, twin
from shmbroker.ipc.base.errors import Empty, InvalidArgument, NoReply, Unconfirmed
from shmbroker.ipc.base.signature import check_names
from shmbroker.ipc.base.timeout import Seconds, nanoseconds, seconds
from shmbroker.ipc.latency.statistics import QueueStatistics
from shmbroker.ipc.message.confirm import Confirm
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.outgoing import OptionsWithId, id_bytes, key_bytes, parts
from shmbroker.ipc.message.properties import MESSAGE_ID
from shmbroker.ipc.message.serializer import Codec, value_of
from shmbroker.ipc.queue import queue as local
from shmbroker.ipc.queue.batch import several
from shmbroker.ipc.queue.moving import Passed
from shmbroker.ipc.queue.publishing import checked_position
from shmbroker.ipc.queue.retry import Retried
from shmbroker.ipc.queue.taking import count_of
from shmbroker.ipc.request.request import Reply, check_properties
from shmbroker.ipc.schedule.scheduled import ScheduledMessage
from shmbroker.ipc.selector.selection import Selection
from shmbroker.ipc.selector.selector import Selector
from shmbroker.netbridge.client import found
from shmbroker.netbridge.client.delivery import Message
from shmbroker.netbridge.client.not_local import not_local, refused
from shmbroker.netbridge.client.pending import Pending
from shmbroker.netbridge.client.producing import demand_of
from shmbroker.netbridge.client.record import contents, copied, delivered, plain, record
from shmbroker.netbridge.client.scheduling import is_delayed, schedule
from shmbroker.netbridge.client.waiting import finished
from shmbroker.netbridge.remote.body import asked, told
from shmbroker.netbridge.remote.outcome import Outcome
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.client.broker import Broker

BROWSED = 256
"""Messages of one look at most."""


def text_of(selector: str | Selector | Selection | None) -> str | None:
    """The broker has its own program of it; what is wrong is told here."""
    if selector is None:
        return None
    if isinstance(selector, str):
        return Selector(selector).text
    return selector.text if isinstance(selector, Selector) else selector.selector.text


def identified(
    properties: Mapping[str, Any] | None, message_id: str | bytes | None
) -> dict[str, Any] | None:
    if message_id is None:
        return None if properties is None else dict(properties)
    id_bytes(message_id)  # refuses what is no id
    return {MESSAGE_ID: message_id, **(properties or {})}


class Queue:
    """Made by Broker.queue and Broker.declare_queue."""

    def __init__(
        self, broker: Broker, name: str, told_of_it: Mapping[str, Any], codec: Codec | None
    ) -> None:
        self._broker, self._session = broker, broker._session
        self.name = name
        self.slots: int = told_of_it.get("slots", 0)
        self.serializer = codec
        self.is_durable = bool(told_of_it.get("durable"))
        self._producing = broker._producing("queue", name)
        broker._opened.add(self)

    # --- publishing ---------------------------------------------------------------------------

    async def _publish(self, body: Any, *, timeout: Seconds | None, **options: Any) -> int | None:
        nanoseconds(timeout)  # refuses what is no time-out
        if self.serializer is not None:
            body = self.serializer.dumps(body)
        if is_delayed(options):
            return await self._schedule(body, timeout, options)
        demand = demand_of(self._checked(options.pop("confirm", None)))
        if not options and type(body) is bytes:
            message = plain(body)
        else:
            message = self._record(body, options)
        done = await self._producing.publish(message, timeout, demand)
        return done.value if done.code == 0 else None

    publish = described(_publish, local.Queue.publish)

    def _checked(self, confirm: Confirm | None) -> Confirm | None:
        if not self.is_durable and confirm not in (None, "shm"):
            raise InvalidArgument(
                f"queue {self.name!r} is not durable: it cannot confirm {confirm!r}"
            )
        return confirm

    def _record(self, body: Any, options: dict[str, Any]) -> bytes:
        options.pop("deliver_after", None), options.pop("deliver_at", None)
        properties = identified(options.pop("properties", None), options.pop("message_id", None))
        try:
            return record(parts(body, properties=properties, **options))
        except TypeError:
            check_names("publish", options, OptionsWithId.__annotations__)
            raise

    async def _schedule(self, body: Any, timeout: Seconds | None, options: dict[str, Any]) -> int:
        check_names("publish", options, OptionsWithId.__annotations__)
        after, at = options.pop("deliver_after", None), options.pop("deliver_at", None)
        demand = demand_of(self._checked(options.pop("confirm", None)))
        if options.get("ttl") is not None:
            options["ttl"] = seconds(options["ttl"])
        done = await schedule(
            self._session, "queue", self.name, after, at, demand=demand, waits=timeout,
            body=copied(body), **options,
        )  # fmt: skip
        return done.value

    def publish_nowait(self, body: Any, **options: Any) -> int | None:
        return self._broker._at_once(
            "Queue.publish_nowait", self._publish(body, timeout=0, **options)
        )

    described(publish_nowait, local.Queue.publish_nowait)

    @twin(local.Queue.publish_many)
    async def publish_many(
        self, bodies: Iterable[Any], *, timeout: Seconds | None, confirm: Confirm | None
    ) -> int:
        demand = demand_of(self._checked(confirm))
        held = several(bodies)
        if self.serializer is not None:
            held = list(map(self.serializer.dumps, held))
        if not set(map(type, held)) <= {bytes}:
            held = [copied(each) for each in held]
        return await self._producing.publish_many(held, timeout, demand)

    @twin(local.Queue.confirm)
    async def confirm(
        self, position: int | None, *, level: Confirm | None, timeout: Seconds | None
    ) -> Any:
        demand_of(level)
        where = None if position is None else checked_position(position)
        try:
            done = await self._operate("confirm", timeout, position=where, level=level)
        except Unconfirmed as error:
            error.ask = lambda timeout: self.confirm(position, level=level, timeout=timeout)
            raise
        return done.level.value

    @twin(local.Queue.request)
    async def request(
        self,
        body: Any,
        *,
        key: str | None,
        properties: Mapping[str, Any] | None,
        timeout: Seconds | None,
    ) -> Reply:
        if properties is not None:
            check_properties(properties)
        if self.serializer is not None:
            body = self.serializer.dumps(body)
        said = asked(
            queue=self.name, body=copied(body), key=key,
            properties=None if properties is None else dict(properties),
        )  # fmt: skip
        try:
            done = await self._ask(Verb.REQUEST, said, "a request to", waits=timeout)
        except NoReply as error:
            number, error.published = error.published, 0
            error.ask_back = partial(self._takes_back, number)
            raise
        answer = told(done.body)
        reply = Reply(answer.get("body", b""), answer.get("properties", b""))
        reply._codec = self.serializer
        return reply

    def _takes_back(self, number: int) -> Any:
        """Awaited with asyncio."""

        async def taken_back() -> bool:
            said = asked(queue=self.name, does="take_back")
            return bool((await self._ask(Verb.OPERATE, said, "a request to", value=number)).value)

        return finished(taken_back()) if self._session.way.is_blocking else taken_back()

    # --- taking -------------------------------------------------------------------------------

    @twin(local.Queue.get)
    async def get(self, selector: str | Selector | None, *, timeout: Seconds | None) -> Message:
        return (await self._take(1, text_of(selector), timeout))[0]

    @twin(local.Queue.select)
    async def select(
        self, selection: str | Selector | Selection, *, timeout: Seconds | None
    ) -> Message:
        return (await self._take(1, text_of(selection), timeout))[0]

    def get_nowait(self) -> Any:
        return self._broker._at_once("Queue.get_nowait", self._take_one())

    described(get_nowait, local.Queue.get_nowait)

    async def _take_one(self) -> Message:
        return (await self._take(1, None, 0))[0]

    @twin(local.Queue.get_many)
    async def get_many(self, count: int, *, timeout: Seconds | None) -> list[Message]:
        return await self._take(count_of(count), None, timeout)

    async def _take(
        self, count: int, selector: str | None, timeout: Seconds | None
    ) -> list[Message]:
        taking, done = await self._taken(count, selector, timeout)
        return [
            self._message(copy, taking.generation, number)
            for number, copy in enumerate(delivered(done.body), done.value)
        ]

    async def _taken(
        self, count: int, selector: str | None, timeout: Seconds | None
    ) -> tuple[Pending, Outcome]:
        said = asked(queue=self.name, selector=selector)
        what = f"taking from queue {self.name!r}"
        taking = self._session.begin(
            what, Verb.GET, target=next(self._session.targets), count=count, body=said,
            waits=timeout,
        )  # fmt: skip
        done = await taking
        if not done.code:
            raise Empty(f"{what}: there is nothing to take")
        return taking, done

    def _message(self, copy: CopiedMessage, generation: int, number: int) -> Message:
        return Message(self._session, self.name, copy, generation, number, self.serializer)

    @twin(local.Queue.receive)
    async def receive(self, *, timeout: Seconds | None) -> Any:
        return (await self._receive(1, timeout))[0]

    @twin(local.Queue.receive_many)
    async def receive_many(self, count: int, *, timeout: Seconds | None) -> list[Any]:
        return await self._receive(count_of(count), timeout)

    async def _receive(self, count: int, timeout: Seconds | None) -> list[Any]:
        """Two commands, however many messages it takes.

        With asyncio nobody waits for the second one: cancelled while it is on its way, we would
        have acknowledged what nobody has.
        """
        taking, done = await self._taken(count, None, timeout)
        positions, published, bodies = contents(done.body)
        acking = self._session.begin(
            f"{len(positions)} messages of queue {self.name!r}", Verb.ACK, value=done.value,
            count=len(positions), generation=taking.generation,
            body=asked(queue=self.name, positions=positions, published=published),
        )  # fmt: skip
        if self._session.way.is_blocking:
            with suppress(Unconfirmed):  # they are handed out, and at worst they come again
                await acking
        if self.serializer is None:
            return bodies
        return [value_of(each, self.serializer) for each in bodies]

    @twin(local.Queue.consume)
    def consume(
        self,
        *,
        selector: str | Selector | None,
        timeout: Seconds | None,
        prefetch: int,
        priority: int,
        exclusive: bool,
    ) -> Any:
        count_of(prefetch)
        nanoseconds(timeout)
        kind = self._broker.kinds["Consumer"]
        return kind(self, text_of(selector), timeout, prefetch, priority, exclusive)

    # --- looking ------------------------------------------------------------------------------

    @twin(local.Queue.browse)
    async def browse(self, *, unconfirmed: bool) -> AsyncIterator[CopiedMessage]:
        position: int | None = None
        generation = 0
        while True:
            said = asked(queue=self.name, position=position, unconfirmed=unconfirmed or None)
            what = f"browsing queue {self.name!r}"
            browsing = self._session.begin(what, Verb.BROWSE, count=BROWSED, body=said)
            done = await browsing
            former, generation = generation, browsing.generation
            if position is not None and generation != former:
                position = None  # another broker, perhaps, has other messages in these places
                continue
            if not done.code:
                return
            position = done.value
            for copy in delivered(done.body):
                yield copy

    @twin(local.Queue.scheduled)
    async def scheduled(self) -> list[ScheduledMessage]:
        return found.scheduled(await self._look("scheduled"))

    @twin(local.Queue.value)
    async def value(self, key: str) -> CopiedMessage | None:
        key_bytes(key)
        said = asked(queue=self.name, at="value", key=key)
        done = await self._ask(Verb.LOOK, said, f"the value of {key!r} in")
        return found.value(told(done.body).get("found"))

    @twin(local.Queue.statistics)
    async def statistics(self) -> QueueStatistics:
        return found.statistics(await self._look("statistics"))

    @twin(local.Queue.gates)
    async def gates(self) -> Any:
        return found.gates(await self._look("gates"))

    @twin(local.Queue.origins)
    async def origins(self) -> Any:
        return found.origins(await self._look("origins"))

    @twin(local.Queue.groups)
    async def groups(self) -> Any:
        return found.groups(await self._look("groups"))

    @twin(local.Queue.holders)
    async def holders(self) -> Any:
        return found.holders(await self._look("holders"))

    @twin(local.Queue.explain)
    async def explain(self) -> Any:
        return found.explained(await self._look("explain"))

    async def _look(self, at: str) -> Any:
        done = await self._ask(Verb.LOOK, asked(queue=self.name, at=at), "looking at")
        return told(done.body).get("found")

    def _looked(self, at: str) -> Any:
        return self._broker._at_once(f"Queue.{at}", self._look(at))

    @property
    def published(self) -> int:
        return int(self._looked("published"))

    @property
    def confirmed(self) -> int:
        return int(self._looked("confirmed"))

    @property
    def level(self) -> Any:
        return self._looked("level")

    @property
    def is_paused(self) -> bool:
        statistics = self._broker._at_once("Queue.is_paused", self._look("statistics"))
        return bool(statistics["is_paused"])

    def __len__(self) -> int:
        return int(self._broker._at_once("Queue.__len__", self._look("length")))

    def __bool__(self) -> bool:
        return True

    # --- managing -----------------------------------------------------------------------------

    async def _operate(self, does: str, waits: Seconds | None = 0, **more: Any) -> Outcome:
        said = asked(queue=self.name, does=does, **more)
        return await self._ask(Verb.OPERATE, said, f"{does.replace('_', ' ')}:", waits=waits)

    @twin(local.Queue.purge)
    async def purge(self) -> int:
        return (await self._operate("purge")).value

    @twin(local.Queue.pause)
    async def pause(self) -> None:
        await self._operate("pause")

    @twin(local.Queue.resume)
    async def resume(self) -> None:
        await self._operate("resume")

    @twin(local.Queue.expire)
    async def expire(self) -> int:
        return (await self._operate("expire")).value

    @twin(local.Queue.let_go)
    async def let_go(self, group: str | None) -> int:
        return (await self._operate("let_go", group=group)).value

    @twin(local.Queue.move_to)
    async def move_to(
        self,
        other: Queue,
        limit: int | None,
        selector: str | Selector | None,
        *,
        timeout: Seconds | None,
    ) -> int:
        return (await self._move("move_to", other, limit, selector, timeout)).messages

    @twin(local.Queue.copy_to)
    async def copy_to(
        self,
        other: Queue,
        limit: int | None,
        selector: str | Selector | None,
        *,
        timeout: Seconds | None,
    ) -> int:
        return (await self._move("copy_to", other, limit, selector, timeout)).messages

    async def _move(
        self,
        does: str,
        other: Queue,
        limit: int | None,
        selector: str | Selector | None,
        timeout: Seconds | None,
    ) -> Passed:
        if nanoseconds(timeout) != 0:
            refused("Queue.move_to(timeout=...)")
        if not isinstance(other, Queue):
            raise InvalidArgument(f"messages go to another queue, not to {type(other).__name__}")
        if limit is not None and (not isinstance(limit, int) or limit is True or limit < 1):
            raise InvalidArgument(f"limit is a number of messages or None, not {limit!r}")
        more = {"other": other.name, "limit": limit, "selector": text_of(selector)}
        done = await self._operate(does, timeout, **more)
        return Passed(done.value, bool(told(done.body).get("is_full")), 0)

    @twin(local.Queue.retry)
    async def retry(self, limit: int | None) -> Retried:
        done = await self._operate("retry", limit=limit)
        return Retried(done.value, told(done.body).get("stayed", {}))

    @twin(local.Queue.cancel_scheduled)
    async def cancel_scheduled(self, message_id: int) -> bool:
        if not isinstance(message_id, int) or isinstance(message_id, bool):
            raise InvalidArgument(f"an id is a number that publish answered, not {message_id!r}")
        if not 0 < message_id < 1 << 62:
            return False
        said = asked(queue=self.name)
        done = await self._ask(Verb.CANCEL_SCHEDULED, said, "cancelling in", value=message_id)
        return done.code == 1

    @twin(local.Queue.delete)
    async def delete(self, *, force: bool) -> None:
        await self._look("length")  # NotFound if it was deleted
        await self._broker._delete("queue", self.name, force)

    loan = not_local("Queue.loan", local.Queue.loan)
    producer = not_local("Queue.producer", local.Queue.producer)
    port = not_local("Queue.port", local.Queue.port)
    histograms = not_local("Queue.histograms", local.Queue.histograms)
    latency = not_local("Queue.latency", local.Queue.latency)

    # --- asking -------------------------------------------------------------------------------

    async def _ask(self, verb: Verb, body: bytes, doing: str, **more: Any) -> Outcome:
        what = f"{doing} queue {self.name!r}"
        return await self._session.begin(what, verb, body=body, **more)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self._broker).queue, (self._broker, self.name)

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} of {self._broker.uri}>"
