"""A request may be answered at any node: its reply finds whoever has asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread

import pytest

import shmbroker
from shmbroker import Broker, Message, NoReply, Queue, RequesterLeft, aio
from shmbroker.ipc.request.request import CORRELATION, REPLY_TO
from shmbroker.ipc.request.return_address import name_end
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.netbridge.clustered.test_balancing import on_their_way
from tests.netbridge.clustered.test_programs import LOGIN, add, connected
from tests.netbridge.clustered.test_redistribution import at, numbers, taken
from tests.support.until import until

NAMES = ("east", "west", "north")
A_TRY = b"a try"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, dict[str, str]]]:
    """Three brokers, and where programs on other hosts connect to each."""
    with ExitStack() as opened:
        made = Cluster(tmp_path_factory.mktemp("town"), opened)
        given = {"cluster__town__max-hops": 1, "cluster__town__message-load-balancing": "on-demand"}
        uris = {name: add(made, name, **given) for name in NAMES}
        for name in NAMES:
            made[name].start().becomes("live")
        for name in NAMES:
            made.sees(name, *(each for each in NAMES if each != name))
        yield made, uris


@pytest.fixture
def town(shared: tuple[Cluster, dict[str, str]]) -> Cluster:
    return shared[0]


@pytest.fixture
def uris(shared: tuple[Cluster, dict[str, str]]) -> dict[str, str]:
    return shared[1]


@pytest.fixture
def asked(town: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A queue at east and west, from which somebody takes at west only."""
    name = request.node.name
    with at(town, "east") as east, at(town, "west") as west:
        for broker in (east, west):
            broker.declare_queue(name, durable=True)
        consumes(west, name)
        goes_elsewhere(east, name)
        while west.queue(name).statistics().depth:
            taken(west.queue(name), 1)
        yield name
        for broker in (east, west):
            broker.delete_queue(name, force=True)


def consumes(broker: Broker, name: str) -> None:
    with pytest.raises(shmbroker.Empty):
        broker.queue(name).get(timeout=0)


def goes_elsewhere(broker: Broker, name: str) -> None:
    """Waits until what is published here goes to another node."""

    def goes() -> bool:
        broker.queue(name).purge()
        broker.queue(name).publish(A_TRY)
        return broker.queue(name).statistics().depth == 0

    until(goes)
    until(lambda: on_their_way(broker) == 0)


def shouted(message: Message) -> None:
    assert set(message.properties) == {REPLY_TO, CORRELATION}
    message.reply(message.body.upper(), properties={"shouted": True})


@contextmanager
def served(
    broker: Broker, name: str, answer: Callable[[Message], None] = shouted
) -> Iterator[None]:
    """Somebody answers what comes, until the block ends."""
    queue = broker.queue(name)

    def serve() -> None:
        while True:
            with queue.get(timeout=None) as message:
                if message.body == b"end":
                    return
                if message.body != A_TRY:
                    answer(message)

    thread = Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        queue.publish(b"end")  # only this node has a consumer
        thread.join()


def dropped(broker: Broker) -> int:
    return broker.queue("$sink.marks").statistics().dropped


def test_it_is_answered_at_another_node(town: Cluster, asked: str) -> None:
    with at(town, "east") as east, at(town, "west") as west, served(west, asked):
        for body in (b"one", b"two"):
            reply = east.queue(asked).request(body, timeout=PATIENCE)
            assert (reply.body, reply.properties) == (body.upper(), {"shouted": True})
        temporary = [each.name for each in east.queues() if each.name.startswith("tmp.")]
        assert [each.endswith(name_end(east)) for each in temporary] == [True], "used again"
        until(lambda: on_their_way(west) == 0)


def test_threads_get_each_their_own(town: Cluster, asked: str) -> None:
    found: list[bytes] = []

    def ask(broker: Broker, number: int) -> None:
        for each in range(20):
            body = b"%d %d" % (number, each)
            assert broker.queue(asked).request(body, timeout=PATIENCE).body == body
            found.append(body)

    with at(town, "east") as east, at(town, "west") as west, served(west, asked):
        threads = [Thread(target=ask, args=(east, number)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(set(found)) == 80


def test_for_asyncio(town: Cluster, asked: str) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{town.vhosts['east']}") as broker:
            queue = await broker.queue(asked)
            bodies = numbers(0, 200)
            replies = await asyncio.gather(*(queue.request(each, timeout=60) for each in bodies))
            assert [each.body for each in replies] == bodies
            assert replies[0].properties == {"shouted": True}

    with at(town, "west") as west, served(west, asked):
        asyncio.run(main())


def test_of_a_program_on_another_host_by_one_on_another(
    town: Cluster, uris: dict[str, str], asked: str
) -> None:
    with connected(uris["east"]) as program, at(town, "west") as west, served(west, asked):
        for body in (b"one", b"two"):
            reply = program.queue(asked).request(body, timeout=PATIENCE)
            assert (reply.body, reply.properties) == (body.upper(), {"shouted": True})
    with (
        at(town, "east") as east,
        connected(uris["west"]) as server,
        served(server, asked),
    ):
        assert east.queue(asked).request(b"three", timeout=PATIENCE).body == b"THREE"
        replies = east.temporary_queue()
        properties = {REPLY_TO: replies.name, CORRELATION: "mine"}
        east.queue(asked).publish(b"four", properties=properties)
        with replies.get(timeout=PATIENCE) as message:
            assert (message.body, message.correlation_id) == (b"FOUR", "mine")


def test_sessions_of_a_program_that_are_spread(
    town: Cluster, uris: dict[str, str], asked: str
) -> None:
    with at(town, "north") as north, at(town, "west") as west, served(west, asked):
        north.declare_queue(asked, durable=True)
        goes_elsewhere(north, asked)
        found = shmbroker.cluster(f"failover:({uris['east']})?prefer-shared-memory=false", **LOGIN)
        with connected(uris["east"]) as told:
            until(lambda: len(told.topology()) == 3)
        with found.session() as first, found.session() as second, found.session() as third:
            sessions = (first, second, third)
            assert {each.uri for each in sessions} == set(uris.values())
            for each in sessions:
                assert each.queue(asked).request(b"hello", timeout=PATIENCE).body == b"HELLO"
                temporary = each.temporary_queue()
                properties = {REPLY_TO: temporary.name, CORRELATION: "mine"}
                [name] = [name for name, uri in uris.items() if uri == each.uri]
                with at(town, name) as beside:  # a plain message of a remote program stays there
                    beside.queue(asked).publish(b"again", properties=properties)
                with temporary.get(timeout=PATIENCE) as message:
                    assert (message.body, message.correlation_id) == (b"AGAIN", "mine")
        north.delete_queue(asked, force=True)


def test_a_reply_to_who_has_left_is_dropped_and_counted(town: Cluster, asked: str) -> None:
    with at(town, "west") as west, at(town, "east") as east:
        before = dropped(east)
        with at(town, "east") as gone, pytest.raises(NoReply):
            gone.queue(asked).request(b"?", timeout=0.01)
        with west.queue(asked).get(timeout=PATIENCE) as message:
            message.reply(b"too late")
            message.reply(b"and again")
        until(lambda: dropped(east) == before + 2)
        until(lambda: on_their_way(west) == 0)
        assert west.queue("town.undeliverable").statistics().depth == 0
        nobody = f"tmp.9.0123456789abcdef@town.{'0' * 32}"
        west.queue(asked).publish(b"?", properties={REPLY_TO: nobody})
        with (
            west.queue(asked).get(timeout=PATIENCE) as message,
            pytest.raises(RequesterLeft, match="its queue 'tmp"),
        ):
            message.reply(b"to a node that is not there")


def test_a_request_that_was_redistributed(town: Cluster, request: pytest.FixtureRequest) -> None:
    name = request.node.name
    with at(town, "east") as east, at(town, "west") as west:
        here = east.declare_queue(name, durable=True, redistribution_delay=0)
        west.declare_queue(name, durable=True)
        replies = east.temporary_queue()
        here.publish(b"waits", properties={REPLY_TO: replies.name, CORRELATION: "mine"})
        with west.queue(name).get(timeout=PATIENCE) as message:
            message.reply(b"came")
        with replies.get(timeout=PATIENCE) as message:
            assert (message.body, message.correlation_id) == (b"came", "mine")


@pytest.mark.parametrize("victim", ["east", "west"])
def test_each_reply_comes_once_whoever_is_killed(town: Cluster, asked: str, victim: str) -> None:
    count = 300
    with at(town, "east") as east, at(town, "west") as west:
        replies: Queue = east.temporary_queue(slots=1024, max_deliveries=None)
        for body in numbers(0, count):
            properties = {REPLY_TO: replies.name, CORRELATION: body.decode()}
            east.queue(asked).publish(body, properties=properties)
        for number in range(count):
            with west.queue(asked).get(timeout=PATIENCE) as message:
                message.reply(message.body)
            if number == count // 2:
                town[victim].kill()
                town[victim].start()
        town[victim].becomes("live")
        assert sorted(taken(replies, count), key=int) == numbers(0, count)
        until(lambda: on_their_way(west) == 0)
        assert replies.statistics().depth == 0
        for name in NAMES:
            town.sees(name, *(each for each in NAMES if each != name))
