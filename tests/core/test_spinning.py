"""Whether a wait spins: the decision, in worlds where spinning pays always, sometimes, or never."""

from __future__ import annotations

import random
from collections.abc import Callable

from shmbroker.core import layout as at
from shmbroker.core.codes import OK
from shmbroker.core.spinning import REST_MAX_NS, REST_MIN_NS
from shmbroker.ipc._native import ffi, lib

SPIN_NS = 10_000
SLEEP_NS = 3_000
"""What a wait takes that sleeps, where both sides share a processor."""


class Waiter:
    """Waits, on a clock of its own."""

    def __init__(self, pays: Callable[[], bool]) -> None:
        self.words = ffi.new("int64_t[]", at.SPINNING_BYTES // 8)
        self.pays = pays
        self.now_ns = 1
        self.spins = self.in_vain = 0
        assert lib.sb_spinning_begin(self.words) == OK

    def wait(self) -> bool:
        """Whether it spun."""
        if not lib.sb_spinning_is_due(self.words, self.now_ns):
            self.now_ns += SLEEP_NS
            return False
        self.spins += 1
        if self.pays():
            lib.sb_spinning_won(self.words)
            self.now_ns += SLEEP_NS // 10
            return True
        self.in_vain += 1
        self.now_ns += SPIN_NS + SLEEP_NS
        if lib.sb_spinning_vain(self.words) == 0:
            lib.sb_spinning_rest(self.words, self.now_ns)
        return True

    def wait_for(self, duration_ns: int) -> None:
        end_ns = self.now_ns + duration_ns
        while self.now_ns < end_ns:
            self.wait()


def never() -> bool:
    return False


def always() -> bool:
    return True


def sometimes(share: float) -> Callable[[], bool]:
    dice = random.Random(17)
    return lambda: dice.random() < share


def test_where_it_pays_each_wait_spins() -> None:
    waiter = Waiter(always)
    assert all(waiter.wait() for _ in range(1000))


def test_a_port_spins_until_that_was_in_vain_for_a_while() -> None:
    waiter = Waiter(never)
    spun = [waiter.wait() for _ in range(at.SPINNING_PATIENCE_MAX + 50)]
    assert spun == [True] * at.SPINNING_PATIENCE_MAX + [False] * 50


def test_where_it_never_pays_it_takes_less_than_a_thousandth_of_the_time() -> None:
    waiter = Waiter(never)
    waiter.wait_for(100_000_000)
    waiter.in_vain, began_ns = 0, waiter.now_ns
    waiter.wait_for(1_000_000_000)
    assert 0 < waiter.in_vain * SPIN_NS < (waiter.now_ns - began_ns) / 1000


def test_a_win_now_and_then_on_one_processor_changes_little() -> None:
    """One that is preempted while it spins finds what the other side did meanwhile."""
    waiter = Waiter(sometimes(0.05))
    waiter.wait_for(1_000_000_000)
    assert waiter.in_vain * SPIN_NS < waiter.now_ns / 100


def test_spins_in_vain_now_and_then_change_nothing() -> None:
    waiter = Waiter(sometimes(0.9))
    assert sum(waiter.wait() for _ in range(10_000)) > 9_990


def test_where_it_begins_to_pay_waits_spin_again_after_the_longest_rest() -> None:
    waiter = Waiter(never)
    waiter.wait_for(200_000_000)
    waiter.pays = always
    waiter.wait_for(REST_MAX_NS + SPIN_NS)
    assert all(waiter.wait() for _ in range(100))


def test_rests_become_longer_up_to_the_longest_and_short_again_with_wins() -> None:
    words = ffi.new("int64_t[]", at.SPINNING_BYTES // 8)
    lib.sb_spinning_begin(words)
    rests = [lib.sb_spinning_rest(words, 0) for _ in range(6)]
    assert rests == [REST_MIN_NS << n for n in range(5)] + [REST_MAX_NS]
    for _ in range(9):
        lib.sb_spinning_won(words)
    assert lib.sb_spinning_rest(words, 0) == REST_MIN_NS


def test_rare_waits_all_spin() -> None:
    """Between two of them the rest is over."""
    waiter = Waiter(never)
    for _ in range(100):
        assert waiter.wait()
        waiter.now_ns += REST_MAX_NS


def test_after_a_rest_one_spin_is_tried_and_one_in_vain_is_enough_for_another() -> None:
    waiter = Waiter(never)
    waiter.wait_for(100_000_000)
    while not waiter.wait():
        pass
    assert not waiter.wait()
