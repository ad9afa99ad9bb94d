"""A broker that serves for a while only: what is delivered, and what the disk alone confirms."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, Empty, Unconfirmed
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.broker.serving import Serving
from shmbroker.ipc.journal.end import End
from tests.support.host import PATIENCE, journaling

SOON = 0.05
NEVER = 1000.0
KINDS: dict[str, dict[str, object]] = {
    "plain": {},
    "levels": {"priorities": 4},
    "groups": {"groups": 8},
}


@pytest.fixture
def broker(vhost: str) -> Iterator[Broker]:
    with shmbroker.connect(f"shm://{vhost}") as made:
        yield made


@pytest.fixture
def journaler(vhost: str, tmp_path: Path) -> Iterator[Journaler]:
    with journaling(vhost, tmp_path / "journal") as made:
        yield made


def moment(seconds: float) -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) + seconds


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_durable_is_delivered_before_it_serves_again(
    broker: Broker, journaler: Journaler, kind: str
) -> None:
    orders = broker.declare_queue("orders", durable=True, **KINDS[kind])
    for body in (b"0", b"1", b"2"):
        orders.publish(body, timeout=PATIENCE)
    assert orders.receive(timeout=PATIENCE) == b"0"
    serving = Serving(broker)
    serving.until(0.0)
    with pytest.raises(Empty):
        orders.receive(timeout=SOON)
    with pytest.raises(Empty):
        orders.get(selector="TRUE", timeout=SOON)
    assert [each.body for each in orders.browse()] == [b"1", b"2"]
    with ThreadPoolExecutor(2) as pool:
        takes = pool.submit(orders.receive, timeout=PATIENCE)
        selects = pool.submit(orders.get, selector="TRUE", timeout=PATIENCE)
        time.sleep(SOON)
        serving.until(math.inf)
        journaler.serves()
        found = {takes.result(timeout=PATIENCE), selects.result(timeout=PATIENCE).body}
    assert found == {b"1", b"2"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_one_may_deliver_too_has_the_flag(
    broker: Broker, journaler: Journaler, kind: str
) -> None:
    """No voter answers, and the replicas follow: consumers go on."""
    orders = broker.declare_queue("orders", durable=True, **KINDS[kind])
    for body in (b"0", b"1", b"2", b"3"):
        orders.publish(body, timeout=PATIENCE)
    serving = Serving(broker)
    serving.until(moment(PATIENCE), disk_alone=False)
    with orders.get(timeout=0) as first:
        assert (first.body, first.deliveries) == (b"0", 1)
    with orders.get(selector="TRUE", timeout=0) as second:
        assert second.redelivered
    serving.until(moment(PATIENCE))
    with orders.get(timeout=0) as third:
        assert not third.redelivered
    serving.until(math.inf, disk_alone=False)  # leases are off
    with orders.get(timeout=0) as last:
        assert not last.redelivered


def test_what_is_not_durable_has_no_flag(broker: Broker, journaler: Journaler) -> None:
    plain = broker.declare_queue("plain")
    plain.publish(b"x")
    Serving(broker).until(moment(PATIENCE), disk_alone=False)
    with plain.get(timeout=0) as message:
        assert not message.redelivered


def test_replicas_confirm_what_the_disk_lacks_only_if_their_broker_says_so(
    broker: Broker, journaler: Journaler
) -> None:
    """Who asks for `replicated` by name waits for the disk as well, until the broker knows."""
    orders = broker.declare_queue("orders", durable=True)
    serving = Serving(broker)
    serving.runs_ahead(False)
    with End(journaler, "far", timeout=NEVER) as far:
        position = orders.publish(b"0", confirm="disk", timeout=PATIENCE)
        assert not serving.asks_ahead
        with pytest.raises(Unconfirmed):
            orders.confirm(position, level="replicated", timeout=SOON)
        assert not serving.asks_ahead, "no replica has it"
        far.done(far.state().told)
        assert orders.confirm(position, level="replicated", timeout=PATIENCE)
        assert serving.asks_ahead
        serving.runs_ahead(True)
        assert not serving.asks_ahead
        assert orders.confirm(position, level="replicated", timeout=PATIENCE)
        assert not serving.asks_ahead


def test_it_ends_by_itself(broker: Broker, journaler: Journaler) -> None:
    orders = broker.declare_queue("orders", durable=True)
    for body in (b"0", b"1"):
        orders.publish(body, timeout=PATIENCE)
    serving = Serving(broker)
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    serving.until(began + 0.3)
    assert orders.receive(timeout=0) == b"0"
    while time.clock_gettime(time.CLOCK_BOOTTIME) < began + 0.301:
        time.sleep(SOON)
    with pytest.raises(Empty):
        orders.receive(timeout=0)
    serving.until(moment(PATIENCE))
    assert orders.receive(timeout=0) == b"1"


def test_what_is_not_durable_goes_on(broker: Broker) -> None:
    plain = broker.declare_queue("plain")
    plain.publish(b"x")
    Serving(broker).until(0.0)
    assert plain.receive(timeout=0) == b"x"


def test_a_cursor_sees_nothing_more(broker: Broker, journaler: Journaler) -> None:
    orders = broker.declare_queue("orders", durable=True)
    serving = Serving(broker)
    with broker.subscribe("orders") as cursor:
        orders.publish(b"0", timeout=PATIENCE)
        serving.until(0.0)
        with pytest.raises(Empty):
            cursor.get(timeout=SOON)
        serving.until(math.inf)
        assert cursor.get(timeout=PATIENCE).body == b"0"


def test_the_disk_alone_confirms_only_while_it_serves(broker: Broker, journaler: Journaler) -> None:
    orders = broker.declare_queue("orders", durable=True)
    serving = Serving(broker)
    with End(journaler, "far", timeout=NEVER):
        first = orders.publish(b"0", confirm="disk", timeout=PATIENCE)
        for until, disk_alone in ((-math.inf, True), (0.0, True), (math.inf, False)):
            serving.until(until, disk_alone=disk_alone)
            with pytest.raises(Unconfirmed):
                orders.publish(b"1", confirm="disk", timeout=SOON)
        serving.until(moment(PATIENCE))
        assert orders.confirm(first + 3, level="disk", timeout=PATIENCE) == "disk"
    serving.until(0.0)
    assert orders.publish(b"4", timeout=PATIENCE) == 4
    assert orders.confirm(4, level="disk", timeout=PATIENCE) == "disk"
