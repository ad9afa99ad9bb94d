"""python -m shmbroker.perf.micro.agent: what a message transfer agent costs who publishes.

    publisher ──► exchange ──► queue                    without an agent
    publisher ──► exchange ──► queue                    mode 2: one more queue
                      └──────► what waits for the agent
    publisher ──► exchange ──► what waits for the agent mode 4

Bodies of 64 bytes, rounds interleaved.  Measured is the processor time of the publisher, who waits
for nobody, and each message is counted where it should be.  `--before PYTHON` compares exchanges
without an agent with another build's, in pairs of processes that alternate.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from statistics import median
from typing import Final

from shmbroker import Broker, Exchange, Queue, connect, vhost
from shmbroker.core import layout
from shmbroker.ipc.exchange.own_binding import OwnBinding, bind_own
from shmbroker.ipc.sink.target import target_of_agent
from shmbroker.perf.machine.workspace import unique_token

ROUNDS: Final = 101
PAIRS: Final = 20
MESSAGES: Final = 500
BODY: Final = bytes(64)
MOST: Final = 1.6
"""Times what it costs without an agent: mode 2 is one more queue."""
NOISE: Final = 1.03
"""Of a build against another one."""
PLAIN, ALL, ONLY = "no agent", "mode 2", "mode 4"
FORWARDS: Final = {ALL: "FORWARD_ALL", ONLY: "FORWARD_ONLY"}
"""By name: an older build has not all of them."""


def made(broker: Broker, kind: str) -> tuple[Exchange, list[Queue]]:
    """An exchange with a queue, and where what is published should be."""
    exchange = broker.declare_exchange(kind, "topic")
    here = broker.declare_queue(f"here of {kind}", slots=4096)
    broker.bind(kind, here, "us.#")
    if kind == PLAIN:
        return exchange, [here]
    waits = broker.declare_queue(f"waits of {kind}", slots=4096)
    forwards = getattr(layout, FORWARDS[kind])
    bind_own(
        broker, OwnBinding(kind, waits.name, "", b"", False, target_of_agent(8), forwards)
    )  # as of one that is joined
    return exchange, [here, waits] if kind == ALL else [waits]


def nanoseconds_each(exchange: Exchange, queues: list[Queue]) -> float:
    began = time.thread_time_ns()
    for _ in range(MESSAGES):
        exchange.publish(BODY, key="us.ny.fx")
    spent = time.thread_time_ns() - began
    for queue in queues:
        assert len(queue) == MESSAGES, f"{len(queue)} of {MESSAGES} are in {queue.name!r}"
        queue.purge()
    return spent / MESSAGES


def measure(kinds: tuple[str, ...], rounds: int) -> dict[str, float]:
    """The best round of each, in ns a publish: others have the processor's caches between."""
    token = unique_token("agent")
    costs: dict[str, list[float]] = {kind: [] for kind in kinds}
    with connect(f"shm://{token}", create=True) as broker:
        try:
            ways = {kind: made(broker, kind) for kind in kinds}
            for _ in range(rounds):
                for kind, (exchange, queues) in ways.items():
                    costs[kind].append(nanoseconds_each(exchange, queues))
        finally:
            vhost.delete(token, force=True)
    return {kind: min(found) for kind, found in costs.items()}


def plain(python: str) -> float:
    """In a process of that build."""
    command = [python, "-P", __file__, "--plain"]  # the modules beside this one are none of it
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def against(python: str) -> bool:
    ratios = []
    for each in range(PAIRS):
        order = (sys.executable, python) if each % 2 else (python, sys.executable)
        found = {build: plain(build) for build in order}
        ratios.append(found[sys.executable] / found[python])
    ratios.sort()
    sys.stdout.write(
        f"{PLAIN:10} {median(ratios):6.3f} x {python}, of {PAIRS} pairs the middle half is "
        f"{ratios[PAIRS // 4]:.3f} to {ratios[-1 - PAIRS // 4]:.3f}\n"
    )
    return median(ratios) <= NOISE


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", metavar="PYTHON", help="the interpreter of another build")
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.plain:
        sys.stdout.write(f"{measure((PLAIN,), ROUNDS)[PLAIN]}\n")
        return 0
    good = against(given.before) if given.before else True
    costs = measure((PLAIN, ALL, ONLY), ROUNDS)
    for kind, cost in costs.items():
        ratio = cost / costs[PLAIN]
        missed = ratio > MOST
        good &= not missed
        told = f"{kind:10} {cost:>8,.0f} ns a publish {ratio:6.2f} x no agent"
        sys.stdout.write(f"{told}{'  <- misses its target' * missed}\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
