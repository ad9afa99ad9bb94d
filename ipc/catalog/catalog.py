"""Reading the catalog of a vhost: its queues, exchanges and bindings.  Needs no lock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any

from shmbroker.core import layout as at
from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidName
from shmbroker.ipc.base.names import name_bytes
from shmbroker.ipc.catalog.kinds import kind_of
from shmbroker.ipc.message.properties import readable, unpack
from shmbroker.ipc.settings.settings import Pattern, replicate_name

_WORDS = Struct("<8q")
NAMELESS = at.QUEUE_SCHEDULE | at.QUEUE_INBOX | at.QUEUE_MARKS
"""Queues that belong to others, or to sinks: people do not see them."""


@dataclass(frozen=True, slots=True, order=True)
class QueueInfo:
    name: str
    slots: int
    id: int
    depth: int
    published: int
    consumers: int
    producers: int
    paused: bool
    created_at: int
    durable: bool = False


@dataclass(frozen=True, slots=True, order=True)
class ExchangeInfo:
    name: str
    kind: str
    alternate: str | None
    bindings: int
    replicate: str = "none"
    """What another member of a replicated node has of it when it takes over."""


@dataclass(frozen=True, slots=True)
class BindingInfo:
    exchange: str
    destination: str
    to: str
    key: str
    arguments: dict[str, Any]
    """Empty if they cannot be read: a program in C may give any bytes."""
    match: str
    exclusive: bool = False
    """What it takes goes to no other binding of its exchange."""


@dataclass(frozen=True, slots=True)
class BindingRow:
    binding: BindingInfo
    packed: bytes
    """Its arguments."""
    target: int
    """0: a user's; else the cluster's, or an agent's (BINDING_TARGET_AT)."""
    forwards: int = 0
    """FORWARD_* of a binding by which an agent forwards."""


@dataclass(frozen=True, slots=True, order=True)
class SubscriptionInfo:
    name: str
    queue: str
    exchange: str | None
    """None if the exchange was deleted."""
    key: str
    durable: bool
    shared: bool
    consumer: int | None
    """The participant that has it, if it is not shared."""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a table, copied."""

    index: int
    reference: int
    words: tuple[int, ...]
    data: bytes

    @property
    def name(self) -> str:
        length = max(0, min(self.words[0], at.NAME_BYTES_MAX))
        return self.data[at.ENTRY_NAME_AT : at.ENTRY_NAME_AT + length].decode(errors="replace")

    def word(self, offset: int) -> int:
        return self.words[offset // 8]


def _in_page(entry: Entry, offset: int) -> int:
    return int.from_bytes(_bytes_in(entry, offset, 8), "little")


def _bytes_in(entry: Entry, offset: int, length: int) -> bytes:
    start = offset - at.RING_SETTINGS_AT
    return entry.data[start : start + length]


def _pattern(entry: Entry) -> Pattern:
    name = _bytes_in(entry, at.SETTINGS_PATTERN_AT + 8, _in_page(entry, at.SETTINGS_PATTERN_AT))
    length = _in_page(entry, at.SETTINGS_GIVEN_LENGTH_AT)
    settings = unpack(_bytes_in(entry, at.SETTINGS_GIVEN_AT, length))
    return Pattern(name.decode(errors="replace"), settings)


class Catalog:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._catalog = lib.sb_catalog(connection)
        self._glanced = tuple(ffi.new("int64_t *") for _ in range(3))

    @property
    def generation(self) -> int:
        """Moves with each change."""
        generation: int = lib.sb_catalog_generation(self._catalog)
        return generation

    def _rows(self, table: int) -> Iterator[Entry]:
        size = at.SETTINGS_ENTRY_BYTES if table == at.SETTINGS else at.ENTRY_BYTES
        buffer = ffi.new("char[]", size)
        index = lib.sb_row_next(self._catalog, table, 0)
        while index >= 0:
            reference = lib.sb_row_copy(self._catalog, table, index, buffer)
            if reference >= 0:  # not removed since
                data = ffi.buffer(buffer)[:]
                yield Entry(index, reference, _WORDS.unpack_from(data), data)
            index = lib.sb_row_next(self._catalog, table, index + 1)

    def all_queues(self) -> Iterator[Entry]:
        """Also those that belong to others."""
        return self._rows(at.QUEUES)

    def queues(self) -> Iterator[Entry]:
        """Those that have a name for people."""
        for entry in self._rows(at.QUEUES):
            if not entry.word(at.QUEUE_FLAGS_AT) & NAMELESS:
                yield entry

    def queue_names(self) -> dict[int, str]:
        """Name by reference."""
        return {entry.reference: entry.name for entry in self.queues()}

    def queue_info(self, entry: Entry, uses: dict[int, tuple[int, int]]) -> QueueInfo:
        """A queue as a glance shows it, and its depth counted, if there may be something: between
        head and tail may be what is done with."""
        head, tail, paused = self._glanced
        code = lib.sb_glance(self._connection, entry.reference, head, tail, paused)
        known = code == OK
        consumers, producers = uses.get(entry.reference, (0, 0))
        name, depth = entry.name, max(0, tail[0] - head[0]) if known else 0
        if depth > 0 and (counted := self.depth_of(name)) is not None:
            depth = counted
        return QueueInfo(
            name=name,
            slots=entry.word(at.QUEUE_SLOTS_AT),
            id=entry.index,
            depth=depth,
            published=tail[0] if known else 0,
            consumers=consumers,
            producers=producers,
            paused=bool(known and paused[0]),
            created_at=entry.word(at.QUEUE_CREATED_AT),
            durable=bool(entry.word(at.QUEUE_FLAGS_AT) & at.QUEUE_DURABLE),
        )

    def depth_of(self, name: str) -> int | None:
        """Counted, without an object of the queue; None: it was deleted since, or is damaged."""
        opened, told = ffi.new("sb_queue **"), ffi.new("sb_queue_statistics *")
        try:
            code = lib.sb_find_queue(self._connection, name_bytes(name), opened)
        except InvalidName:  # something else has written there
            return None
        if code < OK:
            return None
        code = lib.sb_statistics(opened[0], told)
        lib.sb_close_queue(opened[0])
        return int(told.ready + told.leased) if code >= OK else None

    def patterns(self) -> list[Pattern]:
        """While one is changed it is there twice: the later is valid."""
        entries = sorted(
            self._rows(at.SETTINGS), key=lambda entry: _in_page(entry, at.SETTINGS_SERIAL_AT)
        )
        found = (_pattern(entry) for entry in entries)
        return list({each.pattern: each for each in found}.values())

    def subscriptions(self) -> Iterator[SubscriptionInfo]:
        bound = {each.destination: each for each in self.bindings() if each.to == "queue"}
        for entry in self.queues():
            flags = entry.word(at.QUEUE_FLAGS_AT)
            if not flags & at.QUEUE_SUBSCRIPTION:
                continue
            binding = bound.get(entry.name)
            shared = bool(flags & at.QUEUE_SHARED)
            yield SubscriptionInfo(
                name=entry.name.removeprefix("sub."),
                queue=entry.name,
                exchange=binding.exchange if binding else None,
                key=binding.key if binding else "",
                durable=not flags & at.QUEUE_TEMPORARY,
                shared=shared,
                consumer=None if shared else entry.word(at.QUEUE_OWNER_AT) or None,
            )

    def exchanges(self) -> Iterator[ExchangeInfo]:
        entries = list(self._rows(at.EXCHANGES))
        names = {entry.reference: entry.name for entry in entries}
        for entry in entries:
            yield ExchangeInfo(
                name=entry.name,
                kind=kind_of(entry.word(at.EXCHANGE_KIND_AT), entry.name),
                alternate=names.get(entry.word(at.EXCHANGE_ALTERNATE_AT)),
                bindings=lib.sb_bindings_from(self._catalog, entry.reference),
                replicate=replicate_name(entry.word(at.EXCHANGE_REPLICATE_AT)),
            )

    def bindings(self) -> Iterator[BindingInfo]:
        """Those of users."""
        return (each.binding for each in self._bindings() if each.target == 0)

    def users_bindings(self) -> Iterator[BindingRow]:
        """The same, with their arguments as they were packed."""
        return (each for each in self._bindings() if each.target == 0)

    def own_bindings(self) -> Iterator[BindingRow]:
        """Those of the cluster."""
        return (each for each in self._bindings() if each.target)

    def _bindings(self) -> Iterator[BindingRow]:
        bindings = list(self._rows(at.BINDINGS))
        if not bindings:  # all queues would be looked at for nothing
            return
        exchanges = {entry.reference: entry.name for entry in self._rows(at.EXCHANGES)}
        queues = self.queue_names()
        for entry in bindings:
            to_exchange = entry.word(at.BINDING_KIND_AT) == at.EXCHANGES
            names = exchanges if to_exchange else queues
            source = exchanges.get(entry.word(at.BINDING_SOURCE_AT))
            destination = names.get(entry.word(at.BINDING_DESTINATION_AT))
            if source is None or destination is None:
                continue  # what it bound was deleted
            key_end = at.BINDING_KEY_AT + entry.word(at.BINDING_KEY_LENGTH_AT)
            end = key_end + entry.word(at.BINDING_ARGUMENTS_LENGTH_AT)
            info = BindingInfo(
                exchange=source,
                destination=destination,
                to="exchange" if to_exchange else "queue",
                key=entry.data[at.BINDING_KEY_AT : key_end].decode(errors="replace"),
                arguments=readable(entry.data[key_end:end])[0],
                match="any" if entry.word(at.BINDING_MATCH_AT) == at.MATCH_ANY else "all",
                exclusive=entry.word(at.BINDING_EXCLUSIVE_AT) != 0,
            )
            match = entry.word(at.BINDING_MATCH_AT)
            yield BindingRow(
                info, entry.data[key_end:end], entry.word(at.BINDING_TARGET_AT),
                match if match > at.MATCH_ANY else 0,
            )  # fmt: skip
