"""Messages that C programs must not publish are refused, whichever way they would go."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.core.codes import INVALID, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of

BAD = [
    ({"ttl_ns": -1}, "a time to live is a number of ns above 0, or 0 for none, not -1"),
    ({"priority": 11}, "SB_PRIORITY"),
    ({"priority": -1}, "SB_PRIORITY"),
    ({"properties": b"\xc1"}, "properties are a MessagePack map with text keys"),
    ({"properties": b"\x81\xa1a"}, "properties are a MessagePack map with text keys"),
    ({"properties": b"\x80\x80"}, "properties are a MessagePack map with text keys"),
    ({"properties": b"\x81\x01\x02"}, "properties are a MessagePack map with text keys"),
    ({"length": -1}, "have 0 bytes or more each, not -1"),
    ({"key_length": -1}, "have 0 bytes or more each, not 1, -1 and 0"),
    ({"properties_length": -1}, "have 0 bytes or more each"),
    ({"properties_length": -1, "id_length": 1}, "have 0 bytes or more each"),
]


def publishes(broker: Broker, queue: Any, message: Any) -> int:
    return int(lib.sb_publish_message(queue, message, 0))


def schedules(broker: Broker, queue: Any, message: Any) -> int:
    message.delay_ns = 1 << 40
    return int(lib.sb_publish_message(queue, message, 0))


def lends(broker: Broker, queue: Any, message: Any) -> int:
    return int(lib.sb_loan_take(queue, message, ffi.new("sb_loan *")))


def routes(broker: Broker, queue: Any, message: Any) -> int:
    exchange = ffi.new("sb_exchange **")
    assert lib.sb_open_exchange(broker._connection, b"", exchange) == OK
    if message.key_length == 0:
        message.key, message.key_length = ffi.from_buffer(b"q"), 1
    return int(lib.sb_exchange_publish(exchange[0], message, 0, ffi.new("int64_t *")))


def commits(broker: Broker, queue: Any, message: Any) -> int:
    transaction = broker.transaction()
    return int(lib.sb_transaction_publish(transaction._transaction, queue, message))


def asks(broker: Broker, queue: Any, message: Any) -> int:
    asked = ffi.new("sb_asked *")
    code = int(lib.sb_ask(queue, message, asked, 0))
    lib.sb_asked_end(asked)
    return code


WAYS = [publishes, schedules, lends, routes, commits, asks]


@pytest.mark.parametrize("way", WAYS)
def test_it_is_refused(vhost: str, way: Callable[[Broker, Any, Any], int]) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=16)
        for given, says in BAD:
            message = ffi.new("sb_outgoing *")
            message.body, message.length = ffi.from_buffer(b"x"), 1
            for name, value in given.items():
                setattr(message, name, ffi.from_buffer(value) if name == "properties" else value)
                if name == "properties":
                    message.properties_length = len(value)
            assert way(broker, queue._queue, message) == INVALID, given
            assert says in detail_of(INVALID)
        assert not list(queue.browse())


@pytest.mark.parametrize("name", ["", "x"])
def test_an_exchange_is_asked_for_what_there_may_be(broker: Broker, name: str) -> None:
    broker.declare_exchange("x", "fanout")
    broker.declare_queue("q", slots=16)
    broker.bind("x", "q")
    exchange = ffi.new("sb_exchange **")
    assert lib.sb_open_exchange(broker._connection, name.encode(), exchange) == OK
    message = ffi.new("sb_outgoing *", {"key": ffi.from_buffer(b"q"), "key_length": 1})
    done, queue, route = ffi.new("int64_t *", -1), ffi.new("sb_queue **"), ffi.new("uint64_t *")
    assert lib.sb_exchange_publish(exchange[0], message, 0, done) == INVALID
    assert "-1 queues cannot have it" in detail_of(INVALID)
    for key, properties, count in ((-1, 0, 0), (0, -1, 0), (1, 0, -1)):
        asked = (exchange[0], message.key, key, ffi.NULL, properties)
        assert lib.sb_exchange_full(*asked, count, queue) == INVALID
        assert count < 0 or lib.sb_exchange_route(*asked, route) == INVALID


def test_the_parts_of_one_are_refused(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=16)._queue
        for ttl_ns, priority, packed in ((-1, 0, b""), (0, 11, b""), (0, -1, b""), (0, 0, b"\xc1")):
            parts = (b"x", 1, b"", 0, packed, len(packed), ttl_ns, priority, b"", 0)
            assert lib.sb_publish_with(queue, *parts, 0) == INVALID


def test_a_loan_is_published_to_its_own_queue(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue, other = (broker.declare_queue(name, slots=16) for name in "qo")
        loan, shape = ffi.new("sb_loan *"), ffi.new("sb_outgoing *")
        shape.length = 4
        assert lib.sb_loan_take(queue._queue, shape, loan) == OK
        assert lib.sb_loan_publish(other._queue, loan, 0) == INVALID
        assert "another queue than 'o'" in detail_of(INVALID)
        assert lib.sb_loan_drop(other._queue, loan) == INVALID
        assert lib.sb_loan_publish(queue._queue, loan, 0) == 0
        assert lib.sb_loan_publish(queue._queue, loan, 0) == INVALID
        assert "published or dropped before" in detail_of(INVALID)
        assert (len(list(queue.browse())), len(list(other.browse()))) == (1, 0)


FULL = """\
import ctypes, os, shmbroker
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x10000000) == 0 if os.getuid() else True
assert libc.unshare(0x00020000) == 0
assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
assert libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=3m") == 0
with shmbroker.connect("shm://full", create=True, arena_bytes=1 << 20) as broker:
    queue = broker.declare_queue("q0", slots=16)
    with open("/dev/shm/filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
    for call in (lambda: queue.publish(bytes(1000)), lambda: broker.declare_queue("q1", slots=64)):
        try:
            call()
        except shmbroker.Error as error:
            print(error)
"""


def test_an_error_does_not_tell_of_an_earlier_one() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL], capture_output=True, text=True, timeout=120, check=False
    )
    lines = ran.stdout.splitlines()
    assert len(lines) == 2, ran.stdout + ran.stderr
    assert "'q0'" in lines[0]
    assert "declaring queue 'q1'" in lines[1]
    assert "'q0'" not in lines[1], lines[1]
    assert "No space left on device" in lines[1]
