"""python -m shmbroker.perf.request: what a request and its reply cost.

    client ──► queue ──► server            request: queue.request(), message.reply()
       ▲                   │
       └── reply queue ◄───┘               messages: publish and get, each way, by hand

Two processes, each on a processor of its own, that spin; the rounds of both kinds are interleaved.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from statistics import median

from shmbroker import Broker, Queue, connect, vhost
from shmbroker.perf.workspace import unique_token

ROUNDS = 9
TRIPS = 4_000
BODY = bytes(64)
END = b"end"
SPIN_SECONDS = 1.0


def pin(number: int) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {allowed[number % len(allowed)]})


def reply(asked: Queue) -> None:
    """The server of the requests."""
    while True:
        with asked.get() as request:
            request.reply(request.body)
            if request.body == END:
                return


def answer(forth: Queue, back: Queue) -> None:
    """The server of the plain messages: it replies, then acknowledges, as the other does."""
    while True:
        with forth.get() as message:
            back.publish(message.body)
            if message.body == END:
                return


def serve(token: str) -> None:
    pin(1)
    with connect(f"shm://{token}", spin=SPIN_SECONDS) as broker:
        for _ in range(ROUNDS):
            reply(broker.queue("asked"))
            answer(broker.queue("forth"), broker.queue("back"))


def by_request(broker: Broker) -> Callable[[bytes], bytes]:
    asked = broker.queue("asked")
    return lambda body: asked.request(body, timeout=None).body


def by_messages(broker: Broker) -> Callable[[bytes], bytes]:
    forth, back = broker.queue("forth"), broker.queue("back")

    def trip(body: bytes) -> bytes:
        forth.publish(body)
        with back.get() as message:
            return message.body

    return trip


def nanoseconds_each(trip: Callable[[bytes], bytes]) -> list[int]:
    spent = []
    for _ in range(TRIPS):
        before = time.perf_counter_ns()
        same = trip(BODY) == BODY
        spent.append(time.perf_counter_ns() - before)
        assert same
    assert trip(END) == END
    return spent


def measure(token: str) -> dict[str, list[float]]:
    """The median of each round."""
    costs: dict[str, list[float]] = {"messages": [], "request": []}
    with connect(f"shm://{token}", spin=SPIN_SECONDS) as broker:
        request, messages = by_request(broker), by_messages(broker)
        for _ in range(ROUNDS):
            costs["request"].append(median(nanoseconds_each(request)))
            costs["messages"].append(median(nanoseconds_each(messages)))
    return costs


def main() -> int:
    token = unique_token("request")
    with connect(f"shm://{token}", create=True) as broker:
        for name in ("asked", "forth", "back"):
            broker.declare_queue(name, slots=64)
    server = os.fork()
    if server == 0:
        try:
            serve(token)
        finally:
            os._exit(0)
    try:
        pin(0)
        costs = measure(token)
    finally:
        os.waitpid(server, 0)
        vhost.delete(token, force=True)
    plain = median(costs["messages"])
    for name, rounds in costs.items():
        cost = median(rounds)
        times = cost / plain
        sys.stdout.write(f"{name:9} {cost:>9,.0f} ns a round trip  {times:5.2f} x two messages\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
