"""python -m shmbroker.perf.micro.idle_links: what idle links cost, and how soon a loss is told.

    near ══ 50 links, heartbeats of 200 ms, nothing to ship ══ far

Each end is the process of a broker.  Counted are the processor time and the memory of both, against
processes with one link.  Then the far end is stopped (a loss without a closed socket, told after
three intervals) and killed (a closed one), in turns: how long the near end takes to say so.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from shmbroker import connect
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.perf.machine.linked import End, two_ends
from shmbroker.perf.machine.process import Process
from shmbroker.perf.machine.usage import memory, processor_s

LINKS = 50
SECONDS = 10.0
LOSSES = 11
SHARE_MAX = 0.05
"""Of a core."""
MEMORY_MAX = 64 << 10
"""Of a link, at either end."""
SILENT_MAX_S = 0.05
CLOSED_MAX_S = 0.02
ARENA_BYTES = 64 << 20


@contextmanager
def linked(links: int) -> Iterator[tuple[End, End, list[Process]]]:
    """Near and far, their processes in this order, and all links up."""
    shipped = [(Shipped(f"idle-{number}", f"idle-{number}"),) for number in range(links)]
    with two_ends(*shipped, arena_bytes=ARENA_BYTES) as (near, far):
        for end in (near, far):
            with connect(f"shm://{end.vhost}") as broker:
                for number in range(links):
                    broker.declare_queue(f"idle-{number}", slots=64)
        processes = [near.process(), far.process()]
        try:
            near.when("up", links)
            yield near, far, processes
        finally:
            for process in processes:
                process.kill()


def idle(links: int, seconds: float) -> list[tuple[float, int]]:
    """Near and far: the share of a core, and bytes."""
    with linked(links) as (_, _, processes):
        time.sleep(1)  # what the handshakes have left is dealt with
        before = [processor_s(each.pid) for each in processes]
        began = time.perf_counter()
        time.sleep(seconds)
        spent = time.perf_counter() - began
        return [
            ((processor_s(each.pid) - was) / spent, memory(each.pid))
            for each, was in zip(processes, before, strict=True)
        ]


def losses(rounds: int) -> tuple[list[float], list[float]]:
    """Seconds until the near end tells, of a stopped and of a killed far end."""
    silent, closed = [], []
    with linked(1) as (near, far, processes):
        for number in range(rounds):
            near.when("up", 2 * number + 1)
            processes[1].stop()
            stopped = time.monotonic()
            silent.append(near.when("lost", 2 * number + 1) - stopped)
            processes[1].go_on()
            near.when("up", 2 * number + 2)
            killed = time.monotonic()
            processes[1].kill()
            closed.append(near.when("lost", 2 * number + 2) - killed)
            processes[1] = far.process()
    return silent, closed


def told(links: int, seconds: float, rounds: int) -> bool:
    """In words: whether it is as it is to be."""
    say, good = sys.stdout.write, True
    one, many = idle(1, seconds), idle(links, seconds)
    for name, (_, base), (share, size) in zip(("near", "far"), one, many, strict=True):
        each = (size - base) / max(1, links - 1)
        missed = share > SHARE_MAX or each > MEMORY_MAX
        good &= not missed
        say(f"{links} idle links, {name:4}  {share:6.1%} of a core,"
            f" {each / 1024:6,.0f} KiB each{'  MISSED' if missed else ''}\n")  # fmt: skip
    silent, closed = losses(rounds)
    times = LinkTimes()
    for name, found, most in (
        ("no closed socket", silent, times.silence + SILENT_MAX_S),
        ("a closed socket", closed, CLOSED_MAX_S),
    ):
        missed = max(found) > most
        good &= not missed
        say(f"loss, {name:16}  told after {median(found) * 1e3:6,.1f} ms,"
            f" {max(found) * 1e3:,.1f} at most{'  MISSED' if missed else ''}\n")  # fmt: skip
    return good


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shmbroker.perf.micro.idle_links",
        description="What idle links cost, and how soon a loss is told.",
    )
    parser.add_argument("--links", type=int, default=LINKS, help=f"default {LINKS}")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"default {SECONDS:g}")
    parser.add_argument("--losses", type=int, default=LOSSES, help=f"default {LOSSES}")
    asked = parser.parse_args(arguments)
    return 0 if told(asked.links, asked.seconds, asked.losses) else 1


if __name__ == "__main__":
    sys.exit(main())
