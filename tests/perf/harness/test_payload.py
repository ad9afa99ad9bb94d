"""The messages of a run and the sum of their stamps."""

import struct

import pytest

from shmbroker.perf.harness.payload import Payload, stamp_of
from shmbroker.perf.harness.tally import MessageDamaged, Tally
from shmbroker.perf.harness.task import Mode

SIZES = [8, 64, 1024, 64 << 10]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["single", "loan"])
def test_the_sum_of_stamps_is_what_the_messages_carry(size: int, mode: Mode) -> None:
    payload = Payload(size, mode)
    stamps = [struct.unpack_from("<q", message)[0] for message in payload.messages(2)]
    count = payload.period + 3
    assert payload.stamp_total(2, count) == sum(stamps) + sum(stamps[:3])


@pytest.mark.parametrize("size", SIZES)
def test_the_block_has_the_same_messages(size: int) -> None:
    payload = Payload(size, "single")
    assert payload.block(1).tobytes() == b"".join(payload.messages(1))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["single", "loan"])
def test_a_tally_counts_and_sums_what_it_keeps(size: int, mode: Mode) -> None:
    payload = Payload(size, mode)
    tally = Tally(payload)
    tally.keep_all(payload.messages(0))
    checksum = tally.checksum()
    assert checksum.count == payload.period
    assert checksum.stamp_total == payload.stamp_total(0, payload.period)


@pytest.mark.parametrize("size", SIZES[1:])
def test_a_damaged_body_is_noticed(size: int) -> None:
    payload = Payload(size, "single")
    message = bytearray(payload.message(stamp_of(0, 3)))
    message[-1] ^= 1
    tally = Tally(payload)
    tally.keep(message)
    with pytest.raises(MessageDamaged):
        tally.settle()
