"""serializer= at a queue's handle: values go in, and come out, by every verb."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

import shmbroker
from shmbroker import aio
from tests.ipc.aio.loop import run

VALUE = {"id": 7, "lines": [1.5, "ä", None, True]}


class Reversed:
    """Of a user's own."""

    @staticmethod
    def dumps(value: Any) -> str:
        return json.dumps(value)[::-1]

    @staticmethod
    def loads(body: bytes) -> Any:
        return json.loads(body[::-1])


@pytest.mark.parametrize("serializer", ["json", "orjson", "msgpack", "pickle", json, Reversed])
def test_a_value_makes_the_round_by_each(broker: shmbroker.Broker, serializer: Any) -> None:
    queue = broker.declare_queue("orders", serializer=serializer)
    value = VALUE if serializer is not Reversed else {"id": 7}
    queue.publish(value)
    message = queue.get()
    assert isinstance(message.body, bytes)
    assert message.value == value
    message.ack()
    queue.publish(value, key="k")
    assert queue.receive() == value


def test_every_verb(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders", serializer="json")
    assert queue.publish_many([1, "two", {"three": 3}]) == 3
    assert [each.value for each in queue.get_many(2)] == [1, "two"]
    queue.purge()
    queue.publish_nowait([1])
    queue.publish([2], message_id="x")
    queue.publish([3], deliver_after=0)
    queue.producer("p").publish([4])
    with broker.transaction() as transaction:
        transaction.publish(queue, [5])
    assert queue.receive_many(5) == [[1], [2], [3], [4], [5]]
    queue.publish({"n": 1}, properties={"n": 1})
    for message in queue.consume(selector="n = 1", timeout=0):
        assert message.value == {"n": 1}
    kept = broker.declare_queue("kept", non_destructive=True, serializer="json")
    kept.publish({"a": 1})
    assert [(each.value, each.queue) for each in kept.consume(timeout=0)] == [({"a": 1}, "kept")]
    (copied,) = kept.browse()
    assert kept.serializer is not None
    assert kept.serializer.loads(copied.body) == {"a": 1}


def test_a_subscription_and_a_temporary_queue(broker: shmbroker.Broker) -> None:
    broker.declare_exchange("e", "fanout")
    subscription = broker.subscription("s", exchange="e", serializer="json")
    broker.exchange("e").publish(b"[1]")
    assert subscription.receive() == [1]
    queue = broker.temporary_queue(serializer="msgpack")
    queue.publish(b"bytes too")
    assert queue.receive() == b"bytes too"


def test_requests_and_replies(broker: shmbroker.Broker) -> None:
    import threading

    queue = broker.declare_queue("asked", serializer="json")

    def answer() -> None:
        with queue.get(timeout=10) as message:
            message.reply({"twice": 2 * message.value})

    thread = threading.Thread(target=answer)
    thread.start()
    assert queue.request(21, timeout=10).value == {"twice": 42}
    thread.join()


def test_errors_say_which_serializer_and_publish_nothing(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders", serializer="json")
    for bad in (b"bytes", date(2024, 1, 1), object()):
        with pytest.raises(shmbroker.InvalidArgument, match="json cannot write"):
            queue.publish(bad)
    assert len(queue) == 0
    with pytest.raises(shmbroker.InvalidArgument, match="several"):
        queue.publish_many("abc")
    plain = broker.queue("orders")
    plain.publish(b"\xff no JSON")
    with pytest.raises(shmbroker.InvalidArgument, match="json cannot read a body of 9 bytes"):
        _ = queue.get().value
    with pytest.raises(shmbroker.InvalidArgument, match="opened without a serializer"):
        _ = plain.get().value
    for wrong in ("yaml", 7, object()):
        with pytest.raises(shmbroker.InvalidArgument, match="dumps and loads"):
            broker.queue("orders", serializer=wrong)  # type: ignore[arg-type]


def test_who_has_no_orjson_is_told_which_extra(
    broker: shmbroker.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.declare_queue("orders")
    monkeypatch.setitem(__import__("sys").modules, "orjson", None)
    with pytest.raises(shmbroker.InvalidArgument, match=r"pip install 'shmbroker\[orjson\]'"):
        broker.queue("orders", serializer="orjson")


def test_handles_without_it_stay_the_one_object(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders")
    with_json = broker.queue("orders", serializer="json")
    assert broker.queue("orders") is queue
    assert with_json is not queue
    assert (queue.serializer, with_json.serializer.name) == (None, "json")  # type: ignore[union-attr]


def test_asyncio(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("orders", serializer="json")
            await queue.publish(VALUE)
            async with await queue.get() as message:
                assert message.value == VALUE
            assert await queue.publish_many([1, 2]) == 2
            assert await queue.receive() == 1
            assert await queue.receive_many() == [2]
            await queue.publish([3], deliver_after=0)
            async for message in queue.consume(timeout=1):
                assert message.value == [3]
                message.ack()
                break
            async with broker.transaction() as transaction:
                transaction.publish(queue, [4])
            assert await queue.receive() == [4]
            plain = await broker.queue("orders")
            assert plain.serializer is None
            assert await broker.queue("orders") is plain

    run(main())


def test_requests_of_asyncio(url: str) -> None:
    import asyncio

    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("asked", serializer="msgpack")

            async def answer() -> None:
                async with await queue.get() as message:
                    message.reply([message.value])

            answering = asyncio.create_task(answer())
            assert (await queue.request(b"?", timeout=10)).value == [b"?"]
            await answering

    run(main())
