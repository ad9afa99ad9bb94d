"""A catalog in private memory, as the tests talk to it: names in, names out."""

from __future__ import annotations

import mmap

import msgpack

from shmbroker.core import layout
from shmbroker.ipc._native import ffi, lib

Properties = dict[str, object]

FOUND_MAX = 64


class Vhost:
    """Queues, exchanges and bindings by name, on the compiled kernels."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, lib.sb_catalog_bytes())
        self.address = ffi.from_buffer(self._memory)
        self.visited = ffi.new("uint64_t[]", layout.ROUTE_VISITED_BYTES // 8)
        self.found = ffi.new("int64_t[]", layout.ROUTE_WORDS * FOUND_MAX)
        self.names: dict[int, str] = {}
        assert lib.sb_catalog_format(self.address, 7, 8, b"test", 4) == 0

    def word(self, at: int) -> int:
        return int.from_bytes(self._memory[at : at + 8], "little", signed=True)

    def poke(self, at: int, value: int) -> None:
        self._memory[at : at + 8] = value.to_bytes(8, "little", signed=True)

    def queue(self, name: str) -> int:
        """Add a queue: its reference."""
        index = lib.sb_row_free(self.address, layout.QUEUES)
        encoded = name.encode()
        made: int = lib.sb_queue_put(self.address, index, encoded, len(encoded), 16, 0, 1, 2, 3)
        self.names[made] = name
        return made

    def exchange(self, name: str, kind: int = layout.DIRECT, alternate: int = 0) -> int:
        """Add an exchange: its reference."""
        index = lib.sb_row_free(self.address, layout.EXCHANGES)
        encoded = name.encode()
        made: int = lib.sb_exchange_put(
            self.address, index, encoded, len(encoded), kind, 0, alternate
        )
        return made

    def bind(
        self,
        source: int,
        destination: int,
        key: bytes = b"",
        *,
        kind: int = layout.QUEUES,
        arguments: Properties | None = None,
        match: int = layout.MATCH_ALL,
        target: int = 0,
    ) -> int:
        """Add a binding: its reference or a code."""
        packed = b"" if arguments is None else msgpack.packb(arguments)
        index = lib.sb_row_free(self.address, layout.BINDINGS)
        made: int = lib.sb_binding_put(
            self.address,
            index,
            source,
            kind,
            destination,
            match,
            key,
            len(key),
            packed,
            len(packed),
            target,
        )
        return made

    def remove(self, table: int, reference: int) -> None:
        assert lib.sb_row_remove(self.address, table, index_of(reference)) == index_of(reference)

    def route_code(
        self, exchange: int, key: bytes = b"", properties: bytes = b"", capacity: int = FOUND_MAX
    ) -> int:
        code: int = lib.sb_route(
            self.address,
            index_of(exchange),
            key,
            len(key),
            properties,
            len(properties),
            self.visited,
            self.found,
            capacity,
        )
        return code

    def route(
        self, exchange: int, key: bytes = b"", properties: Properties | None = None
    ) -> list[str]:
        """The names of the queues that a message goes to, in the order of the result."""
        packed = b"" if properties is None else msgpack.packb(properties)
        count = self.route_code(exchange, key, packed)
        assert count >= 0
        return [self.names[self.found[layout.ROUTE_WORDS * each]] for each in range(count)]


def index_of(reference: int) -> int:
    return reference & layout.REFERENCE_INDEX_MASK
