"""What people get wrong: each is an error of ours that says what to do, and changes nothing."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
from array import array
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.core import layout
from shmbroker.core.codes import TOO_MANY_LOANS
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.vhost import vhost as vhosts

F_OFD_SETLK = 37

BAD_NAMES = [
    ("", "1 to 255 bytes"),
    ("x" * 256, "1 to 255 bytes"),
    ("ü" * 128, "1 to 255 bytes"),
    ("a/b", "path"),
    ("../etc/passwd", "path"),
    ("..", "path"),
    ("a\nb", "control"),
    ("a\x7f", "control"),
    ("a\0b", "zero"),
    ("\udc80", "UTF-8"),
    (None, "text"),
    (b"a", "text"),
    (3, "text"),
]


@pytest.mark.parametrize(("name", "says"), BAD_NAMES)
def test_a_name_that_nothing_can_have(vhost: str, name: Any, says: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_exchange("x", "topic")
        broker.declare_queue("q")
        calls: list[Callable[[], object]] = [
            lambda: broker.declare_queue(name),
            lambda: broker.declare_exchange(name, "direct"),
            lambda: broker.queue(name),
            lambda: broker.delete_queue(name),
            lambda: broker.delete_exchange(name),
            lambda: broker.bind("x", name),
            lambda: broker.bind(name, "q"),
            lambda: broker.unbind(name, "q"),
            lambda: broker.subscribe(name),
        ]
        for call in calls:
            with pytest.raises(shmbroker.InvalidName, match=says):
                call()
        assert [each.name for each in broker.queues()] == ["q"]


def test_names_that_look_odd_and_are_good(vhost: str) -> None:
    names = ["x" * 255, "ü" * 127, "a b", ".", "*", "#", "%s%n", "-", "🐇"]
    names.remove(".")
    with shmbroker.connect(f"shm://{vhost}") as broker:
        for name in names:
            broker.declare_queue(name, slots=4).publish(name.encode())
        assert sorted(each.name for each in broker.queues()) == sorted(names)
        assert [broker.queue(each).receive(timeout=0).decode() for each in names] == names


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", "a.b", "x" * 129, "ü", "a\0b", None, 3])
def test_a_vhost_that_cannot_be(name: Any) -> None:
    with pytest.raises(shmbroker.InvalidName):
        vhosts.create(name)
    with pytest.raises(shmbroker.InvalidArgument):
        shmbroker.connect(f"shm://{name}" if isinstance(name, str) else name)
    with pytest.raises((shmbroker.InvalidName, shmbroker.NotFound)):
        vhosts.delete(name)


@pytest.mark.parametrize("url", ["demo", "", None, b"shm://demo"])
def test_an_address_that_is_none(url: Any) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="shm://"):
        shmbroker.connect(url)


def test_an_address_of_a_kind_that_is_none() -> None:
    with pytest.raises(ValueError, match="udp: is not known; there are tcp, shm"):
        shmbroker.connect("udp://demo", user="u", password="p")


@pytest.mark.parametrize("arena_bytes", [0, -1, 4097, 1 << 60, 1 << 80, -(1 << 80), 1.5, None, "1"])
def test_an_arena_that_cannot_be(arena_bytes: Any) -> None:
    with pytest.raises(shmbroker.InvalidArgument):
        vhosts.create(f"test-{os.getpid()}-never", arena_bytes=arena_bytes)
    assert not vhosts.exists(f"test-{os.getpid()}-never")


def test_what_is_not_there_is_named(vhost: str) -> None:
    with pytest.raises(shmbroker.NotFound, match=r"no vhost 'nobody'.*create it first"):
        shmbroker.connect("shm://nobody")
    with pytest.raises(shmbroker.NotFound, match="nobody"):
        vhosts.delete("nobody")
    with shmbroker.connect(f"shm://{vhost}") as broker:
        for call in (
            lambda: broker.queue("none"),
            lambda: broker.exchange("none"),
            lambda: broker.delete_queue("none"),
            lambda: broker.delete_exchange("none"),
            lambda: broker.bind("none", "none"),
            lambda: broker.subscribe("none"),
        ):
            with pytest.raises(shmbroker.NotFound, match="none"):
                call()


def test_declared_twice_differently(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("q", slots=8)
        broker.declare_queue("q", slots=8)
        with pytest.raises(shmbroker.DeclaredDifferently, match=r"8 slots, not 16.*delete it"):
            broker.declare_queue("q", slots=16)
        broker.declare_exchange("other", "fanout")
        broker.declare_exchange("x", "topic")
        for kind, alternate in (("direct", None), ("topic", "other")):
            with pytest.raises(shmbroker.DeclaredDifferently, match=r"'x'.*delete it first"):
                broker.declare_exchange("x", kind, alternate=alternate)


def test_deleting_what_is_in_use(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        shmbroker.connect(f"shm://{vhost}") as other,
    ):
        queue = other.declare_queue("q")
        queue.publish(b"a")
        with pytest.raises(shmbroker.InUse, match="1 other participant"):
            broker.delete_queue("q")
        broker.declare_exchange("x", "topic")
        broker.bind("x", "q", "#")
        with pytest.raises(shmbroker.InUse, match=r"1 binding.*force"):
            broker.delete_exchange("x")
        broker.declare_exchange("y", "topic", alternate="x")
        broker.unbind("x", "q", "#")
        with pytest.raises(shmbroker.InUse, match="alternate"):
            broker.delete_exchange("x")
        with pytest.raises(shmbroker.InUse, match="participants"):
            vhosts.delete(vhost)
        broker.delete_queue("q", force=True)
        with pytest.raises(shmbroker.NotFound, match="'q' was deleted"):
            queue.publish(b"a")
        broker.delete_exchange("x", force=True)


WRONG_TYPES: list[Callable[[Broker, shmbroker.Queue, shmbroker.Exchange, Any], object]] = [
    lambda b, q, x, wrong: b.declare_queue("other", slots=wrong or "none"),
    lambda b, q, x, wrong: b.declare_exchange("other", wrong),
    lambda b, q, x, wrong: b.declare_exchange("other", "topic", alternate=wrong or 3),
    lambda b, q, x, wrong: b.bind("x", "q", wrong if wrong is not None else 3),
    lambda b, q, x, wrong: b.bind("x", "q", arguments=wrong or 3),
    lambda b, q, x, wrong: b.bind("x", "q", match=wrong),
    lambda b, q, x, wrong: b.bind("x", "q", to=wrong or "none"),
    lambda b, q, x, wrong: b.subscribe("q", start=wrong),
    lambda b, q, x, wrong: q.publish(wrong),
    lambda b, q, x, wrong: q.publish(b"", key=wrong or 3),
    lambda b, q, x, wrong: q.publish(b"", properties=wrong or 3),
    lambda b, q, x, wrong: q.publish_many(wrong),
    lambda b, q, x, wrong: q.publish_many([b"", wrong]),
    lambda b, q, x, wrong: q.loan(wrong),
    lambda b, q, x, wrong: q.get_many(wrong),
    lambda b, q, x, wrong: q.receive_many(wrong),
    lambda b, q, x, wrong: list(q.consume(prefetch=wrong)),
    lambda b, q, x, wrong: x.publish(wrong),
    lambda b, q, x, wrong: x.publish(b"", key=wrong or 3),
]


@pytest.mark.parametrize("wrong", [None, "text", 1.5, -3, object()])
@pytest.mark.parametrize("call", range(len(WRONG_TYPES)))
def test_the_wrong_type(vhost: str, call: int, wrong: Any) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue, exchange = broker.declare_queue("q"), broker.declare_exchange("x", "headers")
        if wrong == "text" and call in (2, 3, 9, 18):
            return  # keys and names are text
        with pytest.raises(shmbroker.InvalidArgument) as told:
            WRONG_TYPES[call](broker, queue, exchange, wrong)
        assert len(str(told.value)) > 20
        assert queue.statistics().depth == 0
        assert [each.name for each in broker.queues()] == ["q"]
        assert broker.bindings() == []


@pytest.mark.parametrize("timeout", ["1", -1, -0.1, float("nan"), b"", [], object()])
def test_a_timeout_that_is_none(vhost: str, timeout: Any) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=2)
        calls: list[Callable[[], object]] = [
            lambda: queue.get(timeout=timeout),
            lambda: queue.get_many(2, timeout=timeout),
            lambda: queue.receive(timeout=timeout),
            lambda: queue.receive_many(2, timeout=timeout),
            lambda: queue.publish(b"", timeout=timeout),
            lambda: queue.publish_many([b""], timeout=timeout),
            lambda: broker.subscribe("q", timeout=timeout),
            lambda: broker.repair_for(timeout),
        ]
        for call in calls:
            with pytest.raises(shmbroker.InvalidArgument, match="seconds"):
                call()
        assert queue.statistics().depth == 0


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 10**30])
def test_a_timeout_of_ages(vhost: str, timeout: Any) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=2)
        queue.publish(b"a", timeout=timeout)
        assert queue.receive(timeout=timeout) == b"a"


@pytest.mark.parametrize("slots", [0, 1, 3, 1000, 1 << 25, 1 << 70, True])
def test_slots_that_cannot_be(vhost: str, slots: Any) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        pytest.raises(shmbroker.InvalidArgument, match="power of two"),
    ):
        broker.declare_queue("q", slots=slots)


def test_keys_and_properties_that_are_too_long(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        broker.declare_exchange("x", "topic")
        with pytest.raises(shmbroker.InvalidArgument, match="65535"):
            queue.publish(b"", key="k" * 65536)
        with pytest.raises(shmbroker.InvalidArgument, match="65535"):
            queue.publish(b"", properties={"p": "v" * 65536})
        with pytest.raises(shmbroker.InvalidArgument, match="448"):
            broker.bind("x", "q", "k" * 449)
        with pytest.raises(shmbroker.InvalidArgument, match="448"):
            broker.bind("x", "q", "k", arguments={"a": "v" * 450})
        with pytest.raises(shmbroker.MessageTooLarge, match="quarter"):
            queue.publish(bytes(17 << 20))
        with pytest.raises(shmbroker.MessageTooLarge):
            queue.loan(1 << 40)
        queue.publish(b"", key="k" * 65535, properties={"p": "v" * 65529})
        with queue.get(timeout=0) as message:
            assert message.key == "k" * 65535


@pytest.mark.parametrize(
    "properties", [{1: 2}, {"a": object()}, {"a": 1 << 70}, [("a", 1)], "abc", {b"a": 1}]
)
def test_properties_that_cannot_be_packed(vhost: str, properties: Any) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        with pytest.raises(shmbroker.InvalidArgument, match="properties"):
            queue.publish(b"", properties=properties)


def test_whatever_properties_can_be_published_can_be_read(vhost: str) -> None:
    properties = {"": {1: {True: None}}, "b": b"\x00", "l": [1.5, -1], "u": "ü", "big": 1 << 63}
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        queue.publish(b"", properties=properties)
        assert next(queue.browse()).properties == properties
        with queue.get(timeout=0) as message:
            assert message.properties == properties


def test_properties_of_a_stranger_that_are_none(vhost: str) -> None:
    """A compiled loop may publish anything: it is an error to look at, and can be acknowledged."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        port = queue.port()
        for packed in (b"\xc1", b"\x81", b"\x93\x01", b"\x05", b"\x81\x90\x01"):
            kept = ffi.from_buffer(packed)
            message = ffi.new("sb_outgoing *", {"properties": kept})
            message.properties_length = len(packed)
            assert lib.sb_port_publish_with(port._port, message, ffi.NULL) >= 0
            with queue.get(timeout=0) as taken, pytest.raises(shmbroker.InvalidArgument):
                _ = taken.properties


def test_buffers_are_published_as_they_lie(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue, exchange = broker.declare_queue("q"), broker.exchange("")
        numbers = numpy.arange(6, dtype=numpy.int64)
        buffers: list[Any] = [
            bytearray(b"abc"),
            memoryview(b"abcdef")[2:4],
            array("q", [1, 2, 3]),
            numbers,
            numbers.reshape(2, 3),
            memoryview(array("d", [1.0])),
        ]
        expected = [bytes(memoryview(each).cast("B")) for each in buffers]
        for each in buffers:
            queue.publish(each)
            assert exchange.publish(each, key="q") == 1
        assert queue.publish_many(buffers) == len(buffers)
        received = [queue.receive(timeout=0) for _ in range(3 * len(buffers))]
        assert received == [each for each in expected for _ in range(2)] + expected
        for scattered in (numbers[::2], memoryview(b"abcdef")[::2]):
            with pytest.raises(shmbroker.InvalidArgument, match="contiguous"):
                queue.publish(scattered)
            with pytest.raises(shmbroker.InvalidArgument, match="contiguous"):
                queue.publish_many([scattered])


def test_publishing_a_buffer_makes_no_copy_of_it(vhost: str) -> None:
    """But the one into the arena: the most that Python allocates meanwhile is far less."""
    import tracemalloc

    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        large = numpy.zeros(1 << 20, dtype=numpy.int64)
        tracemalloc.start()
        try:
            queue.publish(large)
            queue.publish(memoryview(bytes(10)))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 1 << 20
        assert len(queue.receive(timeout=0)) == large.nbytes


def test_several_bodies_may_come_from_a_generator_and_one_body_is_not_several(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        assert queue.publish_many(b"%d" % each for each in range(3)) == 3
        assert queue.receive_many(timeout=0) == [b"0", b"1", b"2"]
        with pytest.raises(shmbroker.InvalidArgument, match="list"):
            queue.publish_many(b"abc")  # type: ignore[arg-type]


# --- too many ------------------------------------------------------------------------------------


def fill_rows(broker: Broker, table: int) -> None:
    """Say that all rows of a table are in use, as so many declarations would."""
    at, rows = {
        layout.QUEUES: (layout.QUEUE_COLUMN_AT, layout.QUEUE_ROWS),
        layout.EXCHANGES: (layout.EXCHANGE_COLUMN_AT, layout.EXCHANGE_ROWS),
        layout.BINDINGS: (layout.BINDING_COLUMN_AT, layout.BINDING_ROWS),
    }[table]
    catalog = ffi.buffer(ffi.cast("char *", lib.sb_catalog(broker._connection)), at + rows * 8)
    word = struct.pack("<q", layout.ROW_LIVE | 1 << layout.ROW_GENERATION_SHIFT | 0xABCDEF)
    catalog[at : at + rows * 8] = word * rows
    high = layout.CATALOG_HIGH_AT + table * 8
    catalog[high : high + 8] = struct.pack("<q", rows)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (layout.QUEUES, "32768 queues"),
        (layout.EXCHANGES, "4096 exchanges"),
        (layout.BINDINGS, "131072 bindings"),
    ],
)
def test_a_table_is_full(vhost: str, table: int, says: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("q")
        broker.declare_exchange("x", "fanout")
        fill_rows(broker, table)
        with pytest.raises(shmbroker.TooMany, match=f"{says}.*(delete|unbind) some"):
            if table == layout.QUEUES:
                broker.declare_queue("one more")
            elif table == layout.EXCHANGES:
                broker.declare_exchange("one more", "topic")
            else:
                broker.bind("x", "q")


def test_all_participants_are_taken(vhost: str) -> None:
    file = os.open(f"/dev/shm/shmbroker.{vhost}.participants", os.O_RDWR)
    try:
        whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1, layout.PARTICIPANTS - 1, 0)
        fcntl.fcntl(file, F_OFD_SETLK, whole)
        with pytest.raises(shmbroker.TooMany, match="4095 participants already: close some"):
            shmbroker.connect(f"shm://{vhost}")
        one = struct.pack("hhqqi4x", fcntl.F_UNLCK, os.SEEK_SET, layout.PARTICIPANTS - 1, 1, 0)
        fcntl.fcntl(file, F_OFD_SETLK, one)
        with shmbroker.connect(f"shm://{vhost}") as broker:
            assert broker.participant == layout.PARTICIPANTS - 1
            broker.declare_queue("q").publish(b"a")
            assert broker.queue("q").receive(timeout=0) == b"a"
    finally:
        os.close(file)


def test_more_loans_than_a_process_can_have_in_a_queue(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        loans = [queue.loan(1) for _ in range(64)]
        with pytest.raises(shmbroker.TooMany, match="queue 'q': 64 threads and loans") as raised:
            queue.loan(1)
        assert raised.value.code == TOO_MANY_LOANS
        for call in (lambda: queue.publish(b"a"), lambda: queue.publish_many([b"a"]), queue.get):
            with pytest.raises(shmbroker.TooMany, match="queue 'q': 64 threads and loans"):
                call()  # without a time-out, and at once: we have the loans ourselves
        loans.pop().drop()
        queue.publish(b"a")
        for _ in range(100):
            queue.port().close()  # and is there for the next
        for loan in loans:
            loan.drop()


# --- somebody else's -----------------------------------------------------------------------------


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_the_vhost_of_another_user(vhost: str) -> None:
    program = f"""
import os
import shmbroker
from shmbroker import vhost
import shmbroker.ipc.connection.broker
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for call in (lambda: shmbroker.connect("shm://{vhost}"),
             lambda: shmbroker.connect("shm://{vhost}", create=True),
             lambda: vhost.delete("{vhost}"),
             lambda: vhost.delete("{vhost}", force=True)):
    try:
        call()
    except shmbroker.SystemRefused as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.count("belongs to another user") == 4, done.stdout + done.stderr
    with shmbroker.connect(f"shm://{vhost}"):
        pass
