"""A connection to a vhost: the broker, as a program sees it.

There is no process behind it: the vhost is segments in /dev/shm, and a connection makes this
process one of those who share them.  Any thread may use it.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from time import sleep
from typing import Any, Literal, Unpack

from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import Error, InvalidArgument, NotFound, SegmentExists, error_for
from shmbroker.ipc.base.names import name_bytes
from shmbroker.ipc.base.owner import owner_of
from shmbroker.ipc.base.signature import shows
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.catalog.catalog import (
    BindingInfo,
    Catalog,
    ExchangeInfo,
    QueueInfo,
    SubscriptionInfo,
)
from shmbroker.ipc.catalog.kinds import KINDS
from shmbroker.ipc.connection.handle import Handles
from shmbroker.ipc.connection.serialized import (
    SerializedDurableQueue,
    SerializedQueue,
    SerializedSubscription,
)
from shmbroker.ipc.exchange.binding import binding_for_c, named
from shmbroker.ipc.exchange.exchange import Exchange
from shmbroker.ipc.exchange.named_subscription import NamedSubscription, open_subscription
from shmbroker.ipc.message.serializer import AnySerializer, Codec, codec_of
from shmbroker.ipc.queue.durable import DurableQueue
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.queue.subscription import Subscription
from shmbroker.ipc.ring.port import Port
from shmbroker.ipc.settings.setting import (
    DEFAULTS,
    OF_PATTERNS,
    CommonSettings,
    PatternSettings,
    Settings,
)
from shmbroker.ipc.settings.settings import Pattern, for_c, replicate_number
from shmbroker.ipc.transaction.transaction import Transaction
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.ipc.vhost.participants import ErrorInfo, ParticipantInfo, Participants

SCHEME = "shm://"
DRAIN_NAP_S = 0.005


def vhost_of(url: str) -> str:
    if not isinstance(url, str) or not url.startswith(SCHEME):
        raise InvalidArgument(f"{url!r} is no address of a vhost: write {SCHEME}NAME")
    return url.removeprefix(SCHEME)


def connect(
    url: str,
    *,
    create: bool = False,
    name: str | None = None,
    spin: Seconds | None = None,
    observe: bool = False,
    arena_bytes: int = vhosts.ARENA_BYTES,
) -> Broker:
    """Take part in the vhost shm://NAME; with `create` it is made if there is none.

    `name` is how people see us; the program's if it is left out.  `spin` is for how many seconds a
    wait looks before it sleeps: a few microseconds, unless you have a processor to spare.  Who
    observes looks only, is no participant, and repairs nothing.
    """
    vhost = vhost_of(url)
    if create and not vhosts.exists(vhost):
        with suppress(SegmentExists):  # somebody else was faster: just as well
            vhosts.create(vhost, arena_bytes=arena_bytes)
    made = ffi.new("sb_connection **")
    if observe:
        code = lib.sb_observe(name_bytes(vhost), made)
    else:
        called = name_bytes(name) if name is not None else ffi.NULL
        code = lib.sb_connect(name_bytes(vhost), called, made)
    if code != OK:
        raise _error(code, f"connecting to {url}")
    lib.sb_wait_in_slices(made[0])
    broker = Broker(vhost, made[0])
    broker._how = {"name": name, "spin": spin, "observe": observe}
    if spin is not None:
        lib.sb_spin(made[0], nanoseconds(spin))
    return broker


def _connect_again(vhost: str, how: dict[str, Any]) -> Broker:
    """What a broker is pickled as: another process opens the vhost for itself."""
    return connect(SCHEME + vhost, **how)


def slots_for_c(slots: int | None) -> int:
    if slots is None:
        return 0
    if not isinstance(slots, int) or slots < 0:
        raise InvalidArgument(f"slots is a number of messages, not {slots!r}")
    if slots == 0:  # which leaves it open in C
        raise InvalidArgument("a queue has a power of two of slots, not 0")
    return min(slots, 1 << 60)


def _error(code: int, what: str) -> Error:
    return error_for(code, what, ffi.errno, detail_of(code))


class Broker(Closable):
    """A context manager: leaving it closes the connection."""

    def __init__(self, vhost: str, connection: Any) -> None:
        self.vhost = vhost
        self._connection = connection
        self._how: dict[str, Any] = {}
        # freed when neither we, nor a queue, nor a view of a message needs it any more
        self._owner = owner_of(connection)
        self._handles = Handles(self._owner)
        length = ffi.new("int64_t *")
        arena = lib.sb_arena(connection, length)
        kept = ffi.gc(ffi.cast("char *", arena), _Release(self._owner))
        self._arena = ffi.buffer(kept, length[0])
        self._catalog = Catalog(self._connection)
        self._participants = Participants(self._connection)
        self._queues: weakref.WeakValueDictionary[str, Queue] = weakref.WeakValueDictionary()
        self._opened: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._draining: list[bool] = []  # true when it is drained; loops look at it: it is fast
        self._asked: list[Any] = []  # structures for requests that are not in use
        self._ports: weakref.WeakSet[Port] = weakref.WeakSet()
        self._returned: Queue | None = None

    # --- declaring ----------------------------------------------------------------------------

    @shows(Settings, DEFAULTS)
    def declare_queue(
        self,
        name: str,
        *,
        slots: int | None = None,
        serializer: AnySerializer | None = None,
        **settings: Unpack[Settings],
    ) -> Queue:
        """Make a queue of so many slots, a power of two; 1,024 unless told otherwise.

        If it exists it is opened, and what is given must be as it is there: DeclaredDifferently
        names what is not.  What is left out may be anything.
        """
        wanted, _kept = for_c(settings)
        self._check(
            lib.sb_declare_queue_with(
                self._connection, name_bytes(name), slots_for_c(slots), wanted
            ),
            f"declaring queue {name!r}",
        )
        return self.queue(name, serializer=serializer)

    @shows(PatternSettings, OF_PATTERNS)
    def settings(self, pattern: str, **settings: Unpack[PatternSettings]) -> None:
        """Settings of queues that are declared from now on and whose names match the pattern.

        Words between dots, as in topics: `orders.#`, `*.eu`.  What a queue is declared with wins
        over any pattern; of patterns the most specific that has the setting.  Once more for the
        same pattern replaces all that it had.  Queues that are there keep what they have, but for
        `redistribution_delay` and `redistribution_filters`.
        """
        wanted, _kept = for_c(settings, OF_PATTERNS)
        code = lib.sb_settings_put(self._connection, name_bytes(pattern), wanted)
        self._check(code, f"settings of {pattern!r}")

    def remove_settings(self, pattern: str) -> None:
        """Queues that are declared from now on get nothing from this pattern."""
        code = lib.sb_settings_remove(self._connection, name_bytes(pattern))
        self._check(code, f"settings of {pattern!r}")

    @shows(Settings, DEFAULTS)
    def temporary_queue(
        self,
        *,
        slots: int | None = None,
        serializer: AnySerializer | None = None,
        **settings: Unpack[Settings],
    ) -> Queue:
        """Make a queue with a name of its own, which vanishes when we close, or die."""
        codec = codec_of(serializer)
        wanted, _kept = for_c(settings)
        made = ffi.new("sb_queue **")
        self._check(
            lib.sb_temporary_queue(self._connection, slots_for_c(slots), wanted, made),
            "a temporary queue",
        )
        return self._queue_of(made[0], codec)

    def returned(self) -> Queue:
        """The temporary queue of what nobody took at the broker of a message transfer agent.

        From the first call on, what we publish as mandatory or immediate comes there if that is so,
        with the properties `returned.exchange` and `returned.reason`.
        """
        if self._returned is None:
            made = self.temporary_queue()
            self._check(lib.sb_returns_to(self._connection, made._queue), "returns")
            self._returned = made
        return self._returned

    def _temporary_queue(self, name: str, slots: int | None, settings: Any) -> Queue:
        """temporary_queue of this name."""
        wanted, _kept = for_c(settings)
        made = ffi.new("sb_queue **")
        code = lib.sb_temporary_queue_as(
            self._connection, name_bytes(name), slots_for_c(slots), wanted, made
        )
        self._check(code, f"temporary queue {name!r}")
        return self._queue_of(made[0], None)

    def declare_exchange(
        self,
        name: str,
        kind: Literal["direct", "topic", "fanout", "headers"] | str,
        *,
        alternate: str | None = None,
        replicate: Literal["all", "configuration", "none"] | None = None,
    ) -> Exchange:
        """Make an exchange; what none of its bindings takes goes to the alternate.

        `replicate` "none": another member of a replicated node that takes over has none of it; by
        default it is as that node is configured.
        """
        if kind not in KINDS:
            raise InvalidArgument(f"an exchange is {', '.join(KINDS)}, not {kind!r}")
        other = name_bytes(alternate) if alternate is not None else ffi.NULL
        code = lib.sb_declare_exchange_with(
            self._connection, name_bytes(name), KINDS.index(kind), other,
            replicate_number(replicate),
        )  # fmt: skip
        self._check(code, f"declaring exchange {name!r}")
        return self.exchange(name)

    def bind(
        self,
        exchange: Exchange | str,
        destination: Queue | Exchange | str,
        key: str = "",
        *,
        arguments: Mapping[str, Any] | None = None,
        match: Literal["all", "any"] = "all",
        to: Literal["queue", "exchange"] | None = None,
    ) -> None:
        """Let messages of an exchange reach a queue, or another exchange; twice is once.

        Each is named, or the object itself.  A name is a queue's, unless `to` says "exchange".
        """
        binding, _kept = binding_for_c(exchange, destination, key, arguments, match, to)
        self._check(
            lib.sb_bind(self._connection, binding),
            f"binding {named(destination)!r} to {named(exchange)!r}",
        )

    def unbind(
        self,
        exchange: Exchange | str,
        destination: Queue | Exchange | str,
        key: str = "",
        *,
        arguments: Mapping[str, Any] | None = None,
        match: Literal["all", "any"] = "all",
        to: Literal["queue", "exchange"] | None = None,
    ) -> None:
        """Undo just this binding."""
        binding, _kept = binding_for_c(exchange, destination, key, arguments, match, to)
        self._check(
            lib.sb_unbind(self._connection, binding),
            f"unbinding {named(destination)!r} from {named(exchange)!r}",
        )

    def divert(
        self,
        source: Exchange | str,
        to: Exchange | str,
        *,
        exclusive: bool = False,
        key: str | None = None,
    ) -> None:
        """Let what goes to one exchange go to another as well, or exclusively: only there.

        With a key, just what a binding of that key would take.
        """
        binding, _kept = self._diversion(source, to, key)
        binding.exclusive = bool(exclusive)
        self._check(
            lib.sb_bind(self._connection, binding), f"diverting {named(source)!r} to {named(to)!r}"
        )

    def undivert(
        self, source: Exchange | str, to: Exchange | str, *, key: str | None = None
    ) -> None:
        """Undo just this divert."""
        binding, _kept = self._diversion(source, to, key)
        self._check(
            lib.sb_unbind(self._connection, binding), f"no longer diverting {named(source)!r}"
        )

    def _diversion(
        self, source: Exchange | str, to: Exchange | str, key: str | None
    ) -> tuple[Any, tuple[Any, ...]]:
        kind = self.exchange(named(source)).kind
        if key is None and kind == "direct":
            raise InvalidArgument(
                f"exchange {named(source)!r} is direct: name the key of what is to be diverted"
            )
        every = "#" if kind == "topic" else ""
        return binding_for_c(source, to, every if key is None else key, None, "all", "exchange")

    def delete_queue(self, name: str, *, force: bool = False) -> None:
        """Delete a queue and its messages; InUse if another participant uses it."""
        self._check(
            lib.sb_delete_queue(self._connection, name_bytes(name), force),
            f"deleting queue {name!r}",
        )

    def delete_exchange(self, name: str, *, force: bool = False) -> None:
        """Delete an exchange; InUse if it has bindings or is an alternate."""
        self._check(
            lib.sb_delete_exchange(self._connection, name_bytes(name), force),
            f"deleting exchange {name!r}",
        )

    # --- using --------------------------------------------------------------------------------

    def queue(self, name: str, *, serializer: AnySerializer | None = None) -> Queue:
        """A queue that exists, or that a pattern with auto_create is for.

        With a serializer it publishes values: "json", "orjson", "msgpack", "pickle", or what has
        dumps and loads; Message.value and receive answer values (docs/handles.md).
        """
        return self._open_queue(lib.sb_open_queue, name, codec_of(serializer))

    def _queue_there(self, name: str) -> Queue:
        """The same, and no pattern makes it: for who only looks."""
        return self._open_queue(lib.sb_find_queue, name, None)

    def _open_queue(self, opens: Any, name: str, codec: Codec | None) -> Queue:
        opened = ffi.new("sb_queue **")
        self._check(opens(self._connection, name_bytes(name), opened), f"queue {name!r}")
        return self._queue_of(opened[0], codec)

    def _queue_of(self, queue: Any, codec: Codec | None) -> Queue:
        """What C has opened; without a serializer the one object that we have for it, if any."""
        queue = self._handles.opened(queue)
        name = ffi.string(lib.sb_queue_name(queue)).decode()
        is_durable = lib.sb_is_durable(queue)
        if codec is not None:
            face = SerializedDurableQueue if is_durable else SerializedQueue
            serialized = face(self, name, queue, self._arena)
            serialized._kept.codec = codec
            self._opened.add(serialized)
            return serialized
        known = self._queues.get(name)
        if known is not None and known._queue == queue:
            return known
        kind = DurableQueue if is_durable else Queue
        made = self._queues[name] = kind(self, name, queue, self._arena)
        self._opened.add(made)
        return made

    def exchange(self, name: str) -> Exchange:
        """An exchange that exists; "" is the default one, whose keys are names of queues."""
        opened = ffi.new("sb_exchange **")
        encoded = name_bytes(name)
        self._check(lib.sb_open_exchange(self._connection, encoded, opened), f"exchange {name!r}")
        return Exchange(self, name, opened[0])

    def subscribe(
        self,
        queue: str,
        *,
        start: Literal["now", "earliest"] = "now",
        lossy: bool = False,
        timeout: Seconds | None = None,
    ) -> Subscription:
        """See every message of a queue without taking any.

        A subscriber holds the ring back while it is slow, unless it is lossy.
        """
        if start not in ("now", "earliest"):
            raise InvalidArgument(f"start is 'now' or 'earliest', not {start!r}")
        from_now = start == "now"
        return Subscription(self.queue(queue), from_now=from_now, lossy=lossy, timeout=timeout)

    def transaction(self, *, timeout: Seconds | None = None, warn: bool = True) -> Transaction:
        """Publishes and acknowledgements that happen together: `with broker.transaction() as tx`.

        What happens together is what goes through `tx`, as in `tx.queue("orders").publish(...)`.
        What is published beside it inside the block takes effect at once; a RuntimeWarning says so
        the first time, unless `warn` is False.  `timeout` is for how long the commit at the end of
        `with` waits for room.
        """
        return Transaction(self, timeout, warn)

    @shows(CommonSettings, DEFAULTS)
    def subscription(
        self,
        name: str,
        *,
        exchange: str,
        key: str = "",
        durable: bool = False,
        shared: bool = False,
        slots: int | None = None,
        serializer: AnySerializer | None = None,
        **settings: Unpack[CommonSettings],
    ) -> NamedSubscription:
        """Consume what an exchange has for this key, from a queue that this name stands for.

        A durable one collects messages while nobody consumes it; another one vanishes with its last
        consumer.  A shared one has any number of them; SubscriptionTaken if another one has another
        consumer.
        """
        codec, wanted = codec_of(serializer), slots_for_c(slots)
        kind = NamedSubscription if codec is None else SerializedSubscription
        opened = open_subscription(
            self, kind, name, exchange, key, durable, shared, wanted, settings
        )
        opened._kept.codec = codec
        opened._asked = {
            "exchange": exchange, "key": key, "durable": durable, "shared": shared,
            "slots": slots, "serializer": codec, **settings,
        }  # fmt: skip
        return opened

    def unsubscribe(self, name: str, *, force: bool = False) -> None:
        """Delete a subscription and what it has collected; InUse if another participant has it."""
        code = lib.sb_subscription_delete(self._connection, name_bytes(name), force)
        self._check(code, f"unsubscribing {name!r}")

    # --- looking ------------------------------------------------------------------------------

    @property
    def participant(self) -> int:
        """Our number among the participants."""
        number: int = lib.sb_participant(self._connection)
        return number

    @property
    def message_bytes_max(self) -> int:
        """What a message has at most: a quarter of the arena."""
        return len(self._arena) // 4

    def queues(self) -> list[QueueInfo]:
        """All queues, by name.  Of each that is not empty all slots are looked at."""
        self._check_open()
        entries = list(self._catalog.queues())
        uses = self._participants.uses([entry.reference for entry in entries])
        found = [self._catalog.queue_info(entry, uses) for entry in entries]
        return sorted(found, key=attrgetter("name"))  # whole ones take ten times as long to compare

    def patterns(self) -> list[Pattern]:
        """All settings by pattern."""
        self._check_open()
        return sorted(self._catalog.patterns())

    def exchanges(self) -> list[ExchangeInfo]:
        """All exchanges, by name."""
        self._check_open()
        return sorted(self._catalog.exchanges())

    def bindings(self) -> list[BindingInfo]:
        """All bindings, by exchange and destination."""
        self._check_open()
        return sorted(self._catalog.bindings(), key=lambda each: (each.exchange, each.destination))

    def subscriptions(self) -> list[SubscriptionInfo]:
        """All subscriptions by name."""
        self._check_open()
        found = self._catalog.subscriptions()
        return sorted(
            replace(each, depth=self._catalog.depth_of(each.queue) or 0) for each in found
        )

    def participants(self) -> list[ParticipantInfo]:
        """Everybody who takes part in this vhost, by number."""
        self._check_open()
        return self._participants.listed(self._catalog.queue_names())

    def errors(self) -> list[ErrorInfo]:
        """The distinct errors that participants have met, the latest first."""
        self._check_open()
        return self._participants.errors()

    # --- repair -------------------------------------------------------------------------------

    def repair(self) -> int:
        """Put right what dead participants have left; waiting calls do so by themselves."""
        repaired: int = lib.sb_repair(self._connection)
        if repaired < 0:
            raise self._error(repaired, "repairing")
        self._tell_log()
        return repaired

    def repair_for(self, timeout: Seconds | None = None) -> int:
        """Wait for the death of a participant, and repair what it left at once."""
        repaired: int = lib.sb_repair_for(self._connection, nanoseconds(timeout))
        if repaired < 0 and repaired != lib.SB_INTERRUPTED:
            raise self._error(repaired, "repairing")
        self._tell_log()
        return max(0, repaired)

    def _tell_log(self) -> None:
        """Tell the logger `shmbroker` what we have repaired and found since the last time."""
        if noted := lib.sb_noted(self._connection):
            from shmbroker.ipc.connection.found import tell

            tell(self.vhost, self._participants, noted)

    def drain(self, *, timeout: Seconds | None = 30.0) -> int:
        """Finish what was begun, and close: how many messages were left in hand, for others.

        Loops of consume end before their next message.  What was published to durable queues that
        we have handles of gets on disk: Unconfirmed if not in time.  What is in hand may be dealt
        with until then, by other threads.  In any case the connection is closed at the end.
        """
        deadline = Deadline(nanoseconds(timeout))
        self._draining.append(True)
        try:
            for queue in self._durable_queues():
                with suppress(NotFound):  # it was deleted
                    queue.confirm(timeout=deadline.seconds_left())
            while (left := self._in_hand()) > 0 and deadline.left() != 0:
                sleep(DRAIN_NAP_S)
            return left
        finally:
            self.close()

    def _durable_queues(self) -> list[DurableQueue]:
        return [each for each in self._opened if isinstance(each, DurableQueue)]

    def _in_hand(self) -> int:
        count: int = lib.sb_in_hand(self._connection)
        return count

    def close(self) -> None:
        """Leave the vhost: who waits gets ConnectionClosed, what we have taken goes to others."""
        self._tell_log()
        for port in list(self._ports):
            port.disconnect()
        lib.sb_disconnect(self._connection)

    @property
    def is_closed(self) -> bool:
        return bool(lib.sb_closed(self._connection) != OK)

    def __reduce__(self) -> tuple[Any, ...]:
        return _connect_again, (self.vhost, self._how)

    def __repr__(self) -> str:
        number = 0 if self.is_closed else self.participant
        state = "closed" if self.is_closed else f"participant {number}" if number else "observer"
        return f"<Broker of {self.vhost!r}, {state}>"

    def _check_open(self) -> None:
        self._check(lib.sb_closed(self._connection), "looking")

    def _check(self, code: int, what: str) -> None:
        if code < 0:
            raise self._error(code, what)

    def _error(self, code: int, what: str) -> Error:
        return _error(code, f"vhost {self.vhost!r}, {what}")


class _Release:
    """Called when the last view of the arena is gone: then the connection may be freed."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __call__(self, arena: Any) -> None:
        del self._owner
