"""Exchanges and bindings as records of the journal have them (core/declared.py), read and made
again."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from shmbroker.core.codes import DIFFERENT, JOURNAL_DAMAGED, NOT_FOUND
from shmbroker.core.layout import (
    BINDING_PAYLOAD_BYTES,
    BINDINGS,
    DECLARED_BYTES_AT,
    EXCHANGES,
    NAME_BYTES_MAX,
    REPLICATE_NONE,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import checked
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.connection.broker import Broker

HEAD: Final = struct.Struct(f"={DECLARED_BYTES_AT // 8}q")
"""Table; kind or target; replicate, or how arguments match; exclusive, to_exchange; lengths of what
follows: of two names, of the key and of the arguments."""


@dataclass(frozen=True, slots=True)
class Exchange:
    name: bytes
    kind: int
    alternate: bytes
    """Empty: it has none."""
    replicate: int

    def declare(self, broker: Broker) -> int:
        alternate = self.alternate or ffi.NULL
        connection = broker._connection
        return int(
            lib.sb_declare_exchange_with(
                connection, self.name, self.kind, alternate, self.replicate
            )
        )


@dataclass(frozen=True, slots=True)
class Binding:
    source: bytes
    destination: bytes
    to_exchange: int
    target: int
    match_any: int
    exclusive: int
    key: bytes
    arguments: bytes

    def declare(self, broker: Broker) -> int:
        kept = [ffi.new("char[]", each) for each in (self.source, self.destination)]
        kept += [ffi.from_buffer(each) for each in (self.key, self.arguments)]
        asked = ffi.new("sb_binding *")
        asked.exchange, asked.destination, asked.key, asked.arguments = kept
        asked.key_length, asked.arguments_length = len(self.key), len(self.arguments)
        asked.to_exchange, asked.match_any = self.to_exchange, self.match_any
        asked.exclusive = self.exclusive
        return int(lib.sb_bind_own(broker._connection, asked, self.target, 0))


Declared = Exchange | Binding


def read(body: bytes) -> Declared:
    """JournalDamaged: it contradicts itself."""
    if len(body) < HEAD.size:
        raise error_for(JOURNAL_DAMAGED, "a record of the catalog")
    table, kind, option, exclusive, to_exchange, *lengths = HEAD.unpack_from(body)
    first, second, key, arguments = lengths
    if (
        table not in (EXCHANGES, BINDINGS)
        or not 1 <= first <= NAME_BYTES_MAX
        or not 0 <= second <= NAME_BYTES_MAX
        or min(key, arguments) < 0
        or key + arguments > BINDING_PAYLOAD_BYTES
        or HEAD.size + sum(lengths) != len(body)
    ):
        raise error_for(JOURNAL_DAMAGED, "a record of the catalog")
    parts, at = [], HEAD.size
    for length in lengths:
        parts.append(body[at : at + length])
        at += length
    if table == EXCHANGES:
        return Exchange(parts[0], kind, parts[1], option)
    return Binding(parts[0], parts[1], to_exchange, kind, option, exclusive, parts[2], parts[3])


def replicated(several: Iterable[Declared]) -> list[Declared]:
    """What another member has of them.  Bindings to and from exchanges that are left out find an
    end missing, and are left out as well (declare_all)."""
    kept = [
        each
        for each in several
        if not (isinstance(each, Exchange) and each.replicate == REPLICATE_NONE)
    ]
    names = {each.name for each in kept if isinstance(each, Exchange)}
    return [
        replace(each, alternate=b"")
        if isinstance(each, Exchange) and each.alternate not in names
        else each
        for each in kept
    ]


def declare_all(broker: Broker, several: Sequence[Declared]) -> None:
    """A binding or an alternate may need what comes behind it: again, until nothing more can be
    done.  What is left leads to what is no more.  One that was made anew while the journaler looked
    may be there twice: the first counts."""
    before = len(several) + 1
    while len(several) < before:
        before, left = len(several), list[Declared]()
        for each in several:
            code = each.declare(broker)
            if code == NOT_FOUND:
                left.append(each)
            elif code != DIFFERENT:
                checked(code, f"making vhost {broker.vhost!r}")
        several = left
