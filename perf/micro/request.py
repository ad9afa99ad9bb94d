"""python -m shmbroker.perf.micro.request: what a request and its reply cost.

    client ──► queue ──► server            request: queue.request(), message.reply()
       ▲                   │
       └── reply queue ◄───┘               messages: publish and get, each way, by hand

Two processes, each on a processor of its own, that spin; the rounds of both kinds are interleaved.
In Python, and in C (ipc/request/request.c).
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Callable
from statistics import median

from shmbroker import Broker, Queue, connect, vhost
from shmbroker.perf.machine.child import child
from shmbroker.perf.machine.client import Loops
from shmbroker.perf.machine.pinning import pin
from shmbroker.perf.machine.workspace import unique_token

ROUNDS = 9
TRIPS = 4_000
BODY = bytes(64)
END = b"end"
SPIN_SECONDS = 1.0
PATIENCE = 60.0  # the other process has failed; in C: PATIENCE_NS


def reply(asked: Queue) -> None:
    """The server of the requests."""
    while True:
        with asked.get(timeout=PATIENCE) as request:
            request.reply(request.body)
            if request.body == END:
                return


def answer(forth: Queue, back: Queue) -> None:
    """The server of the plain messages: it replies, then acknowledges, as the other does."""
    while True:
        with forth.get(timeout=PATIENCE) as message:
            back.publish(message.body)
            if message.body == END:
                return


def serve(token: str) -> None:
    pin(1)
    with connect(f"shm://{token}", spin=SPIN_SECONDS) as broker:
        for _ in range(ROUNDS):
            reply(broker.queue("asked"))
            answer(broker.queue("forth"), broker.queue("back"))
    loops = Loops("request.c", token, SPIN_SECONDS)
    for _ in range(ROUNDS):
        loops.run("request_serve", TRIPS)
        loops.run("messages_serve", TRIPS)


def median_in_c(loops: Loops, loop: str) -> float:
    spent = array("q", bytes(8 * TRIPS))
    loops.run(loop, TRIPS, spent)
    return median(spent)


def by_request(broker: Broker) -> Callable[[bytes], bytes]:
    asked = broker.queue("asked")

    def trip(body: bytes) -> bytes:
        return asked.request(body, timeout=PATIENCE).body

    return trip


def by_messages(broker: Broker) -> Callable[[bytes], bytes]:
    forth, back = broker.queue("forth"), broker.queue("back")

    def trip(body: bytes) -> bytes:
        forth.publish(body)
        with back.get(timeout=PATIENCE) as message:
            body = message.body
        return body

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


def note(costs: dict[str, list[float]], name: str, cost: float) -> None:
    costs.setdefault(name, []).append(cost)


def measure(token: str) -> dict[str, list[float]]:
    """The median of each round."""
    costs: dict[str, list[float]] = {}
    with connect(f"shm://{token}", spin=SPIN_SECONDS) as broker:
        request, messages = by_request(broker), by_messages(broker)
        for _ in range(ROUNDS):
            note(costs, "request, Python", median(nanoseconds_each(request)))
            note(costs, "messages, Python", median(nanoseconds_each(messages)))
    loops = Loops("request.c", token, SPIN_SECONDS)
    for _ in range(ROUNDS):
        note(costs, "request, C", median_in_c(loops, "request_ask"))
        note(costs, "messages, C", median_in_c(loops, "messages_ask"))
    return costs


def main() -> int:
    token = unique_token("request")
    with connect(f"shm://{token}", create=True) as broker:
        for name in ("asked", "forth", "back"):
            broker.declare_queue(name, slots=64)
    try:
        with child(lambda: serve(token)):
            pin(0)
            costs = measure(token)
    finally:
        vhost.delete(token, force=True)
    for name, rounds in costs.items():
        cost = median(rounds)
        plain = median(costs[f"messages, {name.rpartition(' ')[2]}"])
        times = cost / plain
        sys.stdout.write(f"{name:16} {cost:>7,.0f} ns a round trip  {times:5.2f} x two messages\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
