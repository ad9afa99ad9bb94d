"""What leads to queues is made at another broker as it is here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgpack
import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.instance.leaving import count_in
from shmbroker.netbridge.cluster.codec import MAKES_BYTES_MAX
from shmbroker.netbridge.clustered.rows import leading_to, made, pages, rows
from tests.conftest import vhost_for_a_while


@pytest.fixture
def there() -> Iterator[Broker]:
    with (
        vhost_for_a_while() as vhost,
        shmbroker.connect(f"shm://{vhost}", create=True, arena_bytes=1 << 24) as broker,
    ):
        yield broker


def test_queues_exchanges_and_bindings(broker: Broker, there: Broker) -> None:
    broker.settings("orders.#", ttl=60.0)
    queues = [
        broker.declare_queue("orders.eu", durable=True, slots=64, dead_letter="dead"),
        broker.declare_queue("plain"),
    ]
    queues[1].pause()
    left_out = broker.declare_queue("not")
    broker.declare_exchange("zero", "fanout")
    broker.declare_exchange("lost", "fanout", alternate="zero")
    broker.declare_exchange("news", "topic", alternate="lost")
    broker.declare_exchange("heads", "headers")
    broker.bind("news", "orders.eu", "eu.#")
    broker.bind("heads", "plain", arguments={"kind": "tea", "n": 3}, match="any")
    broker.bind("news", "heads", "#", to="exchange")
    broker.bind("news", left_out, "#")
    broker.divert("lost", "heads", exclusive=True)
    kept = there.declare_queue("plain", slots=128)
    for page in pages(rows(broker, queues)):
        assert made(there, page) == ""
    assert {each.to for each in there.bindings()} == {"exchange"}, "queues are bound later"
    for page in pages(chain(rows(broker, queues), leading_to(broker, queues))):
        assert made(there, page) == ""
        assert made(there, page) == ""  # once more changes nothing
    assert kept.slots == 128
    assert not kept.statistics().is_paused
    found = there.queue("orders.eu")
    settings = {name: each.value for name, each in found.explain().items()}
    assert (found.slots, settings["durable"], settings["ttl"]) == (64, True, 60.0)
    assert settings["dead_letter"] == "dead"
    assert {(each.name, each.kind, each.alternate) for each in there.exchanges()} == {
        ("zero", "fanout", None), ("lost", "fanout", "zero"), ("news", "topic", "lost"),
        ("heads", "headers", None),
    }  # fmt: skip
    assert there.bindings() == [each for each in broker.bindings() if each.destination != "not"]


def test_a_durable_subscription_is_one_there(broker: Broker, there: Broker) -> None:
    broker.declare_exchange("news", "topic")
    for shared in (True, False):
        name = "shared" if shared else "own"
        broker.subscription(name, exchange="news", key="a.#", durable=True, shared=shared).close()
    queues = [broker.queue("sub.shared"), broker.queue("sub.own")]
    for page in pages(rows(broker, queues)):
        assert made(there, page) == ""
    assert not there.bindings(), "it is bound with the others"
    for page in pages(leading_to(broker, queues)):
        assert made(there, page) == ""
    found = [(each.name, each.key, each.durable, each.shared, each.consumer)
             for each in there.subscriptions()]  # fmt: skip
    assert found == [("own", "a.#", True, False, None), ("shared", "a.#", True, True, None)]
    there.subscription("own", exchange="news", key="a.#", durable=True).close()
    there.exchange("news").publish(b"x", key="a.b")
    assert there.queue("sub.shared").statistics().depth == 1


def test_what_is_deleted_while_it_is_told_is_left_out(broker: Broker, there: Broker) -> None:
    queues = [broker.declare_queue(name) for name in ("kept", "deleted")]
    found = rows(broker, queues)
    first = next(found)
    broker.delete_queue("deleted")
    for page in pages(chain([first], found)):
        assert made(there, page) == ""
    assert {each.name for each in there.queues()} == {"kept"}
    assert count_in(queues[1]) == 0


def test_many_are_several_pages(broker: Broker, there: Broker) -> None:
    queues = [broker.declare_queue(f"{'q' * 200}.{each}", slots=16) for each in range(200)]
    told = list(pages(rows(broker, queues)))
    assert len(told) > 1
    assert max(map(len, told)) <= MAKES_BYTES_MAX
    assert [made(there, each) for each in told] == [""] * len(told)
    assert {each.name for each in there.queues()} == {each.name for each in queues}


@pytest.mark.parametrize(
    "page",
    [
        b"", b"\xc1", msgpack.packb(7), msgpack.packb([7]), msgpack.packb([{"queue": 7}]),
        msgpack.packb([{"queue": "q"}]), msgpack.packb([{"to": "q"}]),
        msgpack.packb([{"queue": "q", "slots": 16, "settings": {"x": 1}, "paused": False}]),
        msgpack.packb([{"queue": "$sf.town.x", "slots": 16, "settings": {}, "paused": False}]),
        msgpack.packb([{"exchange": "$x", "kind": "topic"}]),
        msgpack.packb([{"exchange": "x", "kind": "y"}]),
    ],
)  # fmt: skip
def test_what_is_no_page_is_told(there: Broker, page: bytes) -> None:
    assert made(there, page)
    assert not there.queues()
    assert not there.exchanges()


@pytest.mark.parametrize(
    "wrong",
    [{"held": 1 << 62}, {"held": b"x"}, {"number": "1"}, {"queues": [1]}, {"queues": {"q": 1}},
     {"queues": {"q": ["1"]}}],
)  # fmt: skip
def test_what_is_no_open_transaction_is_refused(there: Broker, wrong: dict[str, object]) -> None:
    """A number in the place of its session would be so much memory."""
    row = {"held": bytes(16), "number": 1, "queues": {"q": [1]}}
    assert "no transaction" in made(there, msgpack.packb([row | wrong]))
    assert not there.queues()
    assert made(there, msgpack.packb([row])) == ""


@pytest.mark.parametrize(("at", "left_out"), [(2**64 - 1, []), (1, [2**64 - 1])])
def test_a_number_that_no_queue_can_have_is_refused(
    there: Broker, at: int, left_out: list[int]
) -> None:
    """It would end the network thread, and the broker with it."""
    there.declare_queue("orders")
    row = {"producer": "orders", "of": bytes(16), "at": at, "open": left_out}
    assert made(there, msgpack.packb([row])).startswith("these are no queues: OverflowError")


def test_lists_in_lists_are_no_row(there: Broker) -> None:
    """An error is to show them, and reaches the limit of recursion."""
    deep: list[object] = []
    for _ in range(1000):
        deep = [deep]
    row = {"queue": "n", "slots": deep, "settings": {}, "paused": False}
    assert made(there, msgpack.packb([row])).startswith("these are no queues: RecursionError")
