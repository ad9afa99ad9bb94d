"""Two processes record, and one of them is killed with -9: counts never go backwards.

What a killed one has acknowledged is counted, but for at most one message on either side; its
stripe goes to the next.
"""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import shmbroker
from shmbroker.core import layout
from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.machine.process import Process
from tests.support.killed import KILLS, victims


def assert_no_less(before: dict[str, Histogram], after: dict[str, Histogram]) -> None:
    for kind, histogram in before.items():
        now = dict(zip(after[kind].indexes, after[kind].counts, strict=True))
        for index, count in zip(histogram.indexes, histogram.counts, strict=True):
            assert now.get(index, 0) >= count, (kind, index)


def echo(broker: shmbroker.Broker) -> None:
    queue = broker.queue("orders")
    for _ in range(100):
        # without waiting: the message of a killed one holds up the ring until somebody takes it
        with suppress(shmbroker.QueueFull, shmbroker.Empty):
            with queue.get_nowait():
                pass
            queue.publish_nowait(b"x" * 64)


def test_counts_survive_those_who_made_them(vhost: str, tmp_path: Path) -> None:
    url, seed = f"shm://{vhost}", random.randrange(1 << 30)

    def live() -> int:
        with shmbroker.connect(url, name="other") as broker:
            while True:
                echo(broker)

    with shmbroker.connect(url) as auditor:
        queue = auditor.declare_queue("orders", slots=1024, max_deliveries=None)
        queue.latency(True)
        queue.publish_many([b"x" * 64] * 8)
        before = queue.histograms()
        other = Process(live, tmp_path / "errors")
        try:
            for _ in victims(url, tmp_path, echo, seed):
                auditor.repair()
                after = queue.histograms()
                assert_no_less(before, after)
                before = after
        finally:
            other.kill()
        auditor.repair()
        acked = queue.statistics().acked
        assert acked > KILLS
        for histogram in queue.histograms().values():
            assert abs(histogram.total + histogram.overflow - acked) <= KILLS + 1, seed
    assert stripe_owners(vhost) == [0] * layout.STRIPES


def stripe_owners(vhost: str) -> list[int]:
    (segment,) = Path("/dev/shm").glob(f"shmbroker.{vhost}.latency*")
    with segment.open("rb") as file:
        file.seek(layout.HISTOGRAMS_STRIPES_AT)
        words = memoryview(file.read(layout.STRIPES * layout.PAIR_BYTES)).cast("q")
    return [words[layout.PAIR_BYTES // 8 * stripe] for stripe in range(layout.STRIPES)]
