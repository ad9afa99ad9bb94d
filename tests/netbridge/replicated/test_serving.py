"""What programs get of a live that may not serve: SEMANTICS 3.1 and 3.6."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shmbroker import ConnectionClosed, Empty, Unconfirmed
from shmbroker.ipc.broker.serving import Serving
from shmbroker.ipc.instance.process import boot
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.replay import Replay
from shmbroker.netbridge.election.question import Copy
from shmbroker.netbridge.member.codec import written
from shmbroker.netbridge.replica.aside import JOURNAL
from tests.netbridge.replicated.conftest import PATIENCE, Made
from tests.netbridge.replicated.test_losing import MANY, filled
from tests.netbridge.replicated.test_starting import QUICK
from tests.netbridge.replicated.test_witness import guarded, witness  # noqa: F401  # a fixture
from tests.support.witness import Place

SOON = 0.2


def lists(folder: Path) -> list[tuple[Copy, ...]]:
    """Who is in sync, as its journal says one after the other."""
    with Replay(folder / "data" / JOURNAL) as replay:
        return [written(each.body).copies for each in replay if each.kind == records.STANDING]


def test_a_suspended_live_delivers_nothing_and_confirms_no_disk(node: Made) -> None:
    two = node(QUICK).up()
    orders = filled(two)
    taken = orders.get(timeout=PATIENCE)
    two.stands_still("b")
    two.says("a", "suspended")
    with pytest.raises(Empty):
        orders.get(timeout=SOON)
    with pytest.raises(Unconfirmed):
        orders.publish(b"suspended", confirm="disk", timeout=SOON)
    taken.ack()  # of what was delivered
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(orders.get, timeout=PATIENCE)
        two.goes_on("b")
        assert waits.result(timeout=PATIENCE).body == MANY[1]
    two.says("a", "in sync")
    orders.publish(b"again", confirm="disk", timeout=PATIENCE)


def test_a_paused_live_delivers_nothing_when_another_one_may(
    node: Made,
    witness: Place,  # noqa: F811
) -> None:
    two = guarded(node, witness).up()
    orders = filled(two)
    assert orders.receive(timeout=PATIENCE) == MANY[0]
    two.stands_still("a")
    two["b"].becomes("live")
    with pytest.raises(Empty):
        orders.get(timeout=SOON)
    with pytest.raises((Unconfirmed, ConnectionClosed)):
        orders.publish(b"too late", confirm="disk", timeout=SOON)
    assert two.connected("b").queue("orders").receive(timeout=PATIENCE) in MANY[:2]
    two.goes_on("a")
    two.says("b", "in sync")
    with pytest.raises(ConnectionClosed, match="has moved"):
        orders.get(timeout=SOON)


def test_a_live_runs_ahead_of_its_disk_only_when_the_list_says_so(node: Made) -> None:
    two = node(QUICK).up()
    orders = filled(two)
    watched = Serving(two.connected("a"))
    assert not watched.asks_ahead
    orders.publish(b"0", confirm="replicated", timeout=PATIENCE)
    until = time.monotonic() + PATIENCE
    while watched.asks_ahead and time.monotonic() < until:  # the next frame has the list
        orders.publish(b"more", timeout=PATIENCE)
    assert not watched.asks_ahead
    of_this_boot = Copy("a", boot())
    assert of_this_boot in lists(two["b"].folder)[-1]
    two["b"].stop()
    two.says("a", "alone")
    assert lists(two["a"].folder)[-1] == (Copy("a"),)


def test_a_new_live_awaits_its_backups(node: Made) -> None:
    two = node({"ha.replication.backup-timeout": "1h"})
    two["a"].start().becomes("live")
    orders = two.connected("a").declare_queue("orders", durable=True)
    with pytest.raises(Unconfirmed):
        orders.publish(b"early", timeout=SOON)
    with pytest.raises(Unconfirmed):
        orders.publish(b"early, too", confirm="disk", timeout=SOON)
    with pytest.raises(Empty):
        orders.get(timeout=SOON)
    two["b"].start()
    two.says("a", "in sync")
    orders.publish(b"late", timeout=PATIENCE)
    assert orders.receive(timeout=PATIENCE) == b"early"


def test_it_awaits_them_for_a_while_only(node: Made) -> None:
    two = node({"ha.replication.backup-timeout": "1s"})
    two["a"].start().becomes("live")
    orders = two.connected("a").declare_queue("orders", durable=True)
    orders.publish(b"x", timeout=PATIENCE)
    assert orders.level == "disk"
    assert orders.receive(timeout=PATIENCE) == b"x"
