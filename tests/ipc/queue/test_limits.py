"""Limits: each is a named error, nothing is lost, and the ring goes on."""

from __future__ import annotations

import pytest

import shmbroker
from shmbroker import Ring


def test_a_message_larger_than_a_quarter_of_the_arena(ring_name: str) -> None:
    with Ring.create(ring_name, arena_bytes=1 << 20) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        with pytest.raises(shmbroker.MessageTooLarge, match="quarter"):
            producer.publish(bytes((1 << 18) + 1))
        producer.publish(bytes((1 << 18) - 64))
        assert consumer.receive() == bytes((1 << 18) - 64)


def test_an_exhausted_arena_is_told_and_recovers(ring_name: str) -> None:
    with Ring.create(ring_name, slots=1024, arena_bytes=1 << 20) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        published = 0
        with pytest.raises(shmbroker.ArenaFull, match="arena"):
            for _ in range(1024):
                producer.publish(bytes(8000))
                published += 1
        assert published >= 100
        assert [consumer.receive() for _ in range(published)] == [bytes(8000)] * published
        for _ in range(3 * published):
            producer.publish(bytes(8000))
            consumer.receive()


@pytest.mark.parametrize("slots", [0, 1, 3, 1000, 1 << 25, -8])
def test_an_impossible_number_of_slots(ring_name: str, slots: int) -> None:
    with pytest.raises(shmbroker.InvalidArgument):
        Ring.create(ring_name, slots=slots)


@pytest.mark.parametrize("arena_bytes", [0, -4096, 4097, 1 << 40])
def test_an_impossible_arena(ring_name: str, arena_bytes: int) -> None:
    with pytest.raises(shmbroker.InvalidArgument):
        Ring.create(ring_name, arena_bytes=arena_bytes)


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".hidden", "x" * 129])
def test_an_impossible_name(name: str) -> None:
    with pytest.raises(shmbroker.InvalidArgument):
        Ring.create(name)
    with pytest.raises(shmbroker.InvalidArgument):
        Ring.attach(name)


@pytest.mark.parametrize("owner", [0, -1, 4096])
def test_an_impossible_owner(ring_name: str, owner: int) -> None:
    with Ring.create(ring_name) as ring, pytest.raises(shmbroker.InvalidArgument):
        ring.port(owner)


def test_a_ring_that_exists_is_not_made_again(ring_name: str) -> None:
    with Ring.create(ring_name) as ring:
        ring.port(1).publish(b"a")
        with pytest.raises(shmbroker.SegmentExists, match=ring_name):
            Ring.create(ring_name)
        assert ring.port(2).receive() == b"a"


def test_a_ring_that_does_not_exist() -> None:
    with pytest.raises(shmbroker.SystemRefused, match="No such file"):
        Ring.attach("no-such-ring")


def test_all_gates_are_taken(ring_name: str) -> None:
    with Ring.create(ring_name) as ring:
        port = ring.port(1)
        cursors = [port.subscribe() for _ in range(64)]
        with pytest.raises(shmbroker.InvalidArgument, match="as many subscribers as it can have"):
            port.subscribe()
        cursors[7].close()
        port.subscribe()


def test_an_exhausted_dev_shm_is_an_error_at_publish(ring_name: str) -> None:
    """Publishing commits memory by fallocate: a full tmpfs is told, not a SIGBUS.

    A real full tmpfs needs a mount namespace of its own; the child makes one with 3 MiB.
    """
    import subprocess
    import sys

    program = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER, CLONE_NEWNS, MS_REC_PRIVATE = 0x10000000, 0x20000, 0x44000
if os.getuid() != 0:
    assert libc.unshare(CLONE_NEWUSER) == 0, os.strerror(ctypes.get_errno())
assert libc.unshare(CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None)
assert libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=3m") == 0, os.strerror(
    ctypes.get_errno())
import shmbroker
with shmbroker.Ring.create("small", arena_bytes=64 << 20) as ring:
    producer, consumer = ring.port(1), ring.port(2)
    published = 0
    try:
        while True:
            producer.publish(bytes(100_000))
            published += 1
    except shmbroker.ArenaFull as error:
        print(error)
    assert published > 10, published
    assert all(consumer.receive() == bytes(100_000) for _ in range(published))
    for _ in range(100):
        producer.publish(bytes(100_000))
        assert consumer.receive() == bytes(100_000)
    try:
        shmbroker.Ring.create("another", slots=65536)
    except shmbroker.ArenaFull as error:
        print(error)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.count("/dev/shm is full") == 2, done.stdout + done.stderr
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr
