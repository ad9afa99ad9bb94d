"""Requests that nobody answers: in shared memory and over a link."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, NoReply, Queue, QueueFull, Unconfirmed
from tests.support.client_api import PATIENCE, Api, it
from tests.support.serving import Site


def test_a_request_that_nobody_answers_is_taken_back(api: Api) -> None:
    async def program(api: Api, broker: Any) -> None:
        queue = await it(broker.declare_queue("q"))
        with pytest.raises(NoReply) as error:
            await it(queue.request(b"?", timeout=0.01))
        assert await it(error.value.take_back())
        assert (await it(queue.statistics())).depth == 0
        assert not await it(error.value.take_back())
        with pytest.raises(NoReply) as error:
            await it(queue.request(b"?", timeout=0.01))
        message = await it(queue.get(timeout=60))
        assert not await it(error.value.take_back()), "somebody has it"
        await it(message.ack())
        with pytest.raises(NoReply) as error:
            await it(queue.request(b"?", timeout=0.01))
        await it(broker.delete_queue("q", force=True))
        assert not await it(error.value.take_back())

    api.run(program)


def test_who_takes_a_request_back_is_no_consumer(api: Api) -> None:
    """The server may come later, be at another request, or be paused by an operator."""

    async def program(api: Api, broker: Any) -> None:
        server = await api.connect()
        for kind in ({"single_active": True}, {"groups": True}):
            queue = await it(broker.declare_queue("-".join(kind), **kind))
            theirs = await it(server.queue(queue.name))
            with pytest.raises(NoReply) as error:
                await it(queue.request(b"?", properties={"JMSXGroupID": "a"}, timeout=0.01))
            assert await it(error.value.take_back())
            assert (await it(queue.statistics())).consumers == 0
            for body in (b"1", b"2"):
                await it(queue.publish(body, group="a"))
            held = await it(theirs.get(timeout=PATIENCE))
            with pytest.raises(NoReply) as error:
                await it(queue.request(b"?", properties={"JMSXGroupID": "a"}, timeout=0.01))
            await it(queue.pause())
            assert await it(error.value.take_back())
            await it(queue.resume())
            await it(held.ack())
            assert await it(theirs.receive(timeout=PATIENCE)) == b"2"

    api.run(program)


def test_a_request_that_finds_no_room_is_none(api: Api) -> None:
    async def program(api: Api, broker: Any) -> None:
        for durable in (False, True):
            queue = await it(broker.declare_queue(f"q{durable}", slots=2, durable=durable))
            await it(queue.publish_many([b"1", b"2"], **({"confirm": "shm"} if durable else {})))
            with pytest.raises(QueueFull):
                await it(queue.request(b"?", timeout=0.01))
            assert (await it(queue.statistics())).depth == 2

    api.run(program)


def deletes_the_replies(broker: Broker) -> None:
    (name,) = [each.name for each in broker.queues() if each.name.startswith("tmp.")]
    broker.delete_queue(name, force=True)


def test_requests_go_on_when_somebody_has_deleted_the_queue_of_their_replies(served: Site) -> None:
    """It is one for all programs over links; whoever waits for a reply in it is told."""
    server = served.broker.declare_queue("q")
    uri = f"tcp://site:correct horse battery@127.0.0.1:{served.port}"
    with shmbroker.connect(uri) as broker, ThreadPoolExecutor() as threads:
        queue: Queue = broker.queue("q")

        def answered() -> None:
            asking = threads.submit(queue.request, b"?", timeout=PATIENCE)
            with server.get(timeout=PATIENCE) as message:
                message.reply(b"!")
            assert asking.result(PATIENCE).body == b"!"

        answered()
        deletes_the_replies(served.broker)
        answered()
        waiting = threads.submit(queue.request, b"?", timeout=PATIENCE)
        server.receive(timeout=PATIENCE)
        deletes_the_replies(served.broker)
        with pytest.raises(Unconfirmed, match=r"unknown: .*tmp\."):
            waiting.result(PATIENCE)
        answered()
