"""Kill -9 of the node that leaves, and of the one that gets all, at moments in which what is
acknowledged in a transaction of a program on another host is on its way: it is committed once, or
rolled back once, and nothing is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

import shmbroker
from shmbroker import TransactionRolledBack, Unconfirmed
from shmbroker.ipc.instance.leaving import HELD
from shmbroker.netbridge.clustered.departure import Departure
from shmbroker.netbridge.serving import travelling
from shmbroker.perf.machine.port import free_port
from tests.netbridge.clustered.conftest import PASSWORD, PATIENCE, Cluster
from tests.netbridge.clustered.test_open_transactions import works
from tests.netbridge.clustered.test_scale_down import HOPS, TO_EAST, at, bodies, stop

LONG = pytest.mark.skipif("SHMBROKER_LONG" not in os.environ, reason="`make crash` has it")
SETTLED = {True: [b"1", b"2", b"new"], False: [b"0", b"1", b"2"]}
"""What is there, if the transaction was committed, and if it was not."""


def dies(of: Any, name: str, *, is_done: bool, when: Callable[..., bool]) -> Callable[[], None]:
    """For `Run.before`: its process is killed when it first calls that, or has done it."""

    def before() -> None:
        original, calls = getattr(of, name), count()

        def dying(*given: Any, **named: Any) -> Any:
            is_it = when(*given) and next(calls) == 0
            found = original(*given, **named) if is_done or not is_it else None
            if is_it:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        setattr(of, name, dying)

    return before


def always(*_: Any) -> bool:
    return True


def of_held(_: Any, queue: Any, __: Any) -> bool:
    return bool(queue.name.startswith(HELD))


MOMENTS = {
    "west-has-put-it-aside": dies(travelling.Leaving, "_move", is_done=True, when=always),
    "west-has-it-on-its-way": dies(Departure, "_moves", is_done=True, when=of_held),
    "west-has-said-that-it-is-whole": dies(Departure, "_arrives", is_done=True, when=always),
    "west-is-about-to-have-left": dies(Departure, "_hands_over", is_done=False, when=always),
    "east-hears-that-it-is-whole": dies(travelling, "remember", is_done=False, when=always),
    "east-knows-that-it-is-whole": dies(travelling, "remember", is_done=True, when=always),
    "east-is-asked-for-it": dies(travelling.Arriving, "claim", is_done=False, when=always),
    "east-has-given-it": dies(travelling.Arriving, "claim", is_done=True, when=always),
}
ALWAYS = ("west-has-it-on-its-way", "east-knows-that-it-is-whole")


def started(cluster: Cluster, moment: str) -> str:
    """Both, of which one dies at that moment; where programs reach west."""
    ports = {name: free_port() for name in ("east", "west")}
    for name, more in (("east", HOPS), ("west", TO_EAST)):
        run = cluster.add(
            name, **more,
            acceptors__apps__uri=f"tcp://127.0.0.1:{ports[name]}",
            acceptors__apps__roles=["client"],
            acceptors__apps__session_ttl="3s",
            credentials__apps__password=PASSWORD,
            credentials__apps__role="client",
        )  # fmt: skip
        if moment.startswith(name):
            run.before = MOMENTS[moment]
        run.start().becomes("live")
    cluster.sees("west", "east")
    return f"tcp://127.0.0.1:{ports['west']}?reconnect-deadline=60s"


def is_committed(transaction: Any) -> bool | None:
    """None: nobody knows."""
    try:
        transaction.commit()
    except TransactionRolledBack:
        return False
    except Unconfirmed:
        return None
    return True


def all_is_at_east(cluster: Cluster, *, has_left: bool) -> None:
    """What is left at west goes there, and what was held is in its queue, or gone."""
    late, west = time.monotonic() + 2 * PATIENCE, cluster["west"]
    while not has_left:
        if west.process is None or west.process.has_ended():
            west.start()
        west.becomes("live")
        cluster.sees("west", "east")
        has_left = stop(cluster)[0] == 0
        west.ends()
        assert has_left or time.monotonic() < late, cluster.story()
    with at(cluster, "east") as east:
        while any(each.name.startswith(HELD) and each.depth for each in east.queues()):
            assert time.monotonic() < late, cluster.story()
            time.sleep(0.1)  # nothing tells


@pytest.mark.parametrize(
    "moment", [each if each in ALWAYS else pytest.param(each, marks=LONG) for each in MOMENTS]
)
def test_it_is_committed_once_or_not_at_all(cluster: Cluster, moment: str) -> None:
    url = started(cluster, moment)
    victim = cluster[moment.partition("-")[0]]
    with shmbroker.connect(url, user="apps", password=PASSWORD) as far:
        orders = far.declare_queue("orders", durable=True)
        for body in (b"0", b"1", b"2"):
            orders.publish(body)
        transaction = far.transaction()
        assert works(transaction, far, b"new") == b"0"
        codes: list[int] = []
        stopping = threading.Thread(target=lambda: codes.append(stop(cluster)[0]))
        stopping.start()
        assert victim.process is not None
        assert victim.process.has_ended(PATIENCE), cluster.story()
        victim.before = lambda: None
        victim.start()
        stopping.join(PATIENCE)
        assert not stopping.is_alive(), cluster.story()
        if victim is cluster["west"]:
            victim.becomes("live")
        found = is_committed(transaction)
    all_is_at_east(cluster, has_left=codes == [0] and victim is not cluster["west"])
    late = time.monotonic() + PATIENCE
    with at(cluster, "east") as east:
        while len(there := sorted(bodies(east.queue("orders")))) < len(SETTLED[True]):
            assert time.monotonic() < late, f"{there}, committed: {found}\n{cluster.story()}"
            time.sleep(0.05)  # it was in its queue, and not on disk yet: nothing tells
    wanted = SETTLED.values() if found is None else [SETTLED[found]]
    assert there in wanted, f"committed: {found}\n{cluster.story()}"
