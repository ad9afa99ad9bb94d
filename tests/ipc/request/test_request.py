"""Requests and replies: which reply is whose, and what happens if there is none."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Message, Queue, aio
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.message.outgoing import outgoing
from shmbroker.ipc.message.properties import Packed
from shmbroker.ipc.request.return_address import is_of_this_node, name_end, say_node
from tests.crash.leaks import blocks
from tests.support.killed import victims


@contextmanager
def served(url: str, answer: Any = lambda message: message.reply(message.body.upper())) -> Any:
    """Somebody else answers what comes to `asked`, in a thread, until the block ends."""
    with shmbroker.connect(url, name="server") as server:
        queue = server.declare_queue("asked", slots=64)

        def serve() -> None:
            while True:
                with queue.get() as message:
                    if message.body == b"end":
                        return
                    answer(message)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server
        finally:
            queue.publish(b"end")
            thread.join()


@pytest.fixture
def asked(vhost: str) -> Iterator[Queue]:
    with shmbroker.connect(f"shm://{vhost}", name="client") as broker:
        yield broker.declare_queue("asked", slots=64)


def test_a_reply_has_a_body_and_properties(vhost: str, asked: Queue) -> None:
    def answer(message: Message) -> None:
        assert message.key == "k"
        assert message.properties["n"] == 1
        message.reply(message.body * 2, properties={"twice": True})

    with served(f"shm://{vhost}", answer):
        reply = asked.request(b"ab", key="k", properties={"n": 1})
    assert reply.body == b"abab"
    assert reply.properties == {"twice": True}


def test_a_large_one_as_well(vhost: str, asked: Queue) -> None:
    body, properties = bytes(range(256)) * 4096, {"p" * 100: "v" * 4000}

    def answer(message: Message) -> None:
        message.reply(message.body, properties={"p" * 100: message.properties["p" * 100]})

    with served(f"shm://{vhost}", answer):
        reply = asked.request(body, properties=properties)
    assert reply.body == body
    assert reply.properties == properties


def test_what_a_request_says_of_itself(asked: Queue) -> None:
    with pytest.raises(shmbroker.NoReply):
        asked.request(b"?", timeout=0)
    with asked.get(timeout=0) as message:
        assert message.reply_to is not None
        assert message.reply_to.startswith("tmp.")
        assert message.correlation_id == "0000000000000001"
        assert message.properties == {
            "JMSReplyTo": message.reply_to,
            "JMSCorrelationID": message.correlation_id,
        }
    asked.publish(b"no request")
    with asked.get(timeout=0) as message:
        assert (message.reply_to, message.correlation_id) == (None, None)
        with pytest.raises(shmbroker.InvalidArgument, match=r"asks for no reply: .*JMSReplyTo"):
            message.reply(b"?")


@pytest.mark.parametrize("asks", ["x" * 256, "\N{SNOWMAN}" * 86, 5])
def test_a_reply_to_what_can_be_no_queue_is_refused_so(asked: Queue, asks: object) -> None:
    asked.publish(b"?", properties={"JMSReplyTo": asks})
    with asked.get(timeout=0) as message:
        assert message.reply_to == asks
        with pytest.raises(shmbroker.InvalidArgument, match="a name of up to 255 bytes"):
            message.reply(b"!")


def test_no_reply_is_a_named_error(asked: Queue) -> None:
    with pytest.raises(shmbroker.NoReply, match="request to queue 'asked': no reply came in time"):
        asked.request(b"?", timeout=0.01)


def test_a_reply_that_comes_too_late_answers_nothing_else(vhost: str, asked: Queue) -> None:
    for body in (b"1", b"2"):
        with pytest.raises(shmbroker.NoReply):
            asked.request(body, timeout=0)
    for late in (b"late 1", b"late 2"):
        with asked.get(timeout=0) as message:
            message.reply(late)
    with served(f"shm://{vhost}"):
        assert asked.request(b"three").body == b"THREE"


def test_late_replies_never_make_the_server_wait(asked: Queue) -> None:
    with pytest.raises(shmbroker.NoReply):
        asked.request(b"?", timeout=0)
    with asked.get(timeout=0) as message:
        for number in range(200):
            message.reply(bytes([number]), timeout=0)


def test_the_queue_for_replies_is_used_again(vhost: str, asked: Queue) -> None:
    with served(f"shm://{vhost}"):
        for number in range(20):
            assert asked.request(b"%d" % number).body == b"%d" % number
    assert [each.name.split(".")[0] for each in asked._broker.queues()] == ["asked", "tmp"]


def test_threads_get_each_their_own(vhost: str, asked: Queue) -> None:
    right: list[bytes] = []

    def ask(name: int) -> None:
        for number in range(200):
            body = b"%d-%d" % (name, number)
            if asked.request(body, timeout=5).body == body:
                right.append(body)

    with served(f"shm://{vhost}"):
        threads = [threading.Thread(target=ask, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(right) == 200 * len(threads)
    assert len(asked._broker.queues()) <= 1 + len(threads)


def test_a_reply_to_one_who_has_left(vhost: str, asked: Queue) -> None:
    with shmbroker.connect(f"shm://{vhost}") as gone:
        with pytest.raises(shmbroker.NoReply):
            gone.queue("asked").request(b"?", timeout=0)
        with asked.get(timeout=0) as message:
            message.reply(b"in time")
            message.give_back()
    with asked.get(timeout=0) as message:
        says = r"replying to message 0: the requester has left: its queue 'tmp\.\S+' is gone"
        with pytest.raises(shmbroker.RequesterLeft, match=says):
            message.reply(b"too late")


def test_a_reply_may_go_to_any_queue(asked: Queue) -> None:
    replies = asked._broker.declare_queue("replies", slots=2)
    asked.publish(b"?", properties={"JMSReplyTo": "replies", "JMSCorrelationID": "mine"})
    with asked.get(timeout=0) as message:
        message.reply(b"1")
        message.reply(b"2")
        with pytest.raises(shmbroker.QueueFull):
            message.reply(b"3", timeout=0)
    with replies.get(timeout=0) as message:
        assert (message.body, message.correlation_id) == (b"1", "mine")


def test_what_is_no_request(asked: Queue) -> None:
    for name in ("JMSReplyTo", "JMSCorrelationID"):
        with pytest.raises(shmbroker.InvalidArgument, match=f"property {name} is what a request"):
            asked.request(b"?", properties={name: "x"})
    with pytest.raises(shmbroker.InvalidArgument, match="a timeout is None or"):
        asked.request(b"?", timeout=-1)
    asked.publish(b"?", properties={"JMSReplyTo": "nowhere"})
    message = asked.get(timeout=0)
    with pytest.raises(shmbroker.InvalidArgument, match="a body is bytes"):
        message.reply("text")
    message.ack()
    with pytest.raises(shmbroker.DeliveryRevoked):
        message.reply(b"too late")


def test_a_server_forgets_requesters_that_have_left(vhost: str, asked: Queue) -> None:
    with served(f"shm://{vhost}") as server:
        for number in range(150):  # more than a participant lists
            with shmbroker.connect(f"shm://{vhost}") as client:
                assert client.queue("asked").request(b"a", timeout=30).body == b"A"
                rows = {queue.id for queue in server.queues()}
                assert max(rows) < 5, f"{number}: rows of those who have left are used again"
    assert {queue for _state, _owner, queue in blocks(vhost)} <= {0, 1, 2, 3, 4}


NODE = bytes(range(16))
OTHER = bytes(range(1, 17))


def test_the_name_of_a_queue_for_replies_ends_with_its_node(vhost: str, asked: Queue) -> None:
    broker = asked._broker
    assert name_end(broker) == ""
    before = broker.temporary_queue()
    assert is_of_this_node(broker, before.name)
    with served(f"shm://{vhost}"):
        assert asked.request(b"a").body == b"A"
        for node in (NODE, OTHER):
            say_node(broker, "town", node)
            assert name_end(broker) == f"@town.{node.hex()}"
            assert not is_of_this_node(broker, before.name)
            assert broker.temporary_queue().name.endswith(f"@town.{node.hex()}")
            assert asked.request(b"a").body == b"A"
            names = {each.name for each in broker.queues() if each.name.startswith("tmp.")}
            assert len(names) == 3 + (node == OTHER), "that of the former node is gone"
    with pytest.raises(shmbroker.InvalidArgument, match="too long"):
        say_node(broker, "x" * 160, NODE)


def test_asyncio_asks_from_the_node_that_it_is_now(vhost: str, asked: Queue) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.queue("asked")
            assert (await queue.request(b"a", timeout=30)).body == b"A"
            say_node(asked._broker, "town", NODE)
            assert (await queue.request(b"b", timeout=30)).body == b"B"
            replies = [each.name for each in await broker.queues() if each.name[:4] == "tmp."]
            assert [each.endswith(f"@town.{NODE.hex()}") for each in replies] == [True]

    with served(f"shm://{vhost}"):
        asyncio.run(main())


def test_a_reply_to_another_node_goes_into_the_queue_towards_it(asked: Queue) -> None:
    broker = asked._broker
    way = broker.declare_queue(f"$sf.town.{OTHER.hex()}", slots=2)
    say_node(broker, "town", NODE)
    name = f"tmp.7.0123456789abcdef@town.{OTHER.hex()}"
    asked.publish(b"?", properties={"JMSReplyTo": name, "JMSCorrelationID": "mine"})
    with asked.get(timeout=0) as message:
        message.reply(b"1", properties={"n": 1})
        with way.get(timeout=0) as reply:
            assert (reply.body, reply.correlation_id) == (b"1", "mine")
        message.reply(b"2")
        message.reply(b"3")
        with pytest.raises(shmbroker.QueueFull):
            message.reply(b"4", timeout=0)


@pytest.mark.parametrize(
    "name", [f"tmp.7.a@town.{NODE.hex()}", "tmp.7.a", "tmp.7.a@", "town@town", "tmp." + "@" * 250]
)
def test_a_reply_to_nobody(asked: Queue, name: str) -> None:
    say_node(asked._broker, "town", NODE)
    asked.publish(b"?", properties={"JMSReplyTo": name})
    with asked.get(timeout=0) as message, pytest.raises(shmbroker.RequesterLeft):
        message.reply(b"1")


def test_a_reply_to_a_name_with_a_zero_character_goes_to_no_other_queue(asked: Queue) -> None:
    """However its hash falls."""
    replies = asked._broker.declare_queue("replies")
    for name in ["replies", *(f"replies\0{number}" for number in range(1000))]:
        asked.publish(b"?", properties={"JMSReplyTo": name})
        with asked.get(timeout=0) as message:
            if name == "replies":
                message.reply(b"1")
            else:
                with pytest.raises(shmbroker.RequesterLeft):
                    message.reply(b"2")
    assert [each.body for each in replies.browse()] == [b"1"]


def test_a_reply_takes_nothing_from_behind_the_properties_of_a_request(asked: Queue) -> None:
    """A compiled loop may publish anything: also a correlation that is cut off."""
    replies, port = asked._broker.declare_queue("replies"), asked.port()
    packed = b"\x82\xaaJMSReplyTo\xa7replies\xb0JMSCorrelationID\xd9\xff"
    message, _kept = outgoing(b"", properties=Packed(packed))
    assert lib.sb_port_publish_with(port._port, message, ffi.NULL) >= 0
    asked.publish(b"a secret of somebody else")
    with asked.get(timeout=0) as request:
        request.reply(b"answer")
    with replies.get(timeout=0) as reply:
        assert (reply.body, reply.properties) == (b"answer", {})


def test_for_asyncio(vhost: str) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.declare_queue("asked", slots=64)
            bodies = [b"%d" % number for number in range(300)]
            replies = await asyncio.gather(*(queue.request(body, timeout=30) for body in bodies))
            assert [reply.body for reply in replies] == bodies
            assert replies[0].properties == {}
            assert (await queue.request(b"x", properties={"n": 1})).body == b"X"
            assert len(await broker.queues()) == 2

    with served(f"shm://{vhost}"):
        asyncio.run(main())


def test_asyncio_one_request_after_another_without_a_time_out(vhost: str) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.declare_queue("asked", slots=64)
            for body in (b"a", b"b", b"c"):
                async with asyncio.timeout(30):
                    assert (await queue.request(body, timeout=None)).body == body.upper()

    with served(f"shm://{vhost}"):
        asyncio.run(main())


def test_asyncio_a_queue_for_replies_that_was_deleted_costs_no_request(
    vhost: str, asked: Queue
) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.queue("asked")
            for body in (b"a", b"b", b"c"):
                assert (await queue.request(body, timeout=30)).body == body.upper()
                (replies,) = [each.name for each in await broker.queues() if each.name != "asked"]
                asked._broker.delete_queue(replies, force=True)

    with served(f"shm://{vhost}"):
        asyncio.run(main())


@pytest.mark.parametrize("correlation", [[1], {"a": 1}, 7, None])
def test_asyncio_a_reply_to_nothing_that_was_asked(
    vhost: str, asked: Queue, correlation: Any
) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.queue("asked")
            task = asyncio.create_task(queue.request(b"1", timeout=None))
            async with asyncio.timeout(30), queue.get() as message:
                replies = await broker.queue(message.properties["JMSReplyTo"])
                await replies.publish(b"?", properties={"JMSCorrelationID": correlation})
                message.reply(b"1")
                assert (await task).body == b"1"

    asyncio.run(main())


def test_asyncio_a_reply_that_would_be_larger_if_python_packed_it(vhost: str, asked: Queue) -> None:
    """A program in C has written numbers of 32 bits, as many as have room."""
    count = 12000
    numbers = b"\x81\xa1n\xdc" + count.to_bytes(2, "big") + count * b"\xca\x3f\x80\0\0"

    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.queue("asked")
            both = [asyncio.create_task(queue.request(b"1", timeout=30)) for _ in range(2)]
            for properties in (Packed(numbers), None):
                async with await queue.get(timeout=30) as message:
                    message.reply(b"1", properties=properties)  # type: ignore[arg-type]
            replies = await asyncio.gather(*both)
            assert [reply.properties for reply in replies] == [{"n": count * [1.0]}, {}]

    asyncio.run(main())


def test_asyncio_no_reply_and_a_late_one(vhost: str, asked: Queue) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.queue("asked")
            with pytest.raises(shmbroker.NoReply, match="request to queue 'asked': no reply came"):
                await queue.request(b"1", timeout=0.01)
            task = asyncio.create_task(queue.request(b"2", timeout=30))
            await asyncio.sleep(0)
            for late in (b"late", b"in time"):
                async with await queue.get(timeout=30) as message:
                    message.reply(late)
            assert (await task).body == b"in time"
            cancelled = asyncio.create_task(queue.request(b"3", timeout=30))
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            await queue.purge()
            waiting = asyncio.create_task(queue.request(b"4", timeout=None))
            async with await queue.get(timeout=30):
                pass
        with pytest.raises(shmbroker.ConnectionClosed):
            await waiting

    asyncio.run(main())
    gc.collect()


def ask_and_answer(broker: Broker) -> None:
    """As a client, and now and then as the server of the others."""
    queue = broker.queue("asked")
    try:
        reply = queue.request(b"from the victim", timeout=0.001)
        assert reply.body == b"from the victim"
    except shmbroker.NoReply:
        pass
    for message in queue.consume(timeout=0):
        try:
            message.reply(message.body)
        except shmbroker.RequesterLeft:
            continue


def test_whoever_is_killed_every_request_is_answered(
    vhost: str, asked: Queue, tmp_path: Path
) -> None:
    broker = asked._broker
    for number, _victim in victims(f"shm://{vhost}", tmp_path, ask_and_answer, 2):
        broker.repair()
        assert not [each for each in broker.queues() if each.name.startswith("tmp.2.")]
        with served(f"shm://{vhost}", lambda message: answer_or_left(message)):
            assert asked.request(b"%d" % number, timeout=30).body == b"%d" % number
    names = [each.name for each in broker.queues() if each.name != "asked"]
    assert len(names) == 1, "nothing but our own queue for replies is left"


def answer_or_left(message: Message) -> None:
    with suppress(shmbroker.RequesterLeft):
        message.reply(message.body)
