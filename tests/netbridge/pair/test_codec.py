"""What the brokers of a pair say: to bytes and back, and bytes that say nothing."""

from __future__ import annotations

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shmbroker.netbridge.pair.codec import Said, decode, encode
from shmbroker.netbridge.pair.told import Activation, State, Told
from shmbroker.netbridge.wire.malformed import Malformed

COUNTS = st.integers(0, (1 << 63) - 1)
ACTIVATIONS = st.builds(Activation, COUNTS, COUNTS)
TOLD = st.builds(Told, st.sampled_from(State), ACTIVATIONS, st.none() | ACTIVATIONS)
SAID = Said(True, Told(State.CONFLICT, Activation(7, 1), Activation(8, 2)))


@given(st.builds(Said, st.booleans(), TOLD))
def test_there_and_back(said: Said) -> None:
    assert decode(encode(said)) == said


@given(st.binary(max_size=200))
def test_any_bytes_are_something_or_malformed(body: bytes) -> None:
    with suppress(Malformed):
        assert isinstance(decode(body), Said)


def test_a_part_of_it_is_malformed() -> None:
    whole = encode(SAID)
    for end in range(len(whole)):
        with pytest.raises(Malformed):
            decode(whole[:end])
    with pytest.raises(Malformed):
        decode(whole + b"x")


@pytest.mark.parametrize(
    "body",
    [
        [1, True, ["active", [1, 1], None]],  # no such kind
        [0, 1, ["active", [1, 1], None]],
        [0, True, ["awake", [1, 1], None]],
        [0, True, ["active", [1, -1], None]],
        [0, True, ["active", [1], None]],
        [0, True, ["active", [1, 1], [1]]],
        [0, True],
        {"kind": 0},
        None,
    ],
)
def test_what_cannot_be_said(body: object) -> None:
    with pytest.raises(Malformed):
        decode(msgpack.packb(body))
