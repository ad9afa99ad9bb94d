"""Numbers, times and texts that nobody means: each is taken, or an error of ours that is short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.base.errors import TEXT_MAX, InvalidArgument
from shmbroker.ipc.base.units import parse_duration, parse_size
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.paging.pager import Pager

NUMBERS: Final = [
    -1, 0, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**400, -(10**400),
    1.5, float("inf"), float("nan"), True, None, "1", b"1", [],
]  # fmt: skip
LONG: Final = 300_000
TEXTS: Final = [
    "", "\0", "a\0b", "\udc80", "\ud800", "x" * LONG, "ü" * LONG, "(" * LONG, "\x1b[2J",
    None, 1, b"a", b"\xff", [],
]  # fmt: skip

Call = Callable[[Broker, Any], object]

OF_NUMBERS: Final[dict[str, Call]] = {
    "confirm": lambda b, n: b.queue("d").confirm(n, timeout=0),
    "cancel": lambda b, n: b.queue("q").cancel_scheduled(n),
    "get_many": lambda b, n: b.queue("q").get_many(n, timeout=0),
    "receive_many": lambda b, n: b.queue("q").receive_many(n, timeout=0),
    "get timeout": lambda b, n: b.queue("filled").get(timeout=n).ack(),
    "publish timeout": lambda b, n: b.queue("q").publish(b"x", timeout=n),
    "ttl": lambda b, n: b.queue("q").publish(b"x", ttl=n),
    "priority": lambda b, n: b.queue("q").publish(b"x", priority=n),
    "deliver_after": lambda b, n: b.queue("q").publish(b"x", deliver_after=n),
    "loan": lambda b, n: b.queue("q").loan(n).drop(),
    "prefetch": lambda b, n: next(b.queue("filled").consume(prefetch=n, timeout=0), None),
    "consumer priority": lambda b, n: next(b.queue("single").consume(priority=n, timeout=0), None),
    "move limit": lambda b, n: b.queue("q").move_to(b.queue("other"), limit=n),
    "copy limit": lambda b, n: b.queue("q").copy_to(b.queue("other"), limit=n),
    "retry limit": lambda b, n: b.queue("q").retry(n),
    "lowest": lambda b, n: b.queue("q").latency(True, lowest=n),
    "highest": lambda b, n: b.queue("q").latency(True, highest=n),
    "digits": lambda b, n: b.queue("q").latency(True, digits=n),
    "one in": lambda b, n: b.queue("q").latency(True, one_in=n),
    "slots": lambda b, n: b.declare_queue("many", slots=n),
    "temporary slots": lambda b, n: b.temporary_queue(slots=n),
    "sequence": lambda b, n: b.queue("q").producer("p").publish(b"x", sequence=n),
    "requests": lambda b, n: (
        b.queue("q").request(b"x", timeout=0 if n is None else n)
        if not isinstance(n, (int, float)) or n < 0
        else None
    ),
    "transaction": lambda b, n: b.transaction(timeout=n).rollback(),
}

SETTINGS: Final = (
    "ttl", "ttl_min", "max_messages", "max_bytes", "max_deliveries", "priorities", "groups",
    "duplicate_ids", "redelivery_delay", "redelivery_multiplier", "max_redelivery_delay",
    "max_scheduled", "auto_delete_delay", "max_producer_bytes", "slow_consumer_threshold",
)  # fmt: skip

OF_TEXTS: Final[dict[str, Call]] = {
    "queue": lambda b, t: b.queue(t),
    "declare": lambda b, t: b.declare_queue(t),
    "delete": lambda b, t: b.delete_queue(t),
    "exchange": lambda b, t: b.exchange(t),
    "kind": lambda b, t: b.declare_exchange("x", t),
    "alternate": lambda b, t: b.declare_exchange("x", "topic", alternate=t),
    "bind": lambda b, t: b.bind("topic", "q", t),
    "unbind": lambda b, t: b.unbind("topic", "q", t),
    "divert": lambda b, t: b.divert("q", t),
    "pattern": lambda b, t: b.settings(t, ttl=1),
    "dead letter": lambda b, t: b.declare_queue("dead_lettered", dead_letter=t),
    "when full": lambda b, t: b.declare_queue("full", when_full=t),
    "size": lambda b, t: b.declare_queue("sized", max_bytes=t),
    "key": lambda b, t: b.queue("q").publish(b"x", key=t),
    "routing key": lambda b, t: b.exchange("topic").publish(b"x", key=t),
    "mandatory": lambda b, t: b.exchange("direct").publish(b"x", key=t, mandatory=True),
    "id": lambda b, t: b.queue("q").publish(b"x", message_id=t),
    "group": lambda b, t: b.queue("q").publish(b"x", group=t),
    "property": lambda b, t: b.queue("q").publish(b"x", properties={str(t): 1}),
    "value": lambda b, t: b.queue("q").publish(b"x", properties={"p": t}),
    "body": lambda b, t: b.queue("q").publish(t),
    "confirm": lambda b, t: b.queue("q").publish(b"x", confirm=t),
    "producer": lambda b, t: b.queue("q").producer(t),
    "last value": lambda b, t: b.queue("last").value(t),
    "let go": lambda b, t: b.queue("single").let_go(t),
    "selector": lambda b, t: next(b.queue("q").consume(selector=t, timeout=0), None),
    "subscription": lambda b, t: b.subscription(t, exchange="topic").close(),
    "start": lambda b, t: b.subscribe("q", start=t),
    "address": lambda b, t: shmbroker.connect(t),
    "vhost": lambda b, t: shmbroker.connect(f"shm://{t}"),
    "reply": lambda b, t: b.queue("q").request(b"x", key=t, timeout=0),
}


@pytest.fixture
def broker(broker: Broker) -> Broker:
    for name in ("q", "other", "filled"):
        broker.declare_queue(name, slots=1024)
    broker.declare_queue("single", single_active=True)
    broker.declare_queue("last", last_value=True)
    broker.declare_queue("d", durable=True)
    broker.declare_exchange("topic", "topic")
    broker.declare_exchange("direct", "direct")
    broker.queue("filled").publish_many([b"x"] * 64)
    return broker


def is_taken_or_refused(call: Callable[[], object]) -> None:
    said = ""
    try:
        call()
    except shmbroker.Error as error:
        said = str(error)
    assert len(said) <= TEXT_MAX + 50


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_number(broker: Broker, name: str) -> None:
    for number in NUMBERS:
        is_taken_or_refused(lambda number=number: OF_NUMBERS[name](broker, number))  # type: ignore[misc]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting(broker: Broker, name: str) -> None:
    for number in NUMBERS:
        is_taken_or_refused(
            lambda number=number: broker.declare_queue("set", slots=4, **{name: number})  # type: ignore[misc]
        )


@pytest.mark.parametrize("name", OF_TEXTS)
def test_a_text(broker: Broker, name: str) -> None:
    for text in TEXTS:
        is_taken_or_refused(lambda text=text: OF_TEXTS[name](broker, text))  # type: ignore[misc]


@pytest.mark.parametrize("opened", [
    lambda path: Replay(path), lambda path: Journal(path), lambda path: Journaler(path),
])  # fmt: skip
def test_a_folder_of_any_name(opened: Callable[[Any], object]) -> None:
    for path in ("a\0b", "\ud800", "\udcff", "x" * LONG, ""):
        with pytest.raises(shmbroker.Error) as raised:
            opened(path)
        assert len(str(raised.value)) <= TEXT_MAX + 50


def test_a_folder_of_pages_of_any_name(broker: Broker) -> None:
    for path in ("a\0b", "\ud800", "x" * LONG):
        with pytest.raises(shmbroker.Error):
            Pager(broker, path)


@pytest.mark.parametrize(
    "text", ["99999999999TiB", "9" * 400, "8EiB", "-1", "nan", "inf", "1" * LONG]
)
def test_a_size_that_nothing_can_have(text: str) -> None:
    with pytest.raises(ValueError, match=r"\d|nan|inf|EiB"):
        parse_size(text)


def test_the_largest_size() -> None:
    assert parse_size(f"{2**62}") == 2**62


@pytest.mark.parametrize("text", ["9" * 400, "99999999999999d", "-1s", "nan", "inf"])
def test_a_time_that_nothing_takes(text: str) -> None:
    with pytest.raises(ValueError, match=r"\d|nan|inf"):
        parse_duration(text)


def test_an_error_that_quotes_much_keeps_its_beginning_and_its_end() -> None:
    text = str(InvalidArgument("begin " + "x" * LONG + " do this"))
    assert text.startswith("begin x")
    assert text.endswith("x do this")
    assert len(text) < TEXT_MAX + 50
