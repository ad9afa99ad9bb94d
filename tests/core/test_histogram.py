"""Buckets: the same ones as those of the hdrhistogram package, for any range and value."""

from __future__ import annotations

from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from shmbroker.core import layout as at
from shmbroker.core.codes import INVALID, NOT_A_SEGMENT, OK, OTHER_VERSION, TRUNCATED
from shmbroker.ipc._native import ffi, lib
from tests.core.interpreted import Interpreted

RANGES = st.tuples(
    st.integers(1, 1 << 20), st.integers(2, 1 << 50), st.sampled_from((2, 3))
).filter(lambda each: each[1] >= 2 * each[0])
VALUES = st.one_of(st.integers(0, 1 << 12), st.integers(0, 1 << 51), st.integers(0, (1 << 63) - 1))


class Compiled:
    """A recording of the library, with memory of its own."""

    def __init__(self, lowest: int, highest: int, digits: int, *, shared: bool = False) -> None:
        self.length: int = lib.sb_histogram_length(lowest, highest, digits)
        self.kind_bytes: int = lib.sb_histogram_bytes(self.length)
        self.counts = ffi.new("int64_t[]", at.KINDS * self.kind_bytes // 8)
        self.recording = ffi.new("int64_t[]", at.RECORDING_BYTES // 8)
        code = lib.sb_recording_open(self.recording, self.counts, shared, lowest, highest, digits)
        assert code == OK

    def record(self, value: int, kind: int = 0) -> int:
        index: int = lib.sb_record(self.recording, kind, value)
        return index

    def kind(self, kind: int) -> list[int]:
        first = kind * self.kind_bytes // 8
        return list(self.counts[first : first + self.length + 1])


def highest_of(lowest: int, digits: int, index: int) -> int:
    return int(lib.sb_histogram_lowest(lowest, digits, index + 1)) - 1


@given(RANGES, st.lists(VALUES, max_size=50), st.booleans())
def test_each_value_is_in_the_bucket_where_hdrhistogram_has_it(
    range_: tuple[int, int, int], values: list[int], shared: bool
) -> None:
    ours, oracle = Compiled(*range_, shared=shared), HdrHistogram(*range_)
    assert ours.length == oracle.counts_len
    for value in values:
        index = ours.record(value)
        if not oracle.record_value(value):
            assert index == ours.length
    *counts, overflow = ours.kind(0)
    assert counts == [oracle.get_count_at_index(index) for index in range(oracle.counts_len)]
    assert overflow == len(values) - oracle.total_count


@given(RANGES, VALUES)
def test_the_ends_of_a_bucket_are_those_of_hdrhistogram(
    range_: tuple[int, int, int], value: int
) -> None:
    lowest, _, digits = range_
    ours, oracle = Compiled(*range_), HdrHistogram(*range_)
    index = ours.record(value)
    if index == ours.length:
        return
    assert lib.sb_histogram_lowest(lowest, digits, index) == oracle.get_lowest_equivalent_value(
        value
    )
    assert highest_of(lowest, digits, index) == oracle.get_highest_equivalent_value(value)


@settings(max_examples=30)
@given(RANGES, st.lists(VALUES, max_size=5))
def test_the_interpreted_kernel_is_the_compiled_one(
    range_: tuple[int, int, int], values: list[int]
) -> None:
    machine, compiled = Interpreted(), Compiled(*range_)
    recording = machine.place(bytes(at.RECORDING_BYTES))
    machine.recording_open(recording, 0, 0, *range_)
    for value in values:
        assert machine.bucket_index(recording, value) == compiled.record(value)


def test_kinds_do_not_mix_and_what_is_below_zero_fits_nowhere() -> None:
    ours = Compiled(1, 1000, 2)
    ours.record(5, at.PUBLISH_TAKE)
    ours.record(-1, at.TAKE_ACK)
    ours.record(-(1 << 63), at.TAKE_ACK)
    assert [sum(ours.kind(kind)) for kind in range(at.KINDS)] == [1, 2, 0]
    assert ours.kind(at.PUBLISH_TAKE)[5] == 1
    assert ours.kind(at.TAKE_ACK)[-1] == 2


def test_ranges_that_there_cannot_be() -> None:
    for range_ in (
        (0, 100, 2), (-1, 100, 2), (1, 1, 2), (100, 199, 2), (1, 100, 0), (1, 100, 4),
        (1, -5, 2), (1, (1 << 50) + 1, 2), (1, 100, 1 << 40), (1 << 62, 1 << 63 - 1, 2),
        (1 << 61, 1 << 40, 3), (1 << 62, 1 << 40, 3), ((1 << 63) - 1, 1 << 40, 3),
    ):  # fmt: skip
        assert lib.sb_histogram_length(*range_) == INVALID
        assert lib.sb_histograms_bytes(*range_) == INVALID


def test_a_foreign_segment_is_told_from_one() -> None:
    size = lib.sb_histograms_bytes(1, 1000, 2)
    memory = ffi.new("int64_t[]", size // 8)
    assert lib.sb_histograms_check(memory, size, 3, 7) == NOT_A_SEGMENT
    assert lib.sb_histograms_format(memory, 1, 1000, 2, 3, 7) == OK
    assert lib.sb_histograms_check(memory, size, 3, 7) == OK
    assert lib.sb_histograms_check(memory, size, 4, 7) == NOT_A_SEGMENT
    assert lib.sb_histograms_check(memory, size, 3, 8) == NOT_A_SEGMENT
    assert lib.sb_histograms_check(memory, size - 1, 3, 7) == TRUNCATED
    assert lib.sb_histograms_check(memory, at.HISTOGRAMS_COUNTS_AT - 1, 3, 7) == NOT_A_SEGMENT
    memory[at.HISTOGRAMS_VERSION_AT // 8] = 99
    assert lib.sb_histograms_check(memory, size, 3, 7) == OTHER_VERSION
    memory[at.HISTOGRAMS_VERSION_AT // 8] = at.LAYOUT_VERSION
    for word in (at.HISTOGRAMS_HIGHEST_AT, at.HISTOGRAMS_LOWEST_AT, at.HISTOGRAMS_DIGITS_AT):
        kept, memory[word // 8] = memory[word // 8], -1
        assert lib.sb_histograms_check(memory, size, 3, 7) == NOT_A_SEGMENT
        memory[word // 8] = kept
