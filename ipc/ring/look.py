"""A ring as whoever looks at it sees it, outside of all lanes: for work that is done in batches.

Kernels are called with a port of one's own, while the queue is looked at: until then its ring stays
mapped, also if the queue is deleted meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.layout import PORT_HEADER, POSITION_MASK, RING_HEAD_AT, RING_TAIL_AT
from shmbroker.ipc._native import ffi, lib

if TYPE_CHECKING:
    from shmbroker.ipc.queue.queue import Queue

WORD: Final = 8


@contextmanager
def looking(queue: Queue) -> Iterator[None]:
    """NotFound: it was deleted."""
    code = lib.sb_queue_look(queue._queue)
    if code < 0:
        raise queue._error(code, "looking at")
    try:
        yield
    finally:
        lib.sb_queue_looked(queue._queue)


def port_to(queue: Queue) -> Any:
    """A port that owns no memory of the arena, until chunks are reserved with it."""
    port = ffi.new("sb_port *")
    code = lib.sb_port_to_look(queue._queue, port)
    if code < 0:
        raise queue._error(code, "looking at")
    return port


def address_of(memory: Any) -> int:
    return int(ffi.cast("intptr_t", memory))


def word_at(address: int) -> int:
    word: int = ffi.cast("int64_t *", address)[0]
    return word


def ring_at(port: Any) -> int:
    """The address of its ring."""
    return word_at(address_of(port) + PORT_HEADER)


def ring_word(port: Any, offset: int) -> int:
    return word_at(ring_at(port) + offset)


def head_of(port: Any) -> int:
    """Below that all is done with and reclaimed."""
    return ring_word(port, RING_HEAD_AT) & POSITION_MASK


def tail_of(port: Any) -> int:
    """As the ring says: nobody may have told it yet of what was published last."""
    return ring_word(port, RING_TAIL_AT) & POSITION_MASK
