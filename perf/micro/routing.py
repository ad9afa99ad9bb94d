"""python -m shmbroker.perf.micro.routing: what an exchange costs, with 1, 100 and 10,000 bindings.

    publisher ──► topic exchange ──► 1 of n bindings ──► queue ──► (received by the same process)

Steady keys: the route of a key is searched once and kept.  New keys: each is searched.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

from shmbroker import Broker, Exchange, Queue, connect, vhost
from shmbroker.perf.machine.workspace import unique_token

BINDINGS = (1, 100, 10_000)
ROUNDS = 7
MESSAGES = 2_000
BODY = bytes(64)


def nanoseconds_each(publish: Callable[[str], object], keys: list[str], drain: Queue) -> float:
    before = time.perf_counter_ns()
    for key in keys:
        publish(key)
    spent = time.perf_counter_ns() - before
    while drain.statistics().depth:
        drain.receive_many(timeout=0)
    return spent / len(keys)


def exchanges(broker: Broker) -> Iterator[tuple[int, Exchange]]:
    """An exchange a number of bindings, of which one takes the keys that we publish with."""
    for count in BINDINGS:
        exchange = broker.declare_exchange(f"prices-{count}", "topic")
        for index in range(count - 1):
            broker.bind(exchange.name, "elsewhere", f"eu.{index}.*.fx")
        broker.bind(exchange.name, "taken", "us.#")
        yield count, exchange


def main() -> int:
    token = unique_token("routing")
    with connect(f"shm://{token}", create=True) as broker:
        try:
            taken = broker.declare_queue("taken", slots=4096)
            broker.declare_queue("elsewhere")
            costs = measure(broker, taken)
        finally:
            vhost.delete(token, force=True)
    one = median(costs["steady", 1])
    for (kind, count), rounds in costs.items():
        cost = median(rounds)
        times = f"{cost / one:6.2f} x one binding, steady" if kind != "queue" else ""
        sys.stdout.write(f"{kind:7} {count:>6,} bindings  {cost:>10,.0f} ns a publish  {times}\n")
    return 0


def measure(broker: Broker, taken: Queue) -> dict[tuple[str, int], list[float]]:
    """Interleaved: the machine's moods meet all alike."""
    made = list(exchanges(broker))
    costs: dict[tuple[str, int], list[float]] = {}
    steady = ["us.ny.fx", "us.sf.fx"] * (MESSAGES // 2)
    for number in range(ROUNDS):
        direct = nanoseconds_each(lambda key: taken.publish(BODY, key=key), steady, taken)
        costs.setdefault(("queue", 0), []).append(direct)
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
