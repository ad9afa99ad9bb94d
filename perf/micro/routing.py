"""python -m shmbroker.perf.micro.routing: what an exchange costs, with 1, 100 and 10,000 bindings.

    publisher ──► topic exchange ──► 1 of n bindings ──► queue ──► (received by the same process)

Steady keys: the route of a key is searched once and kept.  New keys: each is searched.

    publisher ──► balanced queue ──► its own ring, or one towards another node, in turn

Set: both take everything.  Selectors: the other node takes what its one selector matches.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

from shmbroker import Broker, Exchange, Queue, Selector, connect, vhost
from shmbroker.core.layout import BALANCE_SELECTOR_SHIFT
from shmbroker.ipc._native import ffi, lib
from shmbroker.perf.machine.workspace import unique_token

BINDINGS = (1, 100, 10_000)
ROUNDS = 7
MESSAGES = 2_000
BODY = bytes(64)


def nanoseconds_each(publish: Callable[[str], object], keys: list[str], *drained: Queue) -> float:
    before = time.perf_counter_ns()
    for key in keys:
        publish(key)
    spent = time.perf_counter_ns() - before
    for drain in drained:
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


def balanced(broker: Broker) -> Iterator[tuple[str, Queue, Queue]]:
    """A queue and what leads to another node, as the broker of a cluster makes them."""
    program = Selector("$key = 'us.ny.fx'").program
    word = (len(program) << BALANCE_SELECTOR_SHIFT | 1).to_bytes(8, "little")
    selector = word + program + bytes(-len(program) % 8)
    for kind, eligible, selectors in (("set", 0b11, b""), ("selectors", 0b01, selector)):
        here, way = (broker.declare_queue(f"{kind}-{each}", slots=4096) for each in (0, 1))
        references = [int(lib.sb_queue_reference(each._queue)) for each in (here, way)]
        members = ffi.new("int64_t[]", [references[0], 0, references[1], 1])
        lib.sb_queue_balance(here._queue, members, 2, eligible, selectors, len(selectors))
        yield kind, here, way


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
        times = f"{cost / one:6.2f} x one binding, steady" if count else ""
        sys.stdout.write(f"{kind:9} {count:>6,} bindings  {cost:>10,.0f} ns a publish  {times}\n")
    return 0


def measure(broker: Broker, taken: Queue) -> dict[tuple[str, int], list[float]]:
    """Interleaved: the machine's moods meet all alike."""
    made, sets = list(exchanges(broker)), list(balanced(broker))
    costs: dict[tuple[str, int], list[float]] = {}
    steady = ["us.ny.fx", "us.sf.fx"] * (MESSAGES // 2)
    for number in range(ROUNDS):
        direct = nanoseconds_each(lambda key: taken.publish(BODY, key=key), steady, taken)
        costs.setdefault(("queue", 0), []).append(direct)
        for kind, here, way in sets:

            def share(key: str, here: Queue = here) -> int:
                return here.publish(BODY, key=key)

            costs.setdefault((kind, 0), []).append(nanoseconds_each(share, steady, here, way))
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
