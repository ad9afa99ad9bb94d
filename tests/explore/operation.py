"""What a kernel or a program can ask of the machine, and the two words that programs add.

A program is a kernel that calls other kernels: what one process does with a ring.  Beside the
atomics it has

    ask(question, argument)    something that only the outside knows: who is dead, what time it is,
                               is there anything left to wait for; a scenario may give several
                               answers, and the explorer follows each
    tell(event, first, second) what the program believes has happened, for the scenario's ledger

Both are declarations; the translation replaces them, like the atomics.
"""

from __future__ import annotations

from typing import Final

from shmbroker.core import atomics

LOAD: Final = 0
STORE: Final = 1
LOAD_ACQUIRE: Final = 2
STORE_RELEASE: Final = 3
EXCHANGE: Final = 4
COMPARE_EXCHANGE: Final = 5
FETCH_ADD: Final = 6
ASK: Final = 7
TELL: Final = 8
DONE: Final = 9
KILLED: Final = 10
STOPPED: Final = 11

NAMES: Final = (
    "load",
    "store",
    "load_acquire",
    "store_release",
    "exchange",
    "compare_exchange",
    "fetch_add",
    "ask",
    "tell",
    "done",
    "killed",
    "stopped",
)

PLAIN: Final = frozenset((LOAD, STORE, LOAD_ACQUIRE, STORE_RELEASE))
LOCKED: Final = frozenset((EXCHANGE, COMPARE_EXCHANGE, FETCH_ADD))


def ask(question: int, argument: int = 0) -> int:
    raise NotImplementedError("programs run in the explorer")


def tell(event: int, first: int = 0, second: int = 0) -> int:
    raise NotImplementedError("programs run in the explorer")


YIELDED: Final[dict[object, int]] = {
    atomics.load: LOAD,
    atomics.store: STORE,
    atomics.load_acquire: LOAD_ACQUIRE,
    atomics.store_release: STORE_RELEASE,
    atomics.exchange: EXCHANGE,
    atomics.compare_exchange: COMPARE_EXCHANGE,
    atomics.fetch_add: FETCH_ADD,
    ask: ASK,
    tell: TELL,
}
"""Declarations that become a stop of the interpreted kernel."""

IGNORED: Final[frozenset[object]] = frozenset(
    (
        atomics.prefetch,
        atomics.prefetch_write,
        atomics.pause,
        atomics.cycles,
        atomics.fence_acquire,
    )
)
"""Operations without meaning here; all answer 0.  Steps are sequentially consistent, or in total
store order, and both keep loads in order: a fence between loads adds nothing."""


class Violation(Exception):
    """Something that must never happen has happened."""


def signed(value: int) -> int:
    """The 64-bit signed integer that a register would hold."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
