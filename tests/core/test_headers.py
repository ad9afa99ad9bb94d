"""Headers: arguments against properties, and bytes that are no maps."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shmbroker.ipc._native import lib
from tests.core.fenced import Fenced
from tests.core.interpreted import Interpreted

ARGUMENTS, PROPERTIES = Fenced(1 << 17), Fenced(1 << 17)

Map = dict[str, object]


def packed_match(arguments: bytes, properties: bytes, any_one: bool = False) -> bool:
    left, right = ARGUMENTS.hold(arguments), PROPERTIES.hold(properties)
    code: int = lib.sb_headers_match(left, len(arguments), right, len(properties), any_one)
    assert code in (0, 1)
    return code == 1


def match(arguments: Map, properties: Map, any_one: bool = False) -> bool:
    return packed_match(msgpack.packb(arguments), msgpack.packb(properties), any_one)


def oracle(arguments: Map, properties: Map, any_one: bool) -> bool:
    hold = [
        name in properties
        and (value is None or msgpack.packb(value) == msgpack.packb(properties[name]))
        for name, value in arguments.items()
        if not name.startswith("x-")
    ]
    return any(hold) if any_one else all(hold)


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=300)
)
values = st.recursive(
    scalars | st.sampled_from([1, "a"]),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=30,
)
names = st.sampled_from(["a", "b", "c", "x-match", "x-", "x", "-", "", "n" * 40, "n" * 300])
maps = st.dictionaries(names | st.text(max_size=5), values | st.sampled_from([None, 1]))


@given(maps, maps, st.booleans())
def test_any_maps(arguments: Map, properties: Map, any_one: bool) -> None:
    assert match(arguments, properties, any_one) == oracle(arguments, properties, any_one)
    both = properties | arguments
    assert match(arguments, both, any_one) == oracle(arguments, both, any_one)


@pytest.mark.parametrize("any_one", [False, True])
def test_without_arguments_all_hold_and_not_any(any_one: bool) -> None:
    for arguments in (b"", msgpack.packb({}), msgpack.packb({"x-match": "any"})):
        assert packed_match(arguments, msgpack.packb({"a": 1}), any_one) is not any_one
        assert packed_match(arguments, b"", any_one) is not any_one


@pytest.mark.parametrize("value", ["text", "t" * 40, b"bytes", 300, 1.5, [1, [2]], {"a": "b"}])
def test_a_value_that_is_cut_off_is_not_there(value: object) -> None:
    """So whoever finds one may believe the length that is in it."""
    machine, packed = Interpreted(), msgpack.packb({"a": 1, "b": value})
    at, name = machine.place(packed), machine.place(b"b")
    start = packed.index(b"\xa1b") + 2
    for length in range(start, len(packed)):
        assert machine.map_find(at, at + length, name, name + 1) == -1
    assert machine.map_find(at, at + len(packed), name, name + 1) == at + start


def test_nil_asks_for_the_key_only() -> None:
    assert match({"a": None}, {"a": 5})
    assert not match({"a": None}, {"b": 5})
    assert not match({"a": 5}, {"a": None})


def test_arguments_that_start_with_x_say_how() -> None:
    assert match({"x-match": "all", "a": 1}, {"a": 1})
    assert not match({"x-match": "any", "a": 1}, {"x-match": "any"}, any_one=True)
    assert not match({"x": 1}, {})


def test_a_key_may_be_encoded_otherwise() -> None:
    assert packed_match(b"\x81\xd9\x01a\x01", msgpack.packb({"a": 1}))


@pytest.mark.parametrize(
    "malformed",
    [
        b"\xc0",
        b"\x81",
        b"\x81\xa1a",
        b"\x81\xa1a\xc1",
        b"\x81\x01\x01",
        b"\x80\x00",
        b"\x81\xa2a",
        b"\xde\x00",
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa1a\xdb\xff\xff\xff\xff",
        b"\x81\xa1a\xc9\x00\x00\x00\x01",
        b"\x81\xa1a\xd8\x00",
        b"\x81\xa1a\xc4",
        b"\x81\xd9",
        b"\x81\xda\x01",
        b"\x90",
    ],
)
def test_what_is_malformed_matches_nothing(malformed: bytes) -> None:
    assert not packed_match(malformed, msgpack.packb({"a": 1}))
    assert not packed_match(malformed, msgpack.packb({"a": 1}), any_one=True)
    assert not packed_match(b"", malformed)
    assert not packed_match(msgpack.packb({"a": None}), malformed)


def test_a_deep_nest_is_no_recursion() -> None:
    nest = b"\x81\xa1a" + b"\x91" * 60_000 + b"\xc0"
    assert packed_match(nest, nest)
    assert not packed_match(nest[:-1], nest)
    assert not packed_match(b"\x81\xa1a" + b"\xdf\xff\xff\xff\xff" * 10_000, nest)


@given(st.binary(max_size=60), st.binary(max_size=60), st.booleans())
@example(b"\x81\xa1a\xc0", b"\x81\xa1a", False)
def test_random_bytes_stay_inside(arguments: bytes, properties: bytes, any_one: bool) -> None:
    packed_match(arguments, properties, any_one)
    packed_match(b"\x82\xa1a" + arguments, b"\x82\xa1a" + properties, any_one)


@given(maps, maps, st.data())
def test_flipped_and_cut_bytes_stay_inside(arguments: Map, properties: Map, data: object) -> None:
    assert isinstance(data, st.DataObject)
    left, right = bytearray(msgpack.packb(arguments)), msgpack.packb(properties)
    at = data.draw(st.integers(0, len(left) - 1))
    left[at] ^= data.draw(st.integers(1, 255))
    packed_match(bytes(left), right)
    packed_match(right, bytes(left))
    packed_match(right, bytes(left[:at]), any_one=True)
