"""python -m shmbroker.perf.micro.metrics: what a scrape of many queues costs.

    producer ──► 5,000 queues, every second one with ten messages ◄── scrape

The baseline is `broker.queues()`, which looks at one queue after another, and shows less of each.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from shmbroker import connect, vhost
from shmbroker.perf.machine.workspace import unique_token

MESSAGES = 10
SCRAPES = """
import sys, time
from statistics import median
from shmbroker.cli.metrics.exposition import text

vhost, times = sys.argv[1], int(sys.argv[2])
passed, used = [], []
for _ in range(times):
    before, cpu_before = time.perf_counter(), time.process_time()
    page = text(vhost)
    used.append(time.process_time() - cpu_before)
    passed.append(time.perf_counter() - before)
depth = sum(
    float(line.rpartition(" ")[2])
    for line in page.splitlines()
    if line.startswith("shmbroker_queue_depth{")
)
print(median(passed) * 1e3, median(used) * 1e3, len(page), int(depth))
"""
"""In a process of its own, as it is in a console; and this floor knows nothing of that one."""


def scrape(vhost: str, times: int) -> tuple[float, float, int, int]:
    """Median of the milliseconds that pass and of those of a processor; bytes; messages seen."""
    program = [sys.executable, "-c", SCRAPES, vhost, str(times)]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    passed, used, size, depth = done.stdout.split()
    return float(passed), float(used), int(size), int(depth)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queues", type=int, default=5_000)
    parser.add_argument("--times", type=int, default=9)
    given = parser.parse_args()
    token = unique_token("metrics")
    published = 0
    try:
        with connect(f"shm://{token}", create=True) as broker:
            for number in range(given.queues):
                queue = broker.declare_queue(f"queue-{number}")
                for _ in range(MESSAGES if number % 2 else 0):
                    queue.publish(b"x")
                    published += 1
            passed, used, size, depth = scrape(token, given.times)
            before = time.perf_counter()
            listed = broker.queues()
            listing = (time.perf_counter() - before) * 1e3
    finally:
        vhost.delete(token, force=True)
    assert depth == published == sum(each.depth for each in listed)
    sys.stdout.write(
        f"{given.queues:,} queues: a scrape takes {passed:.0f} ms, {used:.0f} ms of a processor, "
        f"and has {size / 1024:,.0f} KiB; broker.queues() takes {listing:.0f} ms\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
