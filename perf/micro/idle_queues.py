"""python -m shmbroker.perf.micro.idle_queues: start-up and memory of 10,000 unused queues."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from shmbroker import connect, vhost
from shmbroker.perf.machine.workspace import unique_token

SHM = Path("/dev/shm")


def committed_bytes(token: str) -> int:
    return sum(path.stat().st_blocks * 512 for path in SHM.glob(f"shmbroker.{token}.*"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=10_000)
    count: int = parser.parse_args().queues
    token = unique_token("idle")
    try:
        with connect(f"shm://{token}", create=True) as broker:
            before = time.perf_counter()
            for number in range(count):
                broker.declare_queue(f"queue-{number}")
            declared = time.perf_counter() - before
            before = time.perf_counter()
            listed = broker.queues()
            listing = time.perf_counter() - before
        assert len(listed) == count
        before = time.perf_counter()
        with connect(f"shm://{token}") as broker:
            broker.queue(f"queue-{count - 1}").publish(b"x")
        attached = time.perf_counter() - before
        megabytes = committed_bytes(token) / 2**20
    finally:
        vhost.delete(token, force=True)
    sys.stdout.write(
        f"{count:,} queues: declared in {declared:.2f} s, {megabytes:,.0f} MiB in all,"
        f" listed in {listing * 1000:.0f} ms; another program's first publish after"
        f" {attached * 1000:.1f} ms\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
