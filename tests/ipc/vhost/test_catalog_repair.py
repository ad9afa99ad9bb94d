"""What is left of a change of the catalog that a death cut short goes with the next change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, vhost
from shmbroker.core import layout as at
from tests.crash.leaks import blocks, live_queues, names

SHM = Path("/dev/shm")


@pytest.fixture
def deleted_halfway() -> Iterator[str]:
    """A vhost whose queue was deleted by somebody who died right after the row had gone."""
    name = f"test-catalog-repair-{os.getpid()}"
    vhost.create(name, arena_bytes=1 << 20)
    try:
        with shmbroker.connect(f"shm://{name}") as broker:
            broker.declare_exchange("news", "fanout")
            queue = broker.declare_queue("doomed", slots=4)
            broker.bind("news", "doomed")
            queue.publish(bytes(10_000))
        with (SHM / f"shmbroker.{name}.catalog").open("r+b", buffering=0) as catalog:
            catalog.seek(at.QUEUE_COLUMN_AT)
            word = int.from_bytes(catalog.read(8), "little")
            generation = (word >> at.ROW_GENERATION_SHIFT) & at.ROW_GENERATION_MASK
            catalog.seek(at.QUEUE_COLUMN_AT)
            catalog.write(((generation + 1) << at.ROW_GENERATION_SHIFT).to_bytes(8, "little"))
            catalog.seek(at.CATALOG_CHANGING_AT)
            catalog.write((1).to_bytes(8, "little"))
        assert blocks(name)
        yield name
    finally:
        with suppress(shmbroker.NotFound):
            vhost.delete(name, force=True)


def test_segments_blocks_and_bindings_of_no_queue_are_removed(deleted_halfway: str) -> None:
    with shmbroker.connect(f"shm://{deleted_halfway}") as broker:
        broker.declare_queue("other", slots=4)
        assert [queue.name for queue in broker.queues()] == ["other"]
        assert not broker.bindings()
        broker.delete_exchange("news")
    assert names(deleted_halfway) == {
        "catalog",
        "arena",
        "participants",
        "transactions",
    } | live_queues(deleted_halfway)
    assert not blocks(deleted_halfway)


def test_what_others_use_is_left_alone(deleted_halfway: str) -> None:
    def kept(broker: Broker) -> bytes:
        return broker.queue("kept").get_nowait().body

    with shmbroker.connect(f"shm://{deleted_halfway}") as broker:
        broker.declare_queue("kept", slots=4).publish(b"still here")
        catalog = SHM / f"shmbroker.{deleted_halfway}.catalog"
        with catalog.open("r+b", buffering=0) as file:
            file.seek(at.CATALOG_CHANGING_AT)
            file.write((1).to_bytes(8, "little"))
        with shmbroker.connect(f"shm://{deleted_halfway}") as other:
            other.declare_queue("other", slots=4)
            assert kept(other) == b"still here"
        assert kept(broker) == b"still here"
