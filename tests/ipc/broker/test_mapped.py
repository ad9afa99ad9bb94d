"""What a broker has in its page tables, and the kernel takes out when it is killed: not all that is
queued."""

from __future__ import annotations

import re
from pathlib import Path

import shmbroker
from shmbroker.ipc.broker.applier import Applier
from shmbroker.ipc.broker.journaler import begin_restoring
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.host import PATIENCE, journaling

MIB = 1 << 20
SEGMENT = 8 * MIB
BODY = bytes(8 << 10)
"""Two pages, so that to look at each message is to look at many pages."""
BATCHES, BATCH = 64, 128
COUNT = BATCHES * BATCH
ARENA = 2 * COUNT * len(BODY)
MOST = 48 * MIB
"""A step of 16 MiB in two mappings, and what is there besides; it was more than 64 MiB."""


def mapped() -> int:
    """Of shared memory, by this process."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"RssShmem:\s+(\d+) kB", status)[0]) << 10


def filled(name: str, folder: Path) -> None:
    """As by programs on other hosts: by a connection that the journaler has not."""
    vhosts.create(name, arena_bytes=ARENA)
    before = mapped()
    with journaling(name, folder, segment=SEGMENT), shmbroker.connect(f"shm://{name}") as broker:
        orders = broker.declare_queue("orders", durable=True, slots=COUNT)
        for _ in range(BATCHES):
            orders.publish_many([BODY] * BATCH, timeout=PATIENCE)
        assert mapped() - before < MOST


def test_what_is_queued_leaves_the_page_tables_bit_by_bit(tmp_path: Path) -> None:
    with vhost_for_a_while() as name:
        filled(name, tmp_path / "journal")
    before = mapped()
    with (
        vhost_for_a_while() as name,
        begin_restoring(name, name="replica", arena_bytes=ARENA) as replica,
        Applier(replica) as applier,
        Replay(tmp_path / "journal") as replay,
    ):
        applier.read(replay)
        assert mapped() - before < MOST
        applier.finish()
        replica.repair_for(0.0)
        assert mapped() - before < MOST, "what expires was looked for"
        assert sum(each.body == BODY for each in replica.queue("orders").browse()) == COUNT
