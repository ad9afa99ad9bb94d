"""A list whose member is on this host: through shared memory, over a link, and back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import shmbroker
import shmbroker.aio
from shmbroker import ConnectionClosed, NotFound, NotLocal, Unconfirmed
from shmbroker.ipc.instance.moving import moves
from shmbroker.ipc.instance.process import memory
from shmbroker.netbridge.remote.topology import Node
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.security.curve import public_of
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.serving.audience import Audience
from shmbroker.netbridge.wire.words import OF_PROGRAMS
from tests.conftest import vhost_for_a_while
from tests.support.serving import KEY, Site

LOGIN: dict[str, Any] = {"user": "site", "password": "correct horse battery"}
PATIENCE = 60.0
NODE = b"b" * 16


def told(site: Site, audience: Audience, *, here: bool, epoch: int = 0) -> None:
    """Programs are told whose memory it is."""
    where = memory() if here else "another host"
    uri = f"tcp://127.0.0.1:{site.port}"
    audience.tell([Node(NODE, epoch, "broker", uri, (), where, site.broker.vhost)])


def becomes(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


def is_near(broker: Any) -> bool:
    return broker._place.now() is not broker._place.remote


@pytest.fixture
def two(vhost: str, tmp_path: Path) -> Iterator[list[Site]]:
    """Members of one list, each with rings of its own."""
    with ExitStack() as opened:
        other = opened.enter_context(vhost_for_a_while())
        sites = []
        for name in (vhost, other):
            create = name == other
            broker = opened.enter_context(
                shmbroker.connect(f"shm://{name}", create=create, name="test")
            )
            sites.append(Site(broker, tmp_path))
        yield sites


def uri(*sites: Site, more: str = "") -> str:
    members = ",".join(f"tcp://127.0.0.1:{each.port}" for each in sites)
    return f"failover:({members})?randomize=false&startup-max-reconnect-attempts=-1{more}"


def test_what_is_not_local_is_there_in_shared_memory(two: list[Site]) -> None:
    site = two[0]
    with site.served() as audience:
        told(site, audience, here=True)
        with shmbroker.connect(uri(site), **LOGIN) as broker:
            becomes(lambda: is_near(broker))
            queue = broker.declare_queue("q")
            with queue.loan(5) as loan:
                loan.view[:] = b"lent!"
            assert queue.receive(timeout=60) == b"lent!"
            assert broker.participant > 0
            told(site, audience, here=False)
            becomes(lambda: not is_near(broker))
            queue.publish(b"over the link")
            with pytest.raises(NotLocal):
                queue.loan(5)
            assert len(queue) == 1
            told(site, audience, here=True)
            becomes(lambda: is_near(broker))
            with queue.get(timeout=60) as message:
                assert message.body == b"over the link"
            with broker.transaction() as transaction:
                transaction.publish("q", b"1", deliver_after=0.01)
            assert queue.receive(timeout=60) == b"1"


@pytest.mark.parametrize("here", [True, False])
def test_who_only_looks_makes_no_queue_and_goes_on_elsewhere(two: list[Site], here: bool) -> None:
    site = two[0]
    with site.served() as audience:
        told(site, audience, here=here)
        with shmbroker.connect(uri(site), **LOGIN) as broker:
            becomes(lambda: is_near(broker) is here)
            broker.settings("session-1", auto_create=True)
            with pytest.raises(NotFound, match="there is no queue 'session-1'"):
                broker._queue_there("session-1")
            broker.queue("session-1").publish(b"x")
            seen = broker._queue_there("session-1")
            assert len(seen) == 1
            told(site, audience, here=not here)
            becomes(lambda: is_near(broker) is not here)
            assert len(seen) == 1
            broker.delete_queue("session-1", force=True)
            told(site, audience, here=here)
            becomes(lambda: is_near(broker) is here)
            with pytest.raises(NotFound, match="there is no queue 'session-1'"):
                len(seen)


@pytest.mark.parametrize("here", [True, False])
def test_drain_closes_it_wherever_it_is(two: list[Site], here: bool) -> None:
    site = two[0]
    with site.served() as audience:
        told(site, audience, here=here)
        broker = shmbroker.connect(uri(site), **LOGIN)
        becomes(lambda: is_near(broker) is here)
        queue = broker.declare_queue("q")
        queue.publish(b"x")
        message = queue.get(timeout=60)
        assert broker.drain(timeout=0.05) == 1
        assert broker.is_closed
        del message


@pytest.mark.parametrize("here", [True, False])
def test_drain_closes_it_with_asyncio_too(two: list[Site], here: bool) -> None:
    async def program() -> None:
        broker = await shmbroker.aio.connect(uri(site), **LOGIN)
        becomes(lambda: is_near(broker) is here)
        queue = await broker.declare_queue("q")
        await queue.publish(b"x")
        message = await queue.get(timeout=60)
        assert await broker.drain(timeout=0.05) == 1
        assert broker.is_closed
        del message

    site = two[0]
    with site.served() as audience:
        told(site, audience, here=here)
        asyncio.run(program())


@pytest.mark.parametrize("more", ["&prefer-shared-memory=false", None])
def test_who_does_not_prefer_it_has_a_link(two: list[Site], more: str | None) -> None:
    """So has who names one address."""
    site = two[0]
    with site.served() as audience:
        told(site, audience, here=True)
        where = f"tcp://127.0.0.1:{site.port}" if more is None else uri(site, more=more)
        with shmbroker.connect(where, **LOGIN) as broker, pytest.raises(NotLocal):
            broker.declare_queue("q").loan(5)


def test_who_may_not_open_it_has_a_link(two: list[Site]) -> None:
    site = two[0]
    with site.served() as audience:
        nowhere = Node(NODE, 0, "broker", "", (), memory(), "there-is-no-such-vhost")
        audience.tell([nowhere])
        with shmbroker.connect(uri(site), **LOGIN) as broker:
            queue = broker.declare_queue("q")
            queue.publish(b"x")
            assert not is_near(broker)
            assert queue.receive(timeout=60) == b"x"


def test_memory_that_could_not_be_opened_is_tried_again(two: list[Site]) -> None:
    """Nobody tells of a vhost that had no place for one more program, or was not there yet."""
    site = two[0]
    with site.served() as audience, vhost_for_a_while() as later:
        audience.tell([Node(NODE, 0, "broker", "", (), memory(), later)])
        with shmbroker.connect(uri(site), **LOGIN) as broker:
            becomes(lambda: broker._session.near is not None)
            assert not is_near(broker)
            with shmbroker.connect(f"shm://{later}", create=True):
                becomes(lambda: is_near(broker))


def moved(sites: list[Site], serving: ExitStack) -> None:
    """The second one has taken the place of the first."""
    moves(sites[0].broker.vhost, f"tcp://127.0.0.1:{sites[1].port}")
    serving.close()


def test_a_program_moves_to_a_link_and_back_to_shared_memory(two: list[Site]) -> None:
    first, second = two
    with ExitStack() as serving, second.served() as other:
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        with shmbroker.connect(uri(first, second), **LOGIN) as broker:
            becomes(lambda: is_near(broker))
            queue = broker.declare_queue("q")
            queue.publish(b"here")
            second.broker.declare_queue("q")
            moved(two, serving)
            queue.publish(b"there")
            assert second.broker.queue("q").receive(timeout=60) == b"there"
            told(second, other, here=True, epoch=1)
            becomes(lambda: is_near(broker))
            assert broker.vhost == second.broker.vhost
            queue.publish(b"near again")
            assert queue.receive(timeout=60) == b"near again"


def dies(sites: list[Site], serving: ExitStack) -> None:
    """Nobody tells the vhost of the first one."""
    serving.close()


@pytest.mark.parametrize("goes", [moved, dies])
def test_a_loop_goes_on_at_the_other_member(
    two: list[Site], goes: Callable[[list[Site], ExitStack], None]
) -> None:
    first, second = two
    with ExitStack() as serving, second.served() as other:
        told(second, other, here=False, epoch=1)
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        with shmbroker.connect(uri(first, second), **LOGIN) as broker:
            becomes(lambda: is_near(broker))
            queue = broker.declare_queue("q")
            queue.publish(b"here")
            second.broker.declare_queue("q").publish(b"there")
            got: list[bytes] = []
            took = threading.Event()

            def take() -> None:
                for message in queue.consume(timeout=PATIENCE):
                    got.append(message.body)
                    took.set()
                    if len(got) == 2:
                        return

            taking = threading.Thread(target=take)
            taking.start()
            assert took.wait(PATIENCE)
            goes(two, serving)
            taking.join(PATIENCE)
            assert got == [b"here", b"there"]


def test_a_take_goes_on_when_another_thread_has_found_the_other_member(two: list[Site]) -> None:
    first, second = two
    with ExitStack() as serving, second.served() as other:
        told(second, other, here=False, epoch=1)
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        with shmbroker.connect(uri(first, second), **LOGIN) as broker:
            becomes(lambda: is_near(broker))
            queue = broker.declare_queue("q")
            second.broker.declare_queue("q").publish(b"there")
            with ThreadPoolExecutor() as threads:
                taking = threads.submit(queue.receive, timeout=PATIENCE)
                becomes(lambda: first.broker.queue("q").statistics().consumers > 0)
                dies(two, serving)
                becomes(lambda: not is_near(broker))  # it looks, as every verb does
                assert taking.result(PATIENCE) == b"there"


@pytest.mark.parametrize(
    "more", ["&failover-mode=application", "&reconnect-deadline=200ms&max-reconnect-attempts=-1"]
)
def test_a_take_ends_when_the_connection_was_given_up(two: list[Site], more: str) -> None:
    """Its member was killed, and there is no other one, or none is looked for."""
    first, second = two
    with ExitStack() as serving:
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        with shmbroker.connect(uri(first, more=more), **LOGIN) as broker:
            becomes(lambda: is_near(broker))
            queue = broker.declare_queue("q")
            with ThreadPoolExecutor() as threads:
                taking = threads.submit(queue.receive, timeout=PATIENCE)
                becomes(lambda: first.broker.queue("q").statistics().consumers > 0)
                dies(two, serving)
                with pytest.raises(ConnectionClosed):
                    taking.result(PATIENCE)
            with pytest.raises(ConnectionClosed):
                queue.publish(b"to nobody")
            with second.served() as other:
                told(second, other, here=False, epoch=1)
                second.broker.declare_queue("q")
                broker.reconnect(uri(second))
                queue.publish(b"there")
                assert second.broker.queue("q").receive(timeout=60) == b"there"


def test_a_take_goes_on_as_often_as_its_member_changes(two: list[Site]) -> None:
    first, second = two
    with ExitStack() as serving, ExitStack() as serving_second, ExitStack() as back:
        other = serving_second.enter_context(second.served())
        told(second, other, here=True)
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        with shmbroker.connect(uri(first, second), **LOGIN) as broker:
            becomes(lambda: is_near(broker))
            queue = broker.declare_queue("q")
            second.broker.declare_queue("q")
            with ThreadPoolExecutor() as threads:
                taking = threads.submit(queue.receive, timeout=PATIENCE)
                becomes(lambda: first.broker.queue("q").statistics().consumers > 0)
                dies(two, serving)
                becomes(lambda: second.broker.queue("q").statistics().consumers > 0)
                told(first, back.enter_context(first.served()), here=False)
                dies(two, serving_second)
                first.broker.queue("q").publish(b"back")
                assert taking.result(PATIENCE) == b"back"


def test_a_take_goes_on_with_asyncio_as_often_as_its_member_changes(two: list[Site]) -> None:
    first, second = two

    async def main(serving: ExitStack, serving_second: ExitStack, back: ExitStack) -> None:
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        async with shmbroker.aio.connect(uri(first, second), **LOGIN) as broker:
            await asyncio.to_thread(becomes, lambda: is_near(broker))
            queue = await broker.declare_queue("q")
            second.broker.declare_queue("q")
            taking = asyncio.ensure_future(queue.receive(timeout=PATIENCE))
            await asyncio.sleep(0)
            await asyncio.to_thread(dies, two, serving)
            await asyncio.to_thread(
                becomes, lambda: second.broker.queue("q").statistics().consumers > 0
            )
            told(first, back.enter_context(first.served()), here=False)
            await asyncio.to_thread(dies, two, serving_second)
            first.broker.queue("q").publish(b"back")
            assert await taking == b"back"

    with ExitStack() as serving, ExitStack() as serving_second, ExitStack() as back:
        other = serving_second.enter_context(second.served())
        told(second, other, here=True)
        asyncio.run(main(serving, serving_second, back))


def test_who_takes_is_told_that_the_program_closes_or_drains(two: list[Site]) -> None:
    site = two[0]
    for verb in ("close", "drain"):
        with site.served() as audience:
            told(site, audience, here=True)
            broker = shmbroker.connect(uri(site), **LOGIN)
            becomes(lambda: is_near(broker))  # noqa: B023
            queue = broker.declare_queue("q")
            with ThreadPoolExecutor() as threads:
                taking = threads.submit(queue.receive, timeout=PATIENCE)
                becomes(lambda: site.broker.queue("q").statistics().consumers > 0)
                getattr(broker, verb)()
                with pytest.raises(ConnectionClosed):
                    taking.result(PATIENCE)


def test_a_member_that_is_told_of_has_the_key_of_who_tells(two: list[Site]) -> None:
    """Of a user whose password is not that of the acceptor's key."""
    first, second = two
    password = "another correct horse"
    for each in two:
        each.of = Credential("olga", "olga", tuple(OF_PROGRAMS), (Stretched("olga", password),))
    where = [f"tcp://127.0.0.1:{each.port}" for each in two]
    with ExitStack() as serving, second.served():
        audience = serving.enter_context(first.served())
        audience.tell([Node(NODE, 0, "broker", where[0], (where[1],))])
        key = public_of(KEY.listening).hex()
        uri = f"failover:({where[0]}?key={key})?startup-max-reconnect-attempts=-1"
        with shmbroker.connect(uri, user="olga", password=password) as broker:
            queue = broker.declare_queue("q")
            becomes(lambda: len(broker.topology()) == 2)
            second.broker.declare_queue("q")
            serving.close()
            queue.publish(b"there", timeout=PATIENCE)
            assert second.broker.queue("q").receive(timeout=60) == b"there"


def test_what_is_opened_while_the_place_changes_is_of_where_it_was_opened(
    two: list[Site],
) -> None:
    first, second = two
    with ExitStack() as serving, second.served() as other:
        told(second, other, here=False, epoch=1)
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        with shmbroker.connect(uri(first, second), **LOGIN) as broker:
            becomes(lambda: is_near(broker))
            second.broker.declare_queue("q")
            local = broker._place.now()
            opened = local.declare_queue("q")
            moved(two, serving)
            becomes(lambda: not is_near(broker))
            queue = broker._made("declare_queue", local, opened, {})
            queue.publish(b"there")
            assert second.broker.queue("q").receive(timeout=60) == b"there"


def test_what_a_durable_queue_was_given_is_in_doubt(two: list[Site]) -> None:
    first, second = two
    with ExitStack() as serving, second.served():
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        with shmbroker.connect(uri(first, second), **LOGIN) as broker:
            becomes(lambda: is_near(broker))
            queue = broker.declare_queue("q", durable=True)
            second.broker.declare_queue("q", durable=True)
            begun = threading.Event()
            caught: list[BaseException] = []

            def publish() -> None:
                begun.set()
                with pytest.raises(Unconfirmed) as error:
                    queue.publish(b"nobody confirms it", timeout=PATIENCE)
                caught.append(error.value)

            publishing = threading.Thread(target=publish)
            publishing.start()
            assert begun.wait(PATIENCE)
            moved(two, serving)
            publishing.join(PATIENCE)
            assert caught


@pytest.mark.parametrize("published", [0, 8])
def test_what_is_cut_in_the_middle_is_not_published_once_more_as_a_whole(
    two: list[Site], published: int
) -> None:
    """Where nothing was, all goes to the other member: also of an iterator."""
    first, second = two
    bodies = [b"%d" % number for number in range(20)]
    given = threading.Event()

    def gives() -> Iterator[bytes]:
        yield from bodies
        given.set()

    with ExitStack() as serving, second.served() as other:
        told(second, other, here=False, epoch=1)
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        with shmbroker.connect(uri(first, second), **LOGIN) as broker:
            becomes(lambda: is_near(broker))
            queue = broker.declare_queue("q", slots=8)
            there = second.broker.declare_queue("q", slots=64)
            queue.publish_many([b"before"] * (8 - published))
            with ThreadPoolExecutor() as threads:
                publishing = threads.submit(queue.publish_many, gives(), timeout=PATIENCE)
                becomes(lambda: given.is_set() and len(first.broker.queue("q")) == 8)
                dies(two, serving)
                if published:
                    with pytest.raises(ConnectionClosed) as error:
                        publishing.result(PATIENCE)
                    assert error.value.published == published
                    assert len(there) == 0
                else:
                    assert publishing.result(PATIENCE) == len(bodies)
                    assert there.receive_many() == bodies


def test_a_take_goes_on_with_asyncio_when_its_member_dies(two: list[Site]) -> None:
    first, second = two

    async def main(serving: ExitStack) -> None:
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        async with shmbroker.aio.connect(uri(first, second), **LOGIN) as broker:
            while not is_near(broker):
                await asyncio.sleep(0.005)
            queue = await broker.declare_queue("q")
            second.broker.declare_queue("q").publish(b"there")
            taking = asyncio.ensure_future(queue.receive(timeout=PATIENCE))
            await asyncio.sleep(0)
            await asyncio.to_thread(dies, two, serving)
            assert await taking == b"there"

    with ExitStack() as serving, second.served() as other:
        told(second, other, here=False, epoch=1)
        asyncio.run(main(serving))


def test_with_asyncio(two: list[Site]) -> None:
    first, second = two

    async def main(serving: ExitStack) -> None:
        audience = serving.enter_context(first.served())
        told(first, audience, here=True)
        async with shmbroker.aio.connect(uri(first, second), **LOGIN) as broker:
            while not is_near(broker):
                await asyncio.sleep(0.005)
            queue = await broker.declare_queue("q")
            loan = queue.loan(2)
            loan.view[:] = b"hi"
            await loan.publish()
            async with queue.get(timeout=60) as message:
                assert message.body == b"hi"
            second.broker.declare_queue("q")
            await asyncio.to_thread(moved, two, serving)
            await queue.publish(b"there")
            assert second.broker.queue("q").receive(timeout=60) == b"there"
            assert not is_near(broker)

    with ExitStack() as serving, second.served():
        asyncio.run(main(serving))
