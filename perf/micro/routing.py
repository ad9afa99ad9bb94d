"""python -m shmbroker.perf.micro.routing: what an exchange costs, with 1, 100 and 10,000 bindings.

    publisher ──► topic exchange ──► 1 of n bindings ──► queue ──► (received by the same process)

Steady keys: the route of a key is searched once and kept.  New keys: each is searched.

    publisher ──► balanced queue ──► its own ring, or one towards another node, in turn

Four nodes: they take everything.  Here only: of four nodes nobody consumes at the others.
Selectors: one other node takes what its one selector matches.  Beside it what such a queue costs
that is not balanced.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from shmbroker import Broker, Exchange, Queue, Selector, connect, vhost
from shmbroker.core.layout import BALANCE_SELECTOR_SHIFT
from shmbroker.ipc._native import ffi, lib
from shmbroker.perf.machine.workspace import unique_token

BINDINGS = (1, 100, 10_000)
ROUNDS = 7
MESSAGES = 2_000
BODY = bytes(64)
MANY = -1
"""Published together, instead of a number of bindings."""
MOST = {"four nodes": 1.5, "here only": 1.1}
"""Times what a queue costs that is not balanced."""


def nanoseconds_each(publish: Callable[[str], object], keys: list[str], *drained: Queue) -> float:
    before = time.perf_counter_ns()
    for key in keys:
        publish(key)
    spent = time.perf_counter_ns() - before
    drain(drained)
    return spent / len(keys)


def nanoseconds_together(queues: Sequence[Queue]) -> float:
    """A message, many at once to the first one: little of it is Python's."""
    before = time.perf_counter_ns()
    queues[0].publish_many([BODY] * MESSAGES)
    spent = time.perf_counter_ns() - before
    drain(queues)
    return spent / MESSAGES


def drain(queues: Sequence[Queue]) -> None:
    for each in queues:
        while each.statistics().depth:
            each.receive_many(timeout=0)


def exchanges(broker: Broker) -> Iterator[tuple[int, Exchange]]:
    """An exchange a number of bindings, of which one takes the keys that we publish with."""
    for count in BINDINGS:
        exchange = broker.declare_exchange(f"prices-{count}", "topic")
        for index in range(count - 1):
            broker.bind(exchange.name, "elsewhere", f"eu.{index}.*.fx")
        broker.bind(exchange.name, "taken", "us.#")
        yield count, exchange


def balanced(broker: Broker) -> Iterator[tuple[str, list[Queue]]]:
    """A queue and what leads to other nodes, as the broker of a cluster makes them."""
    program = Selector("$key = 'us.ny.fx'").program
    word = (len(program) << BALANCE_SELECTOR_SHIFT | 1).to_bytes(8, "little")
    selector = word + program + bytes(-len(program) % 8)
    sets = (
        ("four nodes", 4, 0b1111, b""),
        ("here only", 4, 0b0001, b""),
        ("selectors", 2, 1, selector),
    )
    for kind, count, eligible, selectors in sets:
        queues = [broker.declare_queue(f"{kind} {each}", slots=4096) for each in range(count)]
        references = [int(lib.sb_queue_reference(each._queue)) for each in queues]
        members = [word for each, reference in enumerate(references) for word in (reference, each)]
        lib.sb_queue_balance(
            queues[0]._queue, ffi.new("int64_t[]", members), count, eligible, selectors,
            len(selectors),
        )  # fmt: skip
        yield kind, queues


def main() -> int:
    say = sys.stdout.write
    token = unique_token("routing")
    with connect(f"shm://{token}", create=True) as broker:
        try:
            taken = broker.declare_queue("taken", slots=4096)
            broker.declare_queue("elsewhere")
            costs = measure(broker, taken)
        finally:
            vhost.delete(token, force=True)
    one, good = median(costs["steady", 1]), True
    for (kind, count), rounds in costs.items():
        cost, missed = median(rounds), False
        if count in (0, MANY):
            times = cost / median(costs["queue", count])
            missed = times > MOST.get(kind, float("inf"))
            told = f"{'one by one' if count == 0 else 'together'} {times:6.2f} x a queue"
        else:
            told = f"{count:>6,} bindings {cost / one:6.2f} x one binding, steady"
        good &= not missed
        say(f"{kind:10} {cost:>10,.0f} ns a publish, {told}{'  <- misses its target' * missed}\n")
    return 0 if good else 1


def measure(broker: Broker, taken: Queue) -> dict[tuple[str, int], list[float]]:
    """Interleaved: the machine's moods meet all alike."""
    made, sets = list(exchanges(broker)), list(balanced(broker))
    costs: dict[tuple[str, int], list[float]] = {}
    steady = ["us.ny.fx", "us.sf.fx"] * (MESSAGES // 2)
    for number in range(ROUNDS):
        for kind, queues in (("queue", [taken]), *sets):

            def share(key: str, here: Queue = queues[0]) -> int:
                return here.publish(BODY, key=key)

            costs.setdefault((kind, 0), []).append(nanoseconds_each(share, steady, *queues))
            costs.setdefault((kind, MANY), []).append(nanoseconds_together(queues))
        for count, exchange in made:

            def publish(key: str, exchange: Exchange = exchange) -> int:
                return exchange.publish(BODY, key=key)

            fresh = [f"us.{number}.{index}" for index in range(MESSAGES // 4)]
            for kind, keys in (("steady", steady), ("new", fresh)):
                cost = nanoseconds_each(publish, keys, taken)
                costs.setdefault((kind, count), []).append(cost)
    return costs


if __name__ == "__main__":
    sys.exit(main())
