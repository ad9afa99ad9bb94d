"""A live that is killed again and again, while a queue pages and another has a schedule."""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import shmbroker
from shmbroker.perf.machine.process import Process
from shmbroker.perf.scenarios.failover.trial import PATIENCE_SECONDS, eventually, fleet
from tests.conftest import vhost_for_a_while
from tests.crash.test_failover import seed

KILLS = 8
PAGED, LATER = "paged", "later"
SLOTS = 64
BATCH = 40
BODY = struct.Struct("qd200x")
"""A number, and when it is due."""
END = -1
LATE_MAX = 0.3
CLOCK_ERROR = 0.001


def is_over(ends: int) -> bool:
    return bool(select.select([ends], [], [], 0)[0])


def publish(vhost: str, ends: int, file: Path) -> int:
    """Write down how many were confirmed."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue, number = broker.queue(PAGED), 0
        while not is_over(ends):
            bodies = [BODY.pack(number + each, 0) for each in range(BATCH)]
            assert queue.publish_many(bodies, timeout=PATIENCE_SECONDS) == BATCH
            number += BATCH
        queue.publish(BODY.pack(END, 0), timeout=PATIENCE_SECONDS)
    file.write_text(str(number))
    return 0


def schedule(vhost: str, ends: int, file: Path, random: Random) -> int:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue, number = broker.queue(LATER), 0
        while not is_over(ends):
            after = random.random() * LATE_MAX
            body = BODY.pack(number, time.time() + after)
            queue.publish(body, deliver_after=after, timeout=PATIENCE_SECONDS)
            number += 1
            time.sleep(0.001)
        last = BODY.pack(END, 0)
        queue.publish(last, deliver_after=2 * LATE_MAX, timeout=PATIENCE_SECONDS)
    file.write_text(str(number))
    return 0


def take(vhost: str, queue: str, file: Path, nap: float) -> int:
    """Write down the numbers in their order; what is not due yet is below 0."""
    found: list[int] = []
    with shmbroker.connect(f"shm://{vhost}") as broker:
        taken = broker.queue(queue)
        while END not in found[-BATCH:]:
            for body in taken.receive_many(BATCH, timeout=PATIENCE_SECONDS):
                number, due = BODY.unpack(body)
                is_due = time.time() >= due - CLOCK_ERROR
                found.append(number if is_due else -2 - number)
            time.sleep(nap)  # more slowly than it is published: there are pages
    file.write_text(" ".join(map(str, found)))
    return 0


def test_what_pages_and_what_is_scheduled_outlives_its_live(tmp_path: Path) -> None:
    random = Random(seed())
    ends, told = os.pipe()
    files = {name: tmp_path / name for name in ("published", "scheduled", "taken", "delivered")}
    with (
        vhost_for_a_while() as vhost,
        fleet(tmp_path, vhost) as instances,
        shmbroker.connect(f"shm://{vhost}") as broker,
    ):
        queue = broker.declare_queue(PAGED, slots=SLOTS, durable=True, when_full="page")
        broker.declare_queue(LATER, durable=True)
        running: list[Process] = []

        def begin(part: Callable[[], int]) -> None:
            running.append(Process(part, tmp_path / f"part-{len(running)}"))

        try:
            begin(lambda: publish(vhost, ends, files["published"]))
            begin(lambda: schedule(vhost, ends, files["scheduled"], random))
            begin(lambda: take(vhost, LATER, files["delivered"], 0))
            eventually(lambda: queue.statistics().paged > 0)  # for nobody takes yet
            for kill in range(KILLS):
                time.sleep(random.random() * 0.2)
                live, epoch = instances.live()
                live.kill()
                eventually(lambda epoch=epoch: instances.record().epoch > epoch)  # type: ignore[misc]
                instances.revive()
                if not kill:
                    begin(lambda: take(vhost, PAGED, files["taken"], 0.002))
            instances.live()
            os.write(told, b"x")
            for number, each in enumerate(running):
                assert each.has_ended(2 * PATIENCE_SECONDS), f"part {number} hangs"
                assert each.status == 0, each.errors.read_text() + instances.said()
        finally:
            for each in running:
                each.kill()
            os.close(ends)
            os.close(told)
    taken, delivered = (
        list(map(int, files[name].read_text().split())) for name in ("taken", "delivered")
    )
    assert taken == [*range(int(files["published"].read_text())), END]
    assert sorted(delivered) == [END, *range(int(files["scheduled"].read_text()))]
