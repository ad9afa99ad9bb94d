"""Balanced sets: turns, who is eligible, members that come and go."""

from __future__ import annotations

from collections import Counter

import pytest

from shmbroker.core import codes, layout
from shmbroker.ipc._native import ffi, lib
from tests.core.vhost import Vhost, index_of

BALANCES = layout.BALANCES
Member = tuple[str, int]


class Balanced:
    """One set of a vhost."""

    def __init__(self, vhost: Vhost, members: list[Member], eligible: int) -> None:
        self._vhost = vhost
        self.queues = {name: vhost.queue(name) for name, _ in members}
        index = lib.sb_row_free(vhost.address, BALANCES)
        words, count = self._words(members)
        self.reference = lib.sb_balance_put(
            vhost.address, index, words, count, eligible, ffi.NULL, 0
        )
        assert self.reference > 0

    def _words(self, members: list[Member]) -> tuple[object, int]:
        for name, _ in members:
            if name not in self.queues:
                self.queues[name] = self._vhost.queue(name)
        flat = [word for name, target in members for word in (self.queues[name], target)]
        return ffi.new("int64_t[]", flat), len(members)

    def change(self, members: list[Member], eligible: int, selectors: bytes = b"") -> int:
        words, count = self._words(members)
        programs = ffi.from_buffer("char[]", selectors or bytes(8))
        code: int = lib.sb_balance_change(
            self._vhost.address, self.reference, words, count, eligible, programs, len(selectors)
        )
        return code

    def eligible(self, bits: int) -> None:
        assert lib.sb_balance_eligible(self._vhost.address, self.reference, bits) == codes.OK

    def choose(self) -> Member | int:
        chosen = ffi.new("int64_t[2]")
        code: int = lib.sb_balance_choose(self._vhost.address, self.reference, chosen)
        return code if code != codes.OK else (self._vhost.names[chosen[0]], chosen[1])

    def turns(self, count: int) -> Counter[Member | int]:
        return Counter(self.choose() for _ in range(count))


FOUR: list[Member] = [("b", 7), ("orders", 0), ("c", 8), ("d", 9)]


def test_turns_go_round_in_the_order_of_the_members(vhost: Vhost) -> None:
    balanced = Balanced(vhost, FOUR, 0b1111)
    assert [balanced.choose() for _ in range(8)] == FOUR * 2


@pytest.mark.parametrize("eligible", range(1, 16))
def test_those_that_are_eligible_get_the_same(vhost: Vhost, eligible: int) -> None:
    balanced = Balanced(vhost, FOUR, eligible)
    wanted = [each for index, each in enumerate(FOUR) if eligible >> index & 1]
    assert balanced.turns(60 * len(wanted)) == dict.fromkeys(wanted, 60)


def test_if_none_is_eligible_it_is_the_queue_itself(vhost: Vhost) -> None:
    assert Balanced(vhost, FOUR, 0).turns(5) == {("orders", 0): 5}


def test_without_the_queue_itself_it_is_the_first(vhost: Vhost) -> None:
    assert Balanced(vhost, [("c", 8), ("d", 9)], 0).turns(5) == {("c", 8): 5}


def test_what_is_eligible_changes_and_the_members_stay(vhost: Vhost) -> None:
    balanced = Balanced(vhost, FOUR, 0b1111)
    balanced.eligible(0b0100)
    assert balanced.turns(3) == {("c", 8): 3}
    balanced.change(FOUR[:2], 0b11)
    balanced.eligible(0b10)
    assert balanced.turns(3) == {("orders", 0): 3}


def test_bits_without_a_member_mean_nothing(vhost: Vhost) -> None:
    assert Balanced(vhost, FOUR[:2], -1).turns(4) == {FOUR[0]: 2, FOUR[1]: 2}


def test_a_queue_that_was_deleted_has_no_turn_nor_has_who_got_its_row(vhost: Vhost) -> None:
    balanced = Balanced(vhost, FOUR, 0b1111)
    vhost.remove(layout.QUEUES, balanced.queues["c"])
    new = vhost.queue("new")
    assert index_of(new) == index_of(balanced.queues["c"])
    assert set(balanced.turns(40)) == {("b", 7), ("orders", 0), ("d", 9)}
    balanced.eligible(0b0100)
    assert balanced.turns(3) == {("orders", 0): 3}


def test_a_set_of_nobody_leaves_the_message_where_it_is(vhost: Vhost) -> None:
    balanced = Balanced(vhost, FOUR, 0b1111)
    for queue in balanced.queues.values():
        vhost.remove(layout.QUEUES, queue)
    assert balanced.choose() == codes.NOT_FOUND
    assert balanced.change([], 0) == codes.OK
    assert balanced.choose() == codes.NOT_FOUND


def test_a_set_that_was_removed_is_not_the_next_of_its_row(vhost: Vhost) -> None:
    former = Balanced(vhost, FOUR[:2], 0b11)
    vhost.remove(BALANCES, former.reference)
    later = Balanced(vhost, [("x", 5)], 1)
    assert index_of(later.reference) == index_of(former.reference)
    assert former.choose() == codes.NOT_FOUND
    assert former.change(FOUR[:2], 0b11) == codes.NOT_FOUND
    assert later.choose() == ("x", 5)


def test_as_many_members_as_there_are_bits(vhost: Vhost) -> None:
    most = layout.BALANCE_MEMBERS
    members = [(f"q{each}", each) for each in range(most + 1)]
    balanced = Balanced(vhost, members[:most], (1 << most) - 1)
    assert set(balanced.turns(most)) == set(members[:most])
    assert balanced.change(members, 1) == codes.INVALID


def test_what_is_no_set_is_refused(vhost: Vhost) -> None:
    chosen = ffi.new("int64_t[2]")
    nowhere = layout.BALANCE_ROWS | 1 << layout.REFERENCE_INDEX_BITS
    for reference in (-1, 0, 1 << layout.REFERENCE_INDEX_BITS, nowhere):
        code = lib.sb_balance_choose(vhost.address, reference, chosen)
        assert code == codes.NOT_FOUND
    none = ffi.NULL
    beyond = layout.BALANCE_ROWS
    assert lib.sb_balance_put(vhost.address, beyond, none, 0, 0, none, 0) == codes.INVALID
    balanced = Balanced(vhost, FOUR, 1)
    row = index_of(balanced.reference)
    assert lib.sb_balance_put(vhost.address, row, ffi.NULL, 0, 0, ffi.NULL, 0) == codes.INVALID


def test_nonsense_in_the_segment_leads_nowhere_else(vhost: Vhost) -> None:
    balanced = Balanced(vhost, FOUR, 0b1111)
    entry = lib.sb_catalog_entry_at(BALANCES, index_of(balanced.reference))
    copy = entry + layout.BALANCE_COPIES_AT + layout.BALANCE_COPY_BYTES  # the first version is 1
    for count in (-5, 0, 1 << 40):
        vhost.poke(copy + layout.BALANCE_COUNT_AT, count)
        balanced.eligible(-1)
        balanced.turns(70)
    vhost.poke(entry + layout.BALANCE_TURN_AT, -1)
    vhost.poke(copy + layout.BALANCE_COUNT_AT, 4)
    balanced.eligible(0b1111)
    assert set(balanced.turns(8)) == set(FOUR)


def test_with_selectors_whoever_publishes_says_who_takes_it(vhost: Vhost) -> None:
    balanced = Balanced(vhost, FOUR, 0)
    for selectors in (b"12345678", bytes(range(208)) * 4, bytes(layout.BALANCE_SELECTORS_BYTES)):
        balanced.change(FOUR, 0b0001, selectors)
        copied = ffi.new("int64_t[]", 1 + layout.BALANCE_SELECTORS_BYTES // 8)
        chosen = ffi.new("int64_t[2]")
        at = vhost.address, balanced.reference
        assert lib.sb_balance_choose(*at, chosen) == len(selectors)
        assert lib.sb_balance_selectors(*at, copied) == len(selectors)
        assert ffi.buffer(copied)[8 : 8 + len(selectors)] == selectors
        version = copied[0]
        for turn, takes, wanted in (
            (0, 0, ("b", 7)), (1, 0, ("b", 7)), (1, 0b0100, ("c", 8)), (2, 0b0100, ("b", 7)),
            (0, -1 << 4, ("b", 7)), (3, -1, ("d", 9)),
        ):  # fmt: skip
            code = lib.sb_balance_choose_among(*at, turn, version, takes, chosen)
            assert code == codes.OK
            assert (vhost.names[chosen[0]], chosen[1]) == wanted
        balanced.change(FOUR, 0b0001, selectors)
        code = lib.sb_balance_choose_among(*at, 0, version, 0, chosen)
        assert code == codes.STALE
    assert balanced.change(FOUR, 0, bytes(layout.BALANCE_SELECTORS_BYTES + 8)) == codes.INVALID
    assert balanced.change(FOUR, 0, b"1") == codes.INVALID
    balanced.change(FOUR, 0b0010)
    assert balanced.choose() == ("orders", 0)
    vhost.remove(BALANCES, balanced.reference)
    assert lib.sb_balance_selectors(*at, copied) == codes.NOT_FOUND
    assert lib.sb_balance_choose_among(*at, 0, 1, 1, chosen) == codes.NOT_FOUND


def test_each_turn_is_given_once_whether_or_not_it_depends_on_selectors(vhost: Vhost) -> None:
    balanced = Balanced(vhost, FOUR, 0)
    chosen = ffi.new("int64_t[2]")
    turns = []
    for selectors in (b"", b"12345678", b"", b"12345678"):
        balanced.change(FOUR, 0b1111, selectors)
        if lib.sb_balance_choose(vhost.address, balanced.reference, chosen) > 0:
            turns.append(chosen[0])
    assert turns == [1, 3]
