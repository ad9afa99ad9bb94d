"""What a broker has after thousands of lives is what it had after the first hundreds.

The million: python -m tests.crash growth.
"""

from __future__ import annotations

from pathlib import Path

import shmbroker
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.crash.growth import (
    DESCRIPTORS,
    MANY,
    PATIENCE_SECONDS,
    SLOTS,
    STANDING,
    World,
    grow,
    size,
)


def test_what_was_leaves_nothing(tmp_path: Path) -> None:
    """How soon a row is free again depends on when the broker looks: a few more or less."""
    few, lives = 32, 2400
    with vhost_for_a_while() as vhost:
        first, *_, last, restarted = grow(vhost, tmp_path, lives=lives, connects=200, rounds=3)
    said = f"{first}\n{last}\n{restarted}"
    assert last.rows[0] < MANY + STANDING + few, said
    assert max(last.rows[1:]) < few, said
    assert last.participants < few, said
    assert last.listed < few, said
    assert last.shm_files < MANY + STANDING + few, said
    assert last.shm_bytes - first.shm_bytes < lives << 8, said
    assert last.arena_bytes - first.arena_bytes < lives << 8, said
    assert last.descriptors < DESCRIPTORS // 4, said
    assert last.store_bytes < 64 << 20, said
    assert restarted.rows[0] == 1, said
    assert restarted.participants < few, said


def test_a_broker_needs_no_descriptor_for_each_queue(tmp_path: Path) -> None:
    """Live, and in a cold start."""
    with vhost_for_a_while() as vhost:
        world = World(vhost, tmp_path, DESCRIPTORS)
        with world.broker() as broker, shmbroker.connect(f"shm://{vhost}") as client:
            for number in range(2 * DESCRIPTORS):
                client.declare_queue(f"queue {number}", durable=True, slots=SLOTS)
            client.queue("queue 0").publish(b"kept", timeout=PATIENCE_SECONDS)
            assert size(vhost, broker, world.store).descriptors < DESCRIPTORS // 4
        vhosts.delete(vhost, force=True)
        with world.broker() as broker, shmbroker.connect(f"shm://{vhost}") as client:
            assert len(client.queues()) == 2 * DESCRIPTORS
            assert client.queue("queue 0").receive(timeout=PATIENCE_SECONDS) == b"kept"
            assert size(vhost, broker, world.store).descriptors < DESCRIPTORS // 4
