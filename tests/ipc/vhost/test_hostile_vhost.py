"""A vhost whose segments are cut short, renamed, of another version or boot, or full of noise.

Whatever is in them, a client gets a clear error or an answer: no crash, no hang, no SIGBUS.  Each
case of noise runs in a process of its own with a time limit.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import shmbroker
from shmbroker.core import layout

ARENA_BYTES = 1 << 20
FLIPS = 60
NOISES = 8
DEAD = 2
ROOT = Path(__file__).parents[3]


def segment(vhost: str, kind: str) -> Path:
    if kind == "ring":
        kind = "queue-0-1"
    return Path(f"/dev/shm/shmbroker.{vhost}.{kind}")


def write(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def prepare(vhost: str) -> None:
    """Everything that a vhost can have."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=8)
        broker.declare_queue("r", slots=8)
        broker.declare_exchange("alternate", "fanout")
        for kind in ("direct", "topic", "fanout", "headers"):
            broker.declare_exchange(kind, kind, alternate="alternate")
            broker.bind(kind, "q", "a.b", arguments={"n": 1})
            broker.bind(kind, "r", "#")
        broker.bind("topic", "headers", "#", to="exchange")
        queue.publish(b"first", key="a.b", properties={"n": 1})
        queue.publish(bytes(3000))
    leave_a_commit(vhost)


def leave_a_commit(vhost: str) -> None:
    """What a participant leaves that died just after it had decided."""
    entry = layout.PARTICIPANTS_AT + DEAD * layout.PARTICIPANT_BYTES
    record = layout.TRANSACTIONS_AT + DEAD * layout.TRANSACTION_BYTES
    reference = 1 << layout.REFERENCE_INDEX_BITS
    participants, transactions = segment(vhost, "participants"), segment(vhost, "transactions")
    published = reference, 0, (1 << layout.ORIGIN_PRODUCER_SHIFT) | 1, 0
    acknowledged = reference | layout.OPERATION_ACKS, 0, layout.LEASED << layout.STATE_SHIFT, 0
    at = record + layout.TRANSACTION_OPERATIONS_AT
    write(transactions, at, struct.pack("<8q", *published, *acknowledged))
    write(transactions, record + layout.TRANSACTION_COUNT_AT, struct.pack("<q", 2))
    committed = struct.pack("<q", layout.TRANSACTION_COMMITTED)
    write(participants, entry + layout.PARTICIPANT_TRANSACTION_AT, committed)
    write(participants, entry, struct.pack("<q", layout.PARTICIPANT_LIVE))
    write(participants, layout.PARTICIPANTS_HIGH_AT, struct.pack("<q", DEAD + 1))


def transact(broker: shmbroker.Broker) -> None:
    with broker.transaction(timeout=0) as tx:
        tx.publish(broker.queue("r"), b"x")
        tx.publish(broker.exchange("fanout"), b"y", key="a.b")
        tx.ack(broker.queue("q").get(timeout=0))


def exercise(vhost: str) -> None:
    """Call everything; any error of ours is fine."""
    with suppress(shmbroker.Error), shmbroker.connect(f"shm://{vhost}") as broker:
        calls: list[Callable[[], object]] = [
            broker.queues,
            broker.exchanges,
            broker.bindings,
            broker.participants,
            broker.errors,
            broker.repair,
            lambda: broker.repair_for(0),
            lambda: broker.declare_queue("q", slots=8),
            lambda: broker.declare_queue("new", slots=8),
            lambda: broker.declare_exchange("new", "topic"),
            lambda: broker.bind("new", "q", "#"),
            lambda: broker.unbind("new", "q", "#"),
            *[
                lambda name=name: broker.exchange(name).publish(  # type: ignore[misc]
                    b"x", key="a.b", properties={"n": 1}, timeout=0
                )
                for name in ("direct", "topic", "fanout", "headers", "new")
            ],
            lambda: [broker.exchange(name).kind for name in ("direct", "headers")],
            lambda: broker.queue("q").publish(bytes(5000), timeout=0),
            lambda: broker.queue("q").publish_many([b"1", b"2"], timeout=0),
            lambda: broker.queue("q").get(timeout=0).properties,
            lambda: broker.queue("q").receive_many(timeout=0),
            lambda: list(broker.queue("q").browse()),
            lambda: broker.queue("q").statistics(),
            lambda: broker.subscribe("q", start="earliest", timeout=0).get(timeout=0),
            lambda: transact(broker),
            lambda: broker.queue("q").purge(),
            lambda: broker.delete_exchange("new", force=True),
            lambda: broker.delete_queue("new", force=True),
        ]
        for call in calls:
            with suppress(shmbroker.Error):
                call()


def regions(vhost: str) -> dict[str, tuple[str, int, int]]:
    data_at = segment(vhost, "arena").stat().st_size - ARENA_BYTES
    participant = layout.PARTICIPANTS_AT + layout.PARTICIPANT_BYTES
    record = layout.TRANSACTIONS_AT + DEAD * layout.TRANSACTION_BYTES
    return {
        "identity": ("catalog", 0, layout.CATALOG_IDENTITY_BYTES),
        "generation": ("catalog", layout.CATALOG_GENERATION_AT, layout.CATALOG_HIGH_AT + 24),
        "queue rows": ("catalog", layout.QUEUE_COLUMN_AT, layout.QUEUE_COLUMN_AT + 16),
        "exchange rows": ("catalog", layout.EXCHANGE_COLUMN_AT, layout.EXCHANGE_COLUMN_AT + 40),
        "binding rows": ("catalog", layout.BINDING_COLUMN_AT, layout.BINDING_COLUMN_AT + 72),
        "queue entries": ("catalog", layout.QUEUE_ENTRIES_AT, layout.QUEUE_ENTRIES_AT + 1024),
        "exchange entries": (
            "catalog",
            layout.EXCHANGE_ENTRIES_AT,
            layout.EXCHANGE_ENTRIES_AT + 5 * 512,
        ),
        "binding entries": ("catalog", layout.BINDING_ENTRIES_AT, layout.BINDING_ENTRIES_AT + 4608),
        "participants": ("participants", 0, layout.PARTICIPANTS_HIGH_AT + 8),
        "log": ("participants", layout.PARTICIPANTS_LOG_AT, layout.PARTICIPANTS_LOG_AT + 512),
        "transactions": ("transactions", 0, layout.TRANSACTIONS_ARENA_AT + 8),
        "operations": ("transactions", record, record + 128),
        "participant": ("participants", participant, participant + 2 * layout.PARTICIPANT_BYTES),
        "ring": ("ring", 0, layout.RING_IDENTITY_BYTES),
        "hints": ("ring", layout.RING_TAIL_AT, layout.RING_LEVELS_AT),
        "slots": ("ring", layout.RING_SLOTS_START, layout.RING_SLOTS_START + 8 * 64),
        "arena": ("arena", 0, layout.ARENA_IDENTITY_BYTES),
        "blocks": ("arena", layout.ARENA_COMMITTED_AT, layout.ARENA_TABLE_AT + 256),
        "chunks": ("arena", data_at, data_at + 4096),
    }


REGIONS = [
    "identity",
    "generation",
    "queue rows",
    "exchange rows",
    "binding rows",
    "queue entries",
    "exchange entries",
    "binding entries",
    "participants",
    "transactions",
    "operations",
    "log",
    "participant",
    "ring",
    "hints",
    "slots",
    "arena",
    "blocks",
    "chunks",
]


class Images:
    """What the segments were, to be there again for the next try."""

    def __init__(self, vhost: str) -> None:
        self.vhost = vhost
        paths = Path("/dev/shm").glob(f"shmbroker.{vhost}.*")
        self.images = {path: (path.stat().st_size, list(extents(path))) for path in paths}

    def restore(self) -> None:
        for path in Path("/dev/shm").glob(f"shmbroker.{self.vhost}.*"):
            path.unlink()
        for path, (size, parts) in self.images.items():
            path.touch(mode=0o600)
            os.truncate(path, size)
            for at, content in parts:
                write(path, at, content)


def extents(path: Path) -> Iterator[tuple[int, bytes]]:
    """The parts that are no holes: a catalog is 80 MiB of them."""
    with path.open("rb") as file:
        end = 0
        while True:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:
                return
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            yield start, os.pread(file.fileno(), end - start, start)


def flip_bytes(vhost: str, region: str, seed: int) -> None:
    chance = random.Random(seed)
    kind, start, end = regions(vhost)[region]
    path = segment(vhost, kind)
    images = Images(vhost)
    for _ in range(FLIPS):
        at, bits = chance.randrange(start, end), chance.randrange(1, 256)
        with path.open("rb") as file:
            byte = os.pread(file.fileno(), 1, at)
        write(path, at, bytes([byte[0] ^ bits]))
        exercise(vhost)
        images.restore()


def noise(vhost: str, region: str, seed: int) -> None:
    chance = random.Random(seed)
    kind, start, end = regions(vhost)[region]
    images = Images(vhost)
    for _ in range(NOISES):
        write(segment(vhost, kind), start, chance.randbytes(end - start))
        exercise(vhost)
        images.restore()


def run_apart(call: str) -> None:
    program = f"from tests.ipc.vhost.test_hostile_vhost import *; {call}"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stderr[-3000:]}"


@pytest.fixture
def prepared(vhost: str) -> str:
    shmbroker.vhost.delete(vhost)
    shmbroker.vhost.create(vhost, arena_bytes=ARENA_BYTES)
    prepare(vhost)
    return vhost


@pytest.mark.parametrize("region", REGIONS)
def test_a_flipped_byte(prepared: str, region: str) -> None:
    run_apart(f"flip_bytes({prepared!r}, {region!r}, seed=1)")


@pytest.mark.parametrize("region", REGIONS)
def test_random_bytes(prepared: str, region: str) -> None:
    run_apart(f"noise({prepared!r}, {region!r}, seed=2)")


# --- what is refused when connecting --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["catalog", "arena", "participants", "transactions"])
@pytest.mark.parametrize("size", [0, 1, 63, 4096, 8192, 300_000])
def test_a_truncated_segment(prepared: str, kind: str, size: int) -> None:
    os.truncate(segment(prepared, kind), size)
    with pytest.raises(shmbroker.NotASegment) as told:
        shmbroker.connect(f"shm://{prepared}")
    assert len(str(told.value)) > 60


@pytest.mark.parametrize("size", [0, 1, 4096, 8192, layout.RING_SLOTS_START])
def test_a_truncated_ring(prepared: str, size: int) -> None:
    os.truncate(segment(prepared, "ring"), size)
    with shmbroker.connect(f"shm://{prepared}") as broker:
        with pytest.raises(shmbroker.NotASegment):
            broker.queue("q")
        assert [each.name for each in broker.queues()] == ["q", "r"]
        broker.delete_queue("q")
        broker.declare_queue("q").publish(b"a")


@pytest.mark.parametrize(
    ("kind", "at"),
    [
        ("catalog", layout.CATALOG_VERSION_AT),
        ("participants", layout.PARTICIPANTS_VERSION_AT),
        ("transactions", layout.TRANSACTIONS_VERSION_AT),
        ("arena", layout.ARENA_VERSION_AT),
    ],
)
def test_another_layout_version(prepared: str, kind: str, at: int) -> None:
    write(segment(prepared, kind), at, struct.pack("<q", 99))
    with pytest.raises(shmbroker.NotASegment, match="version") as told:
        shmbroker.connect(f"shm://{prepared}")
    if kind != "arena":
        assert "99" in str(told.value)
        assert f"speaks {layout.LAYOUT_VERSION}" in str(told.value)


def test_a_ring_of_another_layout_version(prepared: str) -> None:
    write(segment(prepared, "ring"), layout.RING_VERSION_AT, struct.pack("<q", 99))
    with (
        shmbroker.connect(f"shm://{prepared}") as broker,
        pytest.raises(shmbroker.NotASegment, match=r"'q'.*layout version"),
    ):
        broker.queue("q")


def test_another_boot(prepared: str) -> None:
    write(segment(prepared, "catalog"), layout.CATALOG_BOOT_AT, struct.pack("<q", 0x1234567))
    with pytest.raises(shmbroker.NotASegment, match=r"another boot.*1234567.*delete it"):
        shmbroker.connect(f"shm://{prepared}")
    shmbroker.vhost.delete(prepared)
    shmbroker.vhost.create(prepared)


def test_files_that_were_renamed(prepared: str) -> None:
    other = f"{prepared}-other"
    try:
        for kind in ("catalog", "arena", "participants", "transactions"):
            segment(other, kind).hardlink_to(segment(prepared, kind))
        with pytest.raises(shmbroker.NotASegment, match=f"belongs to vhost '{prepared}'.*renamed"):
            shmbroker.connect(f"shm://{other}")
    finally:
        for path in Path("/dev/shm").glob(f"shmbroker.{other}.*"):
            path.unlink()


@pytest.mark.parametrize("kind", ["arena", "participants", "transactions"])
def test_a_segment_of_another_vhost(prepared: str, kind: str) -> None:
    other = f"{prepared}-other"
    shmbroker.vhost.create(other, arena_bytes=ARENA_BYTES)
    try:
        segment(other, kind).rename(segment(prepared, kind))
        with pytest.raises(shmbroker.NotASegment, match="do not belong together"):
            shmbroker.connect(f"shm://{prepared}")
    finally:
        for path in Path("/dev/shm").glob(f"shmbroker.{other}.*"):
            path.unlink()


def test_rings_that_were_swapped(prepared: str) -> None:
    segment(prepared, "queue-1-1").rename(segment(prepared, "ring"))
    with (
        shmbroker.connect(f"shm://{prepared}") as broker,
        pytest.raises(shmbroker.NotASegment, match=r"ring of another queue.*renamed"),
    ):
        broker.queue("q")


def test_a_ring_that_is_gone(prepared: str) -> None:
    segment(prepared, "ring").unlink()
    with shmbroker.connect(f"shm://{prepared}") as broker:
        with pytest.raises(shmbroker.SystemRefused, match="No such file"):
            broker.queue("q")
        broker.delete_queue("q")
        broker.declare_queue("q").publish(b"a")
        broker.queue("r").publish(b"b")


@pytest.mark.parametrize("kind", ["catalog", "arena", "participants", "transactions"])
def test_a_link_to_elsewhere(prepared: str, kind: str, tmp_path: Path) -> None:
    """Somebody else's link in /dev/shm is not followed."""
    path = segment(prepared, kind)
    shutil.move(path, tmp_path / kind)
    path.symlink_to(tmp_path / kind)
    with pytest.raises(shmbroker.SystemRefused, match="is a link"):
        shmbroker.connect(f"shm://{prepared}")
