"""Properties as C programs set and read them, compared with what MessagePack's own library says."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shmbroker
from shmbroker.core import codes
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of

ROOM = 1 << 17
NAMES = st.text(min_size=1, max_size=40).filter(lambda name: "\0" not in name)
VALUES = st.one_of(
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.text(max_size=300),
)
GROW = {bool: lib.sb_properties_set_bool, int: lib.sb_properties_set_int,
        float: lib.sb_properties_set_double}  # fmt: skip


class Buffer:
    """As a C program has one."""

    def __init__(self, content: bytes = b"", room: int = ROOM) -> None:
        self.room = room
        self.memory = ffi.new("char[]", room + 1)
        self.length = ffi.new("int64_t *", len(content))
        ffi.memmove(self.memory, content, len(content))
        self.memory[room] = b"\x5a"  # nobody writes behind it

    @property
    def content(self) -> bytes:
        assert self.memory[self.room] == b"\x5a"
        return bytes(ffi.buffer(self.memory, self.length[0]))

    def set(self, name: str | bytes, value: Any) -> int:
        named = name.encode() if isinstance(name, str) else name
        place = (self.memory, self.room, self.length, named)
        if isinstance(value, (str, bytes)):
            text = value.encode() if isinstance(value, str) else value
            code: int = lib.sb_properties_set_text(*place, text, len(text))
        else:
            code = GROW[type(value)](*place, value)
        return code


def got(content: bytes, name: str, kind: type) -> Any:
    """What it is, or the code."""
    where = (content, len(content), name.encode())
    if kind is str:
        text, length = ffi.new("const char **"), ffi.new("int64_t *")
        code = lib.sb_properties_get_text(*where, text, length)
        return code if code < 0 else ffi.unpack(text[0], length[0]).decode()
    found = ffi.new("double *" if kind is float else "int64_t *")
    get = {bool: lib.sb_properties_get_bool, int: lib.sb_properties_get_int,
           float: lib.sb_properties_get_double}[kind]  # fmt: skip
    code = get(*where, found)
    return code if code < 0 else kind(found[0])


@given(st.lists(st.tuples(NAMES, VALUES), max_size=20), st.dictionaries(NAMES, VALUES, max_size=20))
def test_what_is_set_is_what_everybody_reads(
    pairs: list[tuple[str, Any]], before: dict[str, Any]
) -> None:
    """Also in a map that somebody else has packed."""
    buffer = Buffer(msgpack.packb(before) if before else b"")
    expected = dict(before)
    for name, value in pairs:
        assert buffer.set(name, value) == codes.OK
        expected[name] = value
    if buffer.content:
        assert msgpack.unpackb(buffer.content) == expected
    for name, value in expected.items():
        found = got(buffer.content, name, type(value))
        assert (found, type(found)) == (value, type(value))


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_integers_are_as_short_as_others_write_them(value: int) -> None:
    """A binding of headers compares the bytes."""
    buffer = Buffer()
    buffer.set("n", value)
    assert buffer.content[3 + 2 :] == msgpack.packb(value)


@given(NAMES, VALUES, st.integers(0, 40))
def test_a_buffer_without_room_is_left_as_it_was(name: str, value: Any, room: int) -> None:
    content = msgpack.packb({"n": 1})
    buffer = Buffer(content, max(room, len(content)))
    code = buffer.set(name, value)
    assert code in (codes.OK, codes.TOO_SMALL)
    if code == codes.TOO_SMALL:
        assert buffer.content == content
        assert "bytes" in detail_of(code)


def test_no_more_than_a_message_may_have() -> None:
    buffer = Buffer()
    assert buffer.set("text", "x" * 65000) == codes.OK
    content = buffer.content
    assert buffer.set("more", "x" * 1000) == codes.TOO_LARGE
    assert buffer.content == content
    assert buffer.set("text", "short") == codes.OK
    assert buffer.set("more", "x" * 1000) == codes.OK


@pytest.mark.parametrize("name", [b"", b"x" * 256, b"\xff"])
def test_names_that_are_none(name: bytes) -> None:
    assert Buffer().set(name, 1) == codes.INVALID


def test_a_text_that_is_none() -> None:
    assert Buffer().set("name", b"\xc3") == codes.INVALID
    assert lib.sb_properties_set_text(ffi.NULL, 0, ffi.NULL, b"name", b"a", 1) == codes.INVALID
    buffer = Buffer()
    place = (buffer.memory, buffer.room, buffer.length, b"name")
    assert lib.sb_properties_set_text(*place, ffi.NULL, 1) == codes.INVALID
    assert lib.sb_properties_set_text(*place, b"a", -1) == codes.INVALID
    assert lib.sb_properties_set_text(*place, ffi.NULL, 0) == codes.OK
    buffer.length[0] = buffer.room + 1
    assert lib.sb_properties_set_bool(*place, 1) == codes.INVALID


@given(st.binary(max_size=60))
def test_bytes_that_are_no_properties(content: bytes) -> None:
    """Whatever they are, nothing is read or written beside them."""
    for kind in (str, int, float, bool):
        got(content, "name", kind)
    buffer = Buffer(content)
    if buffer.set("name", 1) == codes.OK:
        assert got(buffer.content, "name", int) == 1
    else:
        assert buffer.content == content
        assert got(content, "name", int) == codes.INVALID


def test_one_that_is_missing_or_of_another_kind() -> None:
    content = msgpack.packb(
        {"nil": None, "n": 1, "text": "a", "list": [1], "x": 1.5, "big": 1 << 63}
    )
    assert got(content, "missing", int) == got(content, "nil", str) == codes.NOT_FOUND
    assert got(b"", "missing", int) == codes.NOT_FOUND
    assert got(content, "n", float) == 1.0
    for name, kind, said in (
        ("n", str, "is an integer, not a text"),
        ("text", int, "is a text, not an integer"),
        ("list", float, "a list or a map, not a number"),
        ("x", int, "is a double"),
        ("n", bool, "is an integer, not a bool"),
        ("big", int, "is a double"),
    ):
        assert got(content, name, kind) == codes.INVALID
        assert said in detail_of(codes.INVALID)


def test_python_and_selectors_read_them(broker: shmbroker.Broker) -> None:
    orders = broker.declare_queue("orders")
    buffer = Buffer()
    for name, value in {"table": 7, "to go": True, "price": 2.5, "drink": "café"}.items():
        assert buffer.set(name, value) == codes.OK
    body, properties = ffi.from_buffer(b"one"), ffi.from_buffer(buffer.content)
    outgoing = ffi.new("sb_outgoing *", {"body": body, "length": 3, "properties": properties,
                                         "properties_length": len(buffer.content)})  # fmt: skip
    assert lib.sb_publish_message(orders._queue, outgoing, 0) >= 0
    with orders.get() as message:
        assert message.properties == {"table": 7, "to go": True, "price": 2.5, "drink": "café"}
