"""Whether a wait spins: the decision, in worlds where spinning pays always, sometimes, or never."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from shmbroker.core import layout as at
from shmbroker.core.codes import OK
from shmbroker.core.spinning import REST_MAX_NS, REST_MIN_NS, TRY_NS
from shmbroker.ipc._native import ffi, lib

SPIN_NS = 10_000
SLEEP_NS = 3_000
"""What a wait takes that sleeps, where both sides share a processor."""
SLOW_WAKE_NS = 26_000
"""Until somebody runs who slept on a processor that was idle: more than a spin."""


class Decision:
    """The words of one port, and what is done with them, as in ipc/ring/spinning.c."""

    def __init__(self) -> None:
        self.words = ffi.new("int64_t[]", at.SPINNING_BYTES // 8)
        assert lib.sb_spinning_begin(self.words) == OK

    def spin_ns(self, now_ns: int) -> int:
        """How long a wait spins that begins now."""
        return int(lib.sb_spinning_times(self.words, now_ns)) * SPIN_NS

    def spun(self, spent_ns: int, won: bool, now_ns: int) -> None:
        if won and spent_ns <= SPIN_NS:
            lib.sb_spinning_won(self.words)
        elif not won and lib.sb_spinning_vain(self.words) == 0:
            lib.sb_spinning_rest(self.words, now_ns)


class Waiter:
    """Waits, on a clock of its own."""

    def __init__(self, pays: Callable[[], bool]) -> None:
        self.decision = Decision()
        self.pays = pays
        self.now_ns = 1
        self.vain_ns = 0

    def wait(self) -> bool:
        """Whether it spun."""
        spin_ns = self.decision.spin_ns(self.now_ns)
        won = spin_ns > 0 and self.pays()
        spent_ns = SLEEP_NS // 10 if won else spin_ns
        self.now_ns += spent_ns if won else spent_ns + SLEEP_NS
        if spin_ns:
            self.vain_ns += 0 if won else spent_ns
            self.decision.spun(spent_ns, won, self.now_ns)
        return spin_ns > 0

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


def test_where_it_never_pays_it_soon_takes_about_a_thousandth_of_the_time() -> None:
    waiter = Waiter(never)
    waiter.wait_for(10 * REST_MAX_NS)
    waiter.vain_ns, began_ns = 0, waiter.now_ns
    waiter.wait_for(100 * REST_MAX_NS)
    assert 0 < waiter.vain_ns < 1.5 * (waiter.now_ns - began_ns) / 1000


def test_a_win_now_and_then_on_one_processor_changes_little() -> None:
    """One that is preempted while it spins finds what the other side did meanwhile."""
    waiter = Waiter(sometimes(0.05))
    waiter.wait_for(100 * REST_MAX_NS)
    assert waiter.vain_ns < waiter.now_ns / 100


def test_spins_in_vain_now_and_then_change_nothing() -> None:
    waiter = Waiter(sometimes(0.9))
    assert sum(waiter.wait() for _ in range(10_000)) > 9_990


def test_where_it_begins_to_pay_waits_spin_again_after_the_longest_rest() -> None:
    waiter = Waiter(never)
    waiter.wait_for(10 * REST_MAX_NS)
    waiter.pays = always
    waiter.wait_for(REST_MAX_NS + SPIN_NS)
    assert all(waiter.wait() for _ in range(100))


def test_rests_become_longer_up_to_the_longest_and_short_again_with_wins() -> None:
    words = Decision().words
    rests = [lib.sb_spinning_rest(words, 0) for _ in range(5)]
    assert rests == [REST_MIN_NS, 2 * REST_MIN_NS, 4 * REST_MIN_NS, REST_MAX_NS, REST_MAX_NS]
    for _ in range(9):
        lib.sb_spinning_won(words)
    assert lib.sb_spinning_rest(words, 0) == REST_MIN_NS


def test_rare_waits_all_spin() -> None:
    """Between two of them the rest is over."""
    waiter = Waiter(never)
    for _ in range(100):
        assert waiter.wait()
        waiter.now_ns += REST_MAX_NS


def test_a_try_that_is_in_vain_is_enough_for_another_rest() -> None:
    waiter = Waiter(never)
    waiter.wait_for(10 * REST_MAX_NS)
    while not waiter.wait():
        pass
    assert not waiter.wait()


def rested() -> Decision:
    decision = Decision()
    for _ in range(at.SPINNING_PATIENCE_MAX):
        decision.spun(SPIN_NS, won=False, now_ns=0)
    assert decision.spin_ns(REST_MIN_NS - 1) == 0
    return decision


def test_a_try_spins_longer_and_goes_on_while_it_wins_late() -> None:
    decision = rested()
    for now_ns in range(REST_MIN_NS, REST_MIN_NS + TRY_NS, TRY_NS // 100):
        assert decision.spin_ns(now_ns) == at.SPINNING_LONG * SPIN_NS
        decision.spun(SLOW_WAKE_NS, won=True, now_ns=now_ns)
    assert decision.spin_ns(REST_MIN_NS + TRY_NS) == 0  # the other side is just slow: a rest
    assert decision.spin_ns(3 * REST_MIN_NS + TRY_NS) == at.SPINNING_LONG * SPIN_NS


def test_a_try_that_wins_at_once_ends_in_ordinary_spins() -> None:
    decision = rested()
    assert decision.spin_ns(REST_MIN_NS) == at.SPINNING_LONG * SPIN_NS
    decision.spun(SPIN_NS, won=True, now_ns=REST_MIN_NS)
    assert decision.spin_ns(REST_MIN_NS) == SPIN_NS


@pytest.mark.parametrize("late_ns", [0, 1_000_000, 5_000_000, 20_000_000, 50_000_000])
def test_two_that_both_rest_find_each_other_though_waking_takes_longer_than_a_spin(
    late_ns: int,
) -> None:
    """A ball to and fro between two processors.  Whoever has it throws it, and waits: if the other
    one sleeps, it comes back when that one was woken; if it spins, at once."""
    sides = [Decision(), Decision()]
    for side in sides:
        lib.sb_spinning_rest(side.words, 0)
        side.words[0] = 0
    sides[1].words[at.SPINNING_END // 8] += late_ns
    now_ns, asleep, held, quick = 0, [True, True], 0, 0
    while quick < 1000 and now_ns < 1_000_000_000:
        other = 1 - held
        leg_ns = SLOW_WAKE_NS if asleep[other] else 100
        spin_ns = sides[held].spin_ns(now_ns)
        # the other side has it after leg_ns and throws it back
        arrives_ns = leg_ns + 100
        won = spin_ns >= arrives_ns
        if spin_ns:
            spent_ns = arrives_ns if won else spin_ns
            sides[held].spun(spent_ns, won, now_ns + spent_ns)
        asleep[held] = not won
        quick = quick + 1 if leg_ns == 100 and won else 0
        now_ns += leg_ns
        held = other
    assert quick == 1000
