"""python -m shmbroker.perf.micro.hugepages: what huge pages for /dev/shm are worth.

    mount namespace, /dev/shm with huge=never     publish a backlog ──► take it, twice
    mount namespace, /dev/shm with huge=always    the same, in turns

The backlog is larger than what the processor's table of small pages covers.  The first lap commits
the memory, the second one finds it.  Needs root, for the mounts; nobody else sees them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from shmbroker import connect, vhost
from shmbroker.perf.machine.workspace import unique_token

ROUNDS = 5
MESSAGES = 1 << 18
SIZE = 1000
BATCH = 1024
KINDS = ("never", "always")
LAPS = ("first lap, publish", "first lap, take", "second lap, publish", "second lap, take")
MOUNTED = 'mount -t tmpfs -o huge="$0",size=4g shm /dev/shm && exec "$@"'


def huge_bytes() -> int:
    """Of all memory of files in RAM, on this machine."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith("ShmemHugePages"))
    return int(found.split()[1]) * 1024


def measured(messages: int, size: int) -> dict[str, object]:
    """In this /dev/shm: nanoseconds a message, and how much of it is in huge pages."""
    token, bodies = unique_token("huge"), [bytes(size)] * BATCH
    before = huge_bytes()
    spent = dict[str, object]()
    with connect(f"shm://{token}", create=True, arena_bytes=2 * messages * (size + 256)) as broker:
        queue = broker.declare_queue("backlog", slots=messages)
        for publish, take in (LAPS[:2], LAPS[2:]):
            began = time.perf_counter_ns()
            for _ in range(messages // BATCH):
                queue.publish_many(bodies)
            filled = time.perf_counter_ns()
            taken = 0
            while taken < messages:
                taken += len(queue.receive_many(BATCH))
            ended = time.perf_counter_ns()
            spent[publish] = (filled - began) / messages
            spent[take] = (ended - filled) / messages
        spent["huge"] = huge_bytes() - before
    vhost.delete(token, force=True)
    return spent


def apart(kind: str, messages: int, size: int) -> dict[str, float]:
    """The same with a /dev/shm of its own."""
    module = [sys.executable, "-m", "shmbroker.perf.micro.hugepages", "--inside"]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", MOUNTED, kind, *module,
         "--messages", str(messages), "--size", str(size)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(rounds: int, messages: int, size: int) -> int:
    if os.geteuid() != 0:
        sys.stderr.write("it mounts a /dev/shm of its own: run it as root\n")
        return 1
    turns = {kind: list[dict[str, float]]() for kind in KINDS}
    for _ in range(rounds):
        for kind in KINDS:
            turns[kind].append(apart(kind, messages, size))
    sys.stdout.write(f"{messages:,} messages of {size:,} B; ns a message\n")
    sys.stdout.write(f"{'':22}{'huge=never':>12}{'huge=always':>13}{'ratio':>8}\n")
    for lap in LAPS:
        small, large = (median(each[lap] for each in turns[kind]) for kind in KINDS)
        sys.stdout.write(f"{lap:22}{small:>12,.0f}{large:>13,.0f}{large / small:>8.2f}\n")
    small, large = (max(each["huge"] for each in turns[kind]) / 2**20 for kind in KINDS)
    sys.stdout.write(f"{'in huge pages, MiB':22}{small:>12,.0f}{large:>13,.0f}\n")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shmbroker.perf.micro.hugepages",
        description="What huge pages for /dev/shm are worth.",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"default {MESSAGES}")
    parser.add_argument("--size", type=int, default=SIZE, help=f"default {SIZE}")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.inside:
        sys.stdout.write(json.dumps(measured(asked.messages, asked.size)))
        return 0
    return run(asked.rounds, max(1, asked.messages // BATCH) * BATCH, asked.size)


if __name__ == "__main__":
    sys.exit(main())
