"""python -m shmbroker.perf.request: what a request and its reply cost.

    client ──► queue ──► server            request: queue.request(), message.reply()
       ▲                   │
       └── reply queue ◄───┘               messages: publish and get, each way, by hand

Two processes, each on a processor of its own, that spin; the rounds of both kinds are interleaved.
In Python, and in C (native/request.c).
"""

from __future__ import annotations

import ctypes
import sys
import time
from array import array
from collections.abc import Callable
from statistics import median

from shmbroker import Broker, Queue, connect, vhost
from shmbroker.perf.child import child
from shmbroker.perf.client import compiled_client
from shmbroker.perf.pinning import pin
from shmbroker.perf.workspace import unique_token

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
    c = InC(token)
    for _ in range(ROUNDS):
        c.call("request_serve")
        c.call("messages_serve")


class InC:
    """The loops of native/request.c, with a connection of their own."""

    def __init__(self, token: str) -> None:
        self._library = ctypes.CDLL(compiled_client("request.c"))
        self._connection = ctypes.c_void_p()
        spin_ns = ctypes.c_int64(int(SPIN_SECONDS * 1e9))
        made = ctypes.byref(self._connection)
        self._check(self._library.request_connect(token.encode(), spin_ns, made))

    def call(self, loop: str, *arguments: object) -> None:
        trips = ctypes.c_int64(TRIPS)
        self._check(getattr(self._library, loop)(self._connection, trips, *arguments))

    def median(self, loop: str) -> float:
        spent = array("q", bytes(8 * TRIPS))
        self.call(loop, ctypes.c_void_p(spent.buffer_info()[0]))
        return median(spent)

    @staticmethod
    def _check(code: int) -> None:
        assert code == 0, code


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
    c = InC(token)
    for _ in range(ROUNDS):
        note(costs, "request, C", c.median("request_ask"))
        note(costs, "messages, C", c.median("messages_ask"))
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
