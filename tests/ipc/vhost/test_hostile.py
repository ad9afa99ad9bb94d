"""Memory that something else has written into: clear errors, never a crash or a hang.

Each case runs in a process of its own with a time limit, so that a crash is seen as one.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Ring
from shmbroker.core import layout

FLIPS = 400
"""Byte flips a region; each is tried by a producer, consumers, cursors and a repair."""


def exercise(name: str) -> None:
    """Use everything that a client can call; any error of ours is fine."""
    for owner in (1, 2, 3):
        with suppress(shmbroker.Error), Ring.attach(name) as ring:
            _exercise_ring(ring, owner)


def _exercise_ring(ring: Ring, owner: int) -> None:
    port, other = ring.port(owner), ring.port(owner + 10)
    calls = [
        lambda: port.publish(b"x" * 100, spins=2),
        lambda: port.publish_many([b"a", b"b" * 5000]),
        lambda: port.take(spins=2).give_back(),
        lambda: port.receive(spins=2),
        lambda: other.receive_many(spins=2),
        lambda: [port.peek(position) for position in range(10)],
        lambda: [port.subscribe_lossy(from_now=False).next(spins=2) for _ in range(3)],
        lambda: [port.subscribe(from_now=False).next(spins=2) for _ in range(2)],
        lambda: port.number(5),
        lambda: port.drop_oldest(),
        lambda: port.repair(alive=[owner], now_ms=10**6, grace_ms=10),
        lambda: port.tail,
        lambda: port.publish(b"y" * 30_000, spins=2),
        lambda: port.receive(spins=2),
        lambda: port.trim(),
    ]
    for call in calls:
        with suppress(shmbroker.Error):
            call()


def prepare(name: str) -> None:
    """A ring in full use: messages ready, leased, done, a gate, blocks of several owners."""
    Ring.create(name, slots=16, arena_bytes=256 << 10).close()
    with Ring.attach(name) as ring:
        producer, consumer = ring.port(5), ring.port(6)
        producer.number(44)
        ring.port(7).subscribe()
        for index in range(6):
            producer.publish(b"%d" % index * 50)
        consumer.take()
        consumer.receive()
        # deliberately not closed in order: blocks stay owned, a message stays leased


def _regions(name: str) -> dict[str, tuple[Path, int, int]]:
    ring, arena = Path(f"/dev/shm/{name}.ring"), Path(f"/dev/shm/{name}.arena")
    data_at = arena.stat().st_size - (256 << 10)
    return {
        "identity": (ring, 0, layout.RING_IDENTITY_BYTES),
        "hints": (ring, layout.RING_TAIL_AT, layout.RING_COUNTERS_AT + 64),
        "gates": (ring, layout.RING_GATES_AT, layout.RING_GATES_AT + 4 * layout.GATE_BYTES),
        "producers": (ring, layout.RING_PRODUCERS_AT, layout.RING_PRODUCERS_AT + 256),
        "slots": (ring, layout.RING_SLOTS_START, ring.stat().st_size),
        "arena identity": (arena, 0, layout.ARENA_IDENTITY_BYTES),
        "committed": (arena, layout.ARENA_COMMITTED_AT, layout.ARENA_COMMITTED_AT + 8),
        "blocks": (arena, layout.ARENA_TABLE_AT, layout.ARENA_TABLE_AT + 1024),
        "chunks": (arena, data_at, data_at + 8192),
    }


def flip_bytes(name: str, region: str, seed: int) -> None:
    """Flip one byte at a time, use the ring, and start again."""
    chance = random.Random(seed)
    path, start, end = _regions(name)[region]
    images = {each: each.read_bytes() for each in path.parent.glob(f"{name}.*")}
    for _ in range(FLIPS):
        at, bits = chance.randrange(start, end), chance.randrange(1, 256)
        _write(path, at, bytes([images[path][at] ^ bits]))
        exercise(name)
        for each, image in images.items():
            _restore(each, image)


def fill_with_random_bytes(name: str, seed: int) -> None:
    """All but the identity is noise: what a client sees when somebody else's bug wrote there."""
    chance = random.Random(seed)
    ring, arena = Path(f"/dev/shm/{name}.ring"), Path(f"/dev/shm/{name}.arena")
    images = {ring: ring.read_bytes(), arena: arena.read_bytes()}
    for _ in range(60):
        _write(ring, layout.PAGE_BYTES, chance.randbytes(len(images[ring]) - layout.PAGE_BYTES))
        table = len(images[arena]) - (256 << 10) - layout.ARENA_TABLE_AT
        _write(arena, layout.ARENA_TABLE_AT, chance.randbytes(table + 64 << 10))
        exercise(name)
        for each, image in images.items():
            _restore(each, image)


def _write(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content[: path.stat().st_size - at])


def _restore(path: Path, image: bytes) -> None:
    if path.stat().st_size != len(image):
        os.truncate(path, len(image))
    _write(path, 0, image)


REGIONS = [
    "identity",
    "hints",
    "gates",
    "producers",
    "slots",
    "arena identity",
    "committed",
    "blocks",
    "chunks",
]


def run_apart(call: str) -> None:
    program = f"from tests.ipc.vhost.test_hostile import *; {call}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("region", REGIONS)
def test_a_flipped_byte_never_crashes_or_hangs_a_client(ring_name: str, region: str) -> None:
    prepare(ring_name)
    run_apart(f"flip_bytes({ring_name!r}, {region!r}, seed=1)")


def test_random_bytes_never_crash_or_hang_a_client(ring_name: str) -> None:
    prepare(ring_name)
    run_apart(f"fill_with_random_bytes({ring_name!r}, seed=2)")


@pytest.mark.parametrize("kind", ["ring", "arena"])
@pytest.mark.parametrize("size", [0, 1, 63, 4096, 8192])
def test_a_truncated_segment(ring_name: str, kind: str, size: int) -> None:
    Ring.create(ring_name).close()
    os.truncate(f"/dev/shm/{ring_name}.{kind}", size)
    with pytest.raises(shmbroker.NotASegment):
        Ring.attach(ring_name)


@pytest.mark.parametrize("kind", ["ring", "arena"])
def test_another_layout_version(ring_name: str, kind: str) -> None:
    Ring.create(ring_name).close()
    _write(Path(f"/dev/shm/{ring_name}.{kind}"), layout.RING_VERSION_AT, b"\x63")
    with pytest.raises(shmbroker.NotASegment, match="layout version"):
        Ring.attach(ring_name)


@pytest.mark.parametrize("kind", ["ring", "arena"])
def test_a_foreign_file(ring_name: str, kind: str) -> None:
    Ring.create(ring_name).close()
    _write(Path(f"/dev/shm/{ring_name}.{kind}"), 0, random.Random(3).randbytes(20_000))
    with pytest.raises(shmbroker.NotASegment, match="magic"):
        Ring.attach(ring_name)


def test_a_ring_of_another_arena(ring_name: str) -> None:
    Ring.create(ring_name).close()
    _write(Path(f"/dev/shm/{ring_name}.arena"), layout.ARENA_IDENTITY_AT, b"another!")
    with (
        Ring.attach(ring_name) as ring,
        pytest.raises(shmbroker.NotASegment, match="another arena"),
    ):
        ring.port(1)
