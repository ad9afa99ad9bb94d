"""Arguments that are wrong, and verbs that take what people have in hand."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, DeclaredDifferently, Queue, aio
from shmbroker.ipc.connection.broker import Broker as SyncBroker
from shmbroker.ipc.message.outgoing import OptionsWithId
from shmbroker.ipc.queue.durable import DurableProducer, DurableQueue
from shmbroker.ipc.settings.setting import Settings
from tests.ipc.aio.loop import run

MEANT = r"publish\(\) got an unexpected keyword argument 'prioriy'; did you mean 'priority'\?"


@pytest.mark.parametrize("more", [{}, {"deliver_after": 5}, {"key": "k"}], ids=str)
def test_an_option_that_is_misspelled(broker: Broker, more: dict[str, Any]) -> None:
    queue = broker.declare_queue("q")
    with pytest.raises(TypeError, match=MEANT):
        queue.publish(b"x", prioriy=3, **more)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"'something'$"):
        queue.publish_nowait(b"x", something=3, **more)
    with pytest.raises(TypeError, match="'prioriy'"):
        broker.exchange("").publish(b"x", prioriy=3, **more)
    assert queue.statistics().published == 0


def test_asyncio_names_it_too(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue, exchange = await broker.declare_queue("q"), await broker.exchange("")
            for more in ({}, {"deliver_after": 5}):
                with pytest.raises(TypeError, match=MEANT):
                    await queue.publish(b"x", prioriy=3, **more)
            with pytest.raises(TypeError, match=MEANT):
                await exchange.publish(b"x", prioriy=3)

    run(main())


@pytest.mark.parametrize(
    ("verb", "names"),
    [
        (Queue.publish, {"body", "timeout", *OptionsWithId.__annotations__}),
        (aio.Queue.publish, {"body", "timeout", *OptionsWithId.__annotations__}),
        (DurableQueue.publish, {"body", "timeout", *OptionsWithId.__annotations__}),
        (Queue.publish_nowait, {"body", "key", "ttl"}),
        (DurableProducer.publish, {"body", "sequence", "confirm", "key"}),
        (SyncBroker.declare_queue, {"name", "slots", *Settings.__annotations__}),
        (aio.Broker.declare_queue, {"name", "slots", *Settings.__annotations__}),
        (SyncBroker.temporary_queue, {"slots", *Settings.__annotations__}),
        (SyncBroker.settings, {"pattern", "auto_create"}),
        (SyncBroker.subscription, {"name", "ttl"}),
    ],
    ids=lambda each: getattr(each, "__qualname__", ""),
)
def test_the_signature_names_each_argument(verb: Callable[..., Any], names: set[str]) -> None:
    told = inspect.signature(verb)
    assert names <= set(told.parameters)
    assert inspect.Parameter.VAR_KEYWORD not in {each.kind for each in told.parameters.values()}
    assert all(name in pydoc.render_doc(verb) for name in names)


def test_a_queue_is_opened_without_its_settings(broker: Broker, other: Broker) -> None:
    broker.declare_queue("q", slots=64, max_messages=3, dead_letter="dead", durable=False)
    assert other.declare_queue("q").slots == 64
    assert other.declare_queue("q", max_messages=3).slots == 64
    assert broker.declare_queue("new").slots == 1024
    for slots in (0, -1, 3, "many"):
        with pytest.raises(shmbroker.InvalidArgument, match="slots"):
            broker.declare_queue("none", slots=slots)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_messages": 4}, "max_messages is 3, not 4;"),
        ({"max_messages": None}, "max_messages is 3, not none;"),
        (
            {"ttl": 2.5, "dead_letter": "late"},
            "dead_letter is 'dead', not 'late', ttl is 1 s, not",
        ),
        ({"expiry_queue": "late"}, "expiry_queue is none, not 'late';"),
        ({"when_full": "block"}, "when_full is 'fail', not 'block';"),
        ({"slow_consumer_policy": "disconnect"}, "policy is 'notify', not 'disconnect';"),
        ({"slow_consumer_threshold": 5}, "slow_consumer_threshold is none, not 5/s;"),
        ({"redelivery_multiplier": 1.5}, "redelivery_multiplier is 1, not 1.5;"),
        ({"last_value": True}, "last_value is off, not on;"),
        ({"max_messages": 3, "slots": 32}, "exists with 64 slots, not 32"),
    ],
    ids=str,
)
def test_each_setting_that_differs_is_named(
    broker: Broker, given: dict[str, Any], says: str
) -> None:
    broker.declare_queue("q", slots=64, max_messages=3, dead_letter="dead", ttl=1, when_full="fail")
    with pytest.raises(DeclaredDifferently, match=says):
        broker.declare_queue("q", **given)


def test_many_that_differ_are_told_as_far_as_there_is_room(broker: Broker) -> None:
    broker.declare_queue("q")
    names = {"dead_letter": "d" * 255, "expiry_queue": "e" * 255}
    with pytest.raises(DeclaredDifferently, match="'q' exists with other settings: dead_letter is"):
        broker.declare_queue("q", ttl=1, max_messages=5, **names)


def test_full_names_the_limit_that_was_hit(broker: Broker) -> None:
    both = broker.declare_queue("both", slots=16, max_messages=8, max_bytes="256KiB")
    with pytest.raises(shmbroker.QueueFull) as told:
        both.publish_many([b"x"] * 9, timeout=0)
    assert "max_messages, 8" in str(told.value)
    assert "max_bytes" not in str(told.value)
    both.purge()
    with pytest.raises(shmbroker.QueueFull) as told:
        both.publish_many([bytes(100_000)] * 9, timeout=0)
    assert "max_bytes, 262144" in str(told.value)
    assert "max_messages" not in str(told.value)
    slots = broker.declare_queue("slots", slots=4, max_bytes="1MiB")
    with pytest.raises(shmbroker.QueueFull, match="its 4 slots hold") as told:
        slots.publish_many([b"x"] * 9, timeout=0)
    assert told.value.published == 4
    tx = broker.transaction()
    tx.queue(both).publish_many([b"x"] * 8)
    with pytest.raises(shmbroker.QueueFull, match="max_messages, 8"):
        tx.commit(timeout=0)


def test_another_error_says_how_many_were_published(broker: Broker) -> None:
    queue = broker.declare_queue("q", max_bytes="64KiB")
    with pytest.raises(shmbroker.MessageTooLarge, match="2 of 3 messages") as told:
        queue.publish_many([b"a", b"b", bytes(100_000)], timeout=0)
    assert told.value.published == 2


def test_bindings_take_objects_and_names(broker: Broker) -> None:
    queue = broker.declare_queue("q")
    first, second = (broker.declare_exchange(name, "topic") for name in ("first", "second"))
    broker.bind(first, queue, "a")
    broker.bind(first, second, "b")
    broker.bind("second", "q", "b")
    assert first.publish(b"x", key="a") == first.publish(b"x", key="b") == 1
    broker.unbind(first, queue, "a")
    broker.unbind("first", second, "b")
    assert first.publish(b"x", key="a") == first.publish(b"x", key="b") == 0
    broker.divert(first, second, key="b")
    assert first.publish(b"x", key="b") == 1
    broker.undivert(first, second, key="b")
    assert [each.exchange for each in broker.bindings()] == ["second"]


def test_bindings_of_asyncio_do_too(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")
            first = await broker.declare_exchange("first", "topic")
            second = await broker.declare_exchange("second", "topic")
            await broker.bind(first, destination=queue, key="a")
            await broker.bind(first, second, "b")
            await broker.bind(second, "q", "b")
            assert await first.publish(b"x", key="a") == await first.publish(b"x", key="b") == 1
            await broker.unbind(first, queue, "a")
            await broker.divert(first, second, key="a")
            await broker.undivert(first, second, key="a")
            assert await first.publish(b"x", key="a") == 0

    run(main())
