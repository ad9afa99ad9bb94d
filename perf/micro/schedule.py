"""python -m shmbroker.perf.micro.schedule: how late scheduled messages are, and what that costs.

    scheduler ──► schedule ··· mover ···► queue ──► consumer

Two processes.  The scheduler publishes all messages for random times within some seconds, and then
does nothing but be there, as the mover; the consumer waits for each, and notes how late it is.
Before, all are pending and none is due: what that costs each of them is measured too.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from struct import Struct

from shmbroker import connect, vhost
from shmbroker.perf.machine.child import child
from shmbroker.perf.machine.workspace import unique_token

MESSAGES = 100_000
SPREAD_SECONDS = 20.0
IDLE_SECONDS = 10.0
LATE_MS_MAX = 5.0
IDLE_PERCENT_MAX = 1.0
DUE = Struct("<q")
QUEUE = "due"


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def idle_percent(wait: Callable[[], object]) -> float:
    """The share of a processor that this process takes while all its threads wait."""
    begin, used = time.monotonic(), processor_seconds()
    wait()
    return 100 * (processor_seconds() - used) / (time.monotonic() - begin)


def schedule(url: str, messages: int, spread: float, idle: float, tell: int, wait: int) -> None:
    """Publish all, tell how long that took and what waiting costs, and stay until we are told."""
    with connect(url, name="scheduler") as broker:
        queue = broker.queue(QUEUE)
        begin = time.monotonic_ns()
        first = begin + int((messages / 50_000 + idle + 5) * 1e9)
        for _ in range(messages):
            due = first + random.randrange(int(spread * 1e9))
            queue.publish(DUE.pack(due), deliver_after=(due - time.monotonic_ns()) / 1e9)
        spent = time.monotonic_ns() - begin
        os.write(tell, f"{spent / messages} {idle_percent(lambda: time.sleep(idle))}\n".encode())
        before = processor_seconds()
        os.read(wait, 1)
        os.write(tell, f"{processor_seconds() - before}\n".encode())


def consume(url: str, messages: int) -> tuple[array[int], float, float]:
    """How late each was in nanoseconds, the idle cost before, and how many seconds of a processor
    it took."""
    late = array("q")
    with connect(url, name="consumer") as broker:
        queue = broker.queue(QUEUE)

        def receive() -> None:
            (due,) = DUE.unpack(queue.receive(timeout=120))
            late.append(time.monotonic_ns() - due)

        idle = idle_percent(receive)
        before = processor_seconds()
        while len(late) < messages:
            receive()
        return late, idle, processor_seconds() - before


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m shmbroker.perf.micro.schedule")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--seconds", type=float, default=SPREAD_SECONDS,
                        help="within which they are due")  # fmt: skip
    asked = parser.parse_args(arguments)
    messages, spread = asked.messages, asked.seconds
    token = unique_token("schedule")
    url = f"shm://{token}"
    broker = connect(url, create=True)
    told, tell = os.pipe()
    wait, end = os.pipe()
    with broker:
        broker.declare_queue(QUEUE, slots=4096)

        def repairer() -> None:
            os.close(end)
            schedule(url, messages, spread, min(spread, IDLE_SECONDS), tell, wait)

        with child(repairer):
            os.close(tell)
            try:
                late, waiting, worked = consume(url, messages)
            finally:
                os.close(end)
            numbers = b""
            while more := os.read(told, 4096):
                numbers += more
    vhost.delete(token, force=True)
    each, idle, mover = (float(number) for number in numbers.split())
    ordered = sorted(late)
    median = ordered[messages // 2] / 1e6
    out = sys.stdout.write
    out(f"scheduled     {messages:,} messages, {each:,.0f} ns each\n")
    out(f"idle          mover {idle:.2f} % of a core with all of them pending, ")
    out(f"consumer {waiting:.2f} %\n")
    out(f"late          {median:.3f} ms median, {ordered[messages * 99 // 100] / 1e6:.3f} ms p99, ")
    out(f"{ordered[-1] / 1e6:.3f} ms at most, over {spread:g} s\n")
    out(f"too early     {sum(1 for each in late if each < 0)}\n")
    out(f"working       mover {100 * mover / spread:.1f} % of a core, ")
    out(f"consumer {100 * worked / spread:.1f} %\n")
    good = ordered[0] >= 0 and median <= LATE_MS_MAX and max(idle, waiting) < IDLE_PERCENT_MAX
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
