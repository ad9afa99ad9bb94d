"""The machine that kernels run on: a handful of operations on 64-bit words at addresses.

These are declarations.  `kernel.bind` replaces them by LLVM intrinsics or by the explorer's fake
memory; called unbound they raise.

    load, store          a word that nobody else touches at the time (private or not yet published)
    load_byte            one byte, where a word would reach beyond what is ours
    load_acquire         sees all that was written before the store_release it reads from
    store_release        what was written before is seen by whoever acquires it
    exchange, compare_exchange, fetch_add      sequentially consistent; return the former value
    fence_acquire        what was read before is not read again after (a reader without a lock)
    copy, fill           bytes, like memcpy and memset
    prefetch             the line is about to be read
    prefetch_write       the line is about to be written
    highest_bit          the place of the highest bit that is set, of a value above 0
    pause                we are spinning
    cycles               a steady counter of the processor
"""

from __future__ import annotations

from typing import NoReturn


def _unbound(name: str) -> NoReturn:
    raise NotImplementedError(f"{name} is not bound: kernels run compiled or in the explorer")


def load(address: int) -> int:
    _unbound("load")


def load_byte(address: int) -> int:
    _unbound("load_byte")


def store(address: int, value: int) -> int:
    _unbound("store")


def load_acquire(address: int) -> int:
    _unbound("load_acquire")


def store_release(address: int, value: int) -> int:
    _unbound("store_release")


def exchange(address: int, value: int) -> int:
    _unbound("exchange")


def compare_exchange(address: int, expected: int, value: int) -> int:
    _unbound("compare_exchange")


def fetch_add(address: int, value: int) -> int:
    _unbound("fetch_add")


def fence_acquire() -> int:
    _unbound("fence_acquire")


def copy(target: int, source: int, length: int) -> int:
    _unbound("copy")


def fill(target: int, byte: int, length: int) -> int:
    _unbound("fill")


def prefetch(address: int) -> int:
    _unbound("prefetch")


def prefetch_write(address: int) -> int:
    _unbound("prefetch_write")


def highest_bit(value: int) -> int:
    _unbound("highest_bit")


def pause() -> int:
    _unbound("pause")


def cycles() -> int:
    _unbound("cycles")


ATOMICS: dict[str, int] = {
    "load": 1,
    "load_byte": 1,
    "store": 2,
    "load_acquire": 1,
    "store_release": 2,
    "exchange": 2,
    "compare_exchange": 3,
    "fetch_add": 2,
    "fence_acquire": 0,
    "copy": 3,
    "fill": 3,
    "prefetch": 1,
    "prefetch_write": 1,
    "highest_bit": 1,
    "pause": 0,
    "cycles": 0,
}
"""Each operation and how many words it takes; all return one."""
