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
    sum_overflows, difference_overflows, product_overflows             what they say, 0 or 1
    search               where in some bytes others are first: an address, 0 if they are not there
    real_of              the bits of a double that is an integer
    real_widened         the bits of a double, of those of a float
    real_add, real_multiply, real_divide, real_less, real_equal        doubles, by their bits
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


def sum_overflows(left: int, right: int) -> int:
    _unbound("sum_overflows")


def difference_overflows(left: int, right: int) -> int:
    _unbound("difference_overflows")


def product_overflows(left: int, right: int) -> int:
    _unbound("product_overflows")


def search(at: int, length: int, wanted: int, wanted_length: int) -> int:
    _unbound("search")


def real_of(value: int) -> int:
    _unbound("real_of")


def real_widened(bits: int) -> int:
    _unbound("real_widened")


def real_add(left: int, right: int) -> int:
    _unbound("real_add")


def real_multiply(left: int, right: int) -> int:
    _unbound("real_multiply")


def real_divide(left: int, right: int) -> int:
    _unbound("real_divide")


def real_less(left: int, right: int) -> int:
    _unbound("real_less")


def real_equal(left: int, right: int) -> int:
    _unbound("real_equal")


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
    "sum_overflows": 2,
    "difference_overflows": 2,
    "product_overflows": 2,
    "search": 4,
    "real_of": 1,
    "real_widened": 1,
    "real_add": 2,
    "real_multiply": 2,
    "real_divide": 2,
    "real_less": 2,
    "real_equal": 2,
    "pause": 0,
    "cycles": 0,
}
"""Each operation and how many words it takes; all return one."""
