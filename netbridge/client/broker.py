"""A connection to a broker on another host: the verbs of ipc/connection/broker.py."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar
from weakref import WeakSet, WeakValueDictionary, finalize

from shmbroker.ipc.aio.verb import twin
from shmbroker.ipc.base.errors import InvalidArgument, NotFound, NotLocal
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.catalog.kinds import KINDS
from shmbroker.ipc.connection import broker as local
from shmbroker.ipc.message.serializer import AnySerializer, Codec, codec_of
from shmbroker.ipc.settings.setting import OF_PATTERNS
from shmbroker.ipc.settings.settings import for_c, replicate_number
from shmbroker.netbridge.client import found
from shmbroker.netbridge.client.closing import Closing
from shmbroker.netbridge.client.exchange import Exchange
from shmbroker.netbridge.client.member import Member
from shmbroker.netbridge.client.not_local import OF_ASYNCIO, not_local, refused
from shmbroker.netbridge.client.producing import Producing
from shmbroker.netbridge.client.queue import Queue
from shmbroker.netbridge.client.subscription import opened
from shmbroker.netbridge.client.waiting import finished
from shmbroker.netbridge.remote.action import Event
from shmbroker.netbridge.remote.body import asked, told
from shmbroker.netbridge.remote.outcome import Token
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.client.pending import Pending
    from shmbroker.netbridge.client.session import Session

T = TypeVar("T")


def named(thing: Any) -> str:
    """A queue or an exchange: its name, or the object itself."""
    name = getattr(thing, "name", thing)
    if not isinstance(name, str):
        raise InvalidArgument(f"a queue or an exchange, or its name, and not {thing!r}")
    return name


def plain(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Settings as they may travel."""
    made = {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in settings.items()
    }
    return made or None


class Broker(Closing):
    """A context manager: leaving it closes the connection."""

    kinds: ClassVar[dict[str, Any]] = {}
    """The classes of what it opens, by name: of this way to wait."""

    def __init__(self, session: Session, vhost: str) -> None:
        self._session = session
        self.vhost = vhost
        self._queues: WeakValueDictionary[str, Queue] = WeakValueDictionary()
        self._opened: WeakSet[Queue] = WeakSet()
        self._producings: dict[tuple[str, str], Producing] = {}
        session.handles = self._producings
        self._stands: dict[int, tuple[str, str]] = {}
        """Temporary queues and subscriptions, by target: made again with the session."""
        self._draining: list[bool] = []
        finalize(self, session.drop)  # who forgets to close leaves no thread behind

    @property
    def uri(self) -> str:
        """Whom it is connected to, or was asked to."""
        return str(self._session.member or self._session.uri)

    def _producing(self, noun: str, name: str) -> Producing:
        return self._producings.setdefault((noun, name), Producing(self._session, noun, name))

    def _at_once(self, what: str, verb: Coroutine[Any, Any, T]) -> T:
        """For what is not awaited with asyncio."""
        if self._session.way.is_blocking:
            return finished(verb)
        verb.close()
        raise NotLocal(f"{what} asks the broker, and is not awaited: use {OF_ASYNCIO[what]}")

    def _ask(self, verb: Verb, what: str, waits: Seconds | None = 0, **fields: Any) -> Pending:
        return self._session.begin(what, verb, body=asked(**fields), waits=waits)

    # --- declaring ----------------------------------------------------------------------------

    @twin(local.Broker.declare_queue)
    async def declare_queue(
        self, name: str, *, slots: int | None, serializer: AnySerializer | None, **settings: Any
    ) -> Queue:
        codec = codec_of(serializer)
        local.slots_for_c(slots)
        for_c(settings)  # refuses what is no setting
        what = f"declaring queue {name!r}"
        done = await self._ask(
            Verb.DECLARE, what, queue=name, slots=slots, settings=plain(settings)
        )
        return self._queue_of(name, told(done.body), codec)

    @twin(local.Broker.settings)
    async def settings(self, pattern: str, **settings: Any) -> None:
        for_c(settings, OF_PATTERNS)
        what = f"settings of {pattern!r}"
        await self._ask(Verb.SETTINGS, what, pattern=pattern, settings=plain(settings) or {})

    @twin(local.Broker.remove_settings)
    async def remove_settings(self, pattern: str) -> None:
        await self._ask(Verb.SETTINGS, f"settings of {pattern!r}", pattern=pattern, removes=True)

    @twin(local.Broker.temporary_queue)
    async def temporary_queue(
        self, *, slots: int | None, serializer: AnySerializer | None, **settings: Any
    ) -> Queue:
        codec = codec_of(serializer)
        local.slots_for_c(slots)
        for_c(settings)
        target = next(self._session.targets)
        done = await self._session.begin(
            "a temporary queue", Verb.TEMPORARY_QUEUE, target,
            body=asked(slots=slots, settings=plain(settings)),
        )  # fmt: skip
        made = told(done.body)
        self._stands[target] = "queue", made["name"]
        return self._queue_of(made["name"], made, codec)

    @twin(local.Broker.declare_exchange)
    async def declare_exchange(
        self,
        name: str,
        kind: str,
        *,
        alternate: str | None,
        replicate: Literal["all", "configuration", "none"] | None,
    ) -> Exchange:
        if kind not in KINDS:
            raise InvalidArgument(f"an exchange is {', '.join(KINDS)}, not {kind!r}")
        replicate_number(replicate)
        what = f"declaring exchange {name!r}"
        await self._ask(
            Verb.DECLARE, what, exchange=name, kind=kind, alternate=alternate, replicate=replicate
        )
        return Broker._exchange_of(self, name, kind)

    @twin(local.Broker.bind)
    async def bind(
        self,
        exchange: Any,
        destination: Any,
        key: str,
        *,
        arguments: Mapping[str, Any] | None,
        match: Literal["all", "any"],
        to: Literal["queue", "exchange"] | None,
    ) -> None:
        await self._bind(Verb.BIND, exchange, destination, key, arguments, match, to)

    @twin(local.Broker.unbind)
    async def unbind(
        self,
        exchange: Any,
        destination: Any,
        key: str,
        *,
        arguments: Mapping[str, Any] | None,
        match: Literal["all", "any"],
        to: Literal["queue", "exchange"] | None,
    ) -> None:
        await self._bind(Verb.UNBIND, exchange, destination, key, arguments, match, to)

    async def _bind(
        self,
        verb: Verb,
        exchange: Any,
        destination: Any,
        key: str,
        arguments: Mapping[str, Any] | None,
        match: str,
        to: str | None,
    ) -> None:
        if isinstance(destination, Exchange):
            to = "exchange"
        await self._ask(
            verb, f"binding {named(destination)!r} to {named(exchange)!r}",
            exchange=named(exchange), destination=named(destination), key=key,
            arguments=None if arguments is None else dict(arguments), match=match, to=to,
        )  # fmt: skip

    @twin(local.Broker.divert)
    async def divert(self, source: Any, to: Any, *, exclusive: bool, key: str | None) -> None:
        await self._ask(
            Verb.BIND, f"diverting {named(source)!r} to {named(to)!r}", exchange=named(source),
            destination=named(to), diverts=True, exclusive=exclusive, key=key,
        )  # fmt: skip

    @twin(local.Broker.undivert)
    async def undivert(self, source: Any, to: Any, *, key: str | None) -> None:
        await self._ask(
            Verb.UNBIND, f"no longer diverting {named(source)!r}", exchange=named(source),
            destination=named(to), diverts=True, key=key,
        )  # fmt: skip

    @twin(local.Broker.delete_queue)
    async def delete_queue(self, name: str, *, force: bool) -> None:
        await self._delete("queue", name, force)

    @twin(local.Broker.delete_exchange)
    async def delete_exchange(self, name: str, *, force: bool) -> None:
        await self._delete("exchange", name, force)

    @twin(local.Broker.unsubscribe)
    async def unsubscribe(self, name: str, *, force: bool) -> None:
        await self._delete("subscription", name, force)

    async def _delete(self, noun: str, name: str, force: bool) -> None:
        producing = self._producings.pop((noun, name), None)
        if producing is not None:
            producing.forget()
        body = asked(force=force or None, **{noun: name})
        await self._session.begin(f"deleting {noun} {name!r}", Verb.DELETE, body=body)
        for target, what in tuple(self._stands.items()):
            if what == (noun, name):
                self._stands.pop(target, None)
                self._session.begin(f"leaving {noun} {name!r}", Verb.LEAVE, target)

    # --- using --------------------------------------------------------------------------------

    @twin(local.Broker.queue)
    async def queue(self, name: str, *, serializer: AnySerializer | None) -> Queue:
        return await self._open_queue(name, codec_of(serializer))

    def _queue_there(self, name: str) -> Any:
        """The same, and no pattern makes it: for who only looks.  Awaited with asyncio."""
        opening = self._open_queue(name, None, looks=True)
        return finished(opening) if self._session.way.is_blocking else opening

    async def _open_queue(
        self, name: str, codec: Codec | None, *, looks: bool | None = None
    ) -> Queue:
        what = f"queue {name!r}"
        done = await self._ask(Verb.DECLARE, what, queue=name, opens=True, looks=looks)
        return self._queue_of(name, told(done.body), codec)

    def _unopened(self, name: str) -> Queue:
        """For what is not awaited with asyncio: it is opened when it is used."""
        if self._session.way.is_blocking:
            return finished(self._open_queue(name, None))
        return self._queues.get(name) or self._queue_of(name, {}, None)

    def _queue_of(self, name: str, made: Mapping[str, Any], codec: Codec | None) -> Queue:
        known = self._queues.get(name) if codec is None else None
        if known is None or known.is_durable != bool(made.get("durable")):
            known = self.kinds["Queue"](self, name, made, codec)
            if codec is None:
                self._queues[name] = known
        return known

    @twin(local.Broker.exchange)
    async def exchange(self, name: str) -> Exchange:
        done = await self._ask(Verb.DECLARE, f"exchange {name!r}", exchange=name, opens=True)
        return self._exchange_of(name, told(done.body)["kind"])

    def _exchange_of(self, name: str, kind: str) -> Exchange:
        made: Exchange = self.kinds["Exchange"](self, name, kind)
        return made

    @twin(local.Broker.subscribe)
    def subscribe(
        self,
        queue: str,
        *,
        start: Literal["now", "earliest"],
        lossy: bool,
        timeout: Seconds | None,
    ) -> Any:
        if start not in ("now", "earliest"):
            raise InvalidArgument(f"start is 'now' or 'earliest', not {start!r}")
        if lossy:
            refused("Broker.subscribe(lossy=True)")
        made = self.kinds["Subscription"](self, queue, start, timeout)
        if self._session.way.is_blocking:
            finished(made._open())
        return made

    @twin(local.Broker.transaction)
    def transaction(self, *, timeout: Seconds | None, warn: bool) -> Any:
        return self.kinds["Transaction"](self, timeout)

    @twin(local.Broker.subscription)
    async def subscription(
        self,
        name: str,
        *,
        exchange: str,
        key: str,
        durable: bool,
        shared: bool,
        slots: int | None,
        serializer: AnySerializer | None,
        **settings: Any,
    ) -> Any:
        codec = codec_of(serializer)
        for_c(settings)
        target = next(self._session.targets)
        body = asked(
            subscription=name, exchange=exchange, key=key, durable=durable, shared=shared,
            slots=slots, settings=plain(settings),
        )  # fmt: skip
        done = await self._session.begin(f"subscription {name!r}", Verb.CONSUMER, target, body=body)
        self._stands[target] = "subscription", name
        return opened(self, told(done.body), name, target, codec)

    # --- looking ------------------------------------------------------------------------------

    async def _look(self, at: str, made: Callable[[Any], T]) -> T:
        done = await self._ask(Verb.LOOK, f"looking at {at}", at=at)
        return made(told(done.body).get("found", []))

    @twin(local.Broker.queues)
    async def queues(self) -> Any:
        return await self._look("queues", found.queues)

    @twin(local.Broker.patterns)
    async def patterns(self) -> Any:
        return await self._look("patterns", found.patterns)

    @twin(local.Broker.exchanges)
    async def exchanges(self) -> Any:
        return await self._look("exchanges", found.exchanges)

    @twin(local.Broker.bindings)
    async def bindings(self) -> Any:
        return await self._look("bindings", found.bindings)

    @twin(local.Broker.subscriptions)
    async def subscriptions(self) -> Any:
        return await self._look("subscriptions", found.subscriptions)

    @twin(local.Broker.participants)
    async def participants(self) -> Any:
        return await self._look("participants", found.participants)

    @twin(local.Broker.errors)
    async def errors(self) -> Any:
        return await self._look("errors", found.errors)

    @property
    def participant(self) -> int:
        return refused("Broker.participant")

    @property
    def message_bytes_max(self) -> int:
        """What a message has at most: as much as the broker puts together of parts."""
        return self._session.message_bytes_max

    repair = not_local("Broker.repair", local.Broker.repair)
    returned = not_local("Broker.returned", local.Broker.returned)
    repair_for = not_local("Broker.repair_for", local.Broker.repair_for)

    async def order(self, verb: str, **fields: Any) -> list[dict[str, Any]]:
        """What the process of the broker is to do with its queue replicas, as `shmbroker ha` asks
        for it, and the answer is how they are then; or with its programs, links and users."""
        done = await self._session.begin(verb, Verb.ORDER, body=asked(verb=verb, **fields))
        shown: list[dict[str, Any]] = told(done.body).get("found", [])
        return shown

    # --- the session --------------------------------------------------------------------------

    def on_event(self, listener: Callable[[Event, str], object]) -> None:
        """Call it with each loss, and what became of it: in the network thread, so do not wait."""
        self._session.listeners.append(listener)

    async def retry(self, token: Token) -> int | None:
        """Publish what may have been published: once, whatever had become of it."""
        done = await self._session.retry(token, "publishing again")
        return done.value if done.code == 0 else None

    async def reconnect(self, uri: str | None = None) -> None:
        """After everything was given up: another session, in which tokens stay valid.

        With a uri: at one of its members, by the same user and password.  ConnectionClosed if none
        can be reached.
        """
        await self._session.reconnect(uri)

    def topology(self) -> tuple[Member, ...]:
        """The members of its list, as this program knows them: nobody is asked, so a listener may
        call it, and after a loss it is the last that was known."""
        return self._session.topology()

    # --- leaving ------------------------------------------------------------------------------

    @twin(local.Broker.drain)
    async def drain(self, *, timeout: Seconds | None) -> int:
        deadline, session = Deadline(nanoseconds(timeout)), self._session
        session.check_may_wait("draining")
        self._draining.append(True)
        try:
            session.ends_loops()
            for queue in {each.name: each for each in self._opened if each.is_durable}.values():
                with suppress(NotFound):  # it was deleted
                    await queue._operate("confirm", deadline.seconds_left())
            while (left := session.in_hand) and deadline.left() != 0:
                await session.way.wait(session.way.signal(), local.DRAIN_NAP_S)
            return left
        finally:
            await session.close()

    @twin(local.Broker.close)
    async def close(self) -> None:
        await self._session.close()

    @property
    def is_closed(self) -> bool:
        return self._session.is_closed

    async def _leave(self) -> None:
        await self._session.close()

    def __repr__(self) -> str:
        return f"<Broker of {self.uri}, {'closed' if self.is_closed else 'connected'}>"
