"""Properties that are no MessagePack, as a program in C may write them: in shared memory and over a
link."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker import InvalidArgument
from shmbroker.ipc.message import outgoing
from tests.support.client_api import Api, each, it

NO_TEXT = b"\x81\xa1\xff\x00"


def test_a_message_whose_properties_cannot_be_read_stops_nobody(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q"))
        with monkeypatch.context() as changed:
            changed.setattr(outgoing, "pack", lambda _: NO_TEXT)
            await it(queue.publish(b"bad", properties={"a": 1}))
        await it(queue.publish(b"good", properties={"a": 1}))
        subscription = await it(broker.subscribe("q", start="earliest"))
        shown = [await it(subscription.get(timeout=60)) for _ in range(2)]
        assert [(one.body, one.properties, one.unreadable) for one in shown] == [
            (b"bad", {}, NO_TEXT), (b"good", {"a": 1}, b""),
        ]  # fmt: skip
        await it(subscription.close())
        bad, good = [await it(queue.get(timeout=60)) for _ in range(2)]
        assert (bad.body, good.body, good.properties) == (b"bad", b"good", {"a": 1})
        for what in ("properties", "message_id", "group", "reply_to", "correlation_id"):
            with pytest.raises(InvalidArgument, match="no MessagePack"):
                getattr(bad, what)
        await it(bad.reject())
        await it(good.ack())
        assert (await it(queue.statistics())).depth == 0

    api.run(program)


def test_a_consumer_goes_on_behind_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def program(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q"))
        with monkeypatch.context() as changed:
            changed.setattr(outgoing, "pack", lambda _: NO_TEXT)
            await it(queue.publish(b"bad", properties={"a": 1}))
        await it(queue.publish(b"good"))
        taken = []
        async for message in each(queue.consume(timeout=60)):
            taken.append(message.body)
            if message.body == b"good":
                break
        assert taken == [b"bad", b"good"]

    api.run(program)
