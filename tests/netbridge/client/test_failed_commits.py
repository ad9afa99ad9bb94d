"""A commit that fails gives back what it was to acknowledge, in whatever way we are connected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import shmbroker
from shmbroker import DeliveryRevoked, NotFound, QueueFull, TooMany, TransactionRolledBack
from tests.support.client_api import Api, beside, each, entered, it, result
from tests.support.serving import Site

LOGIN = {"user": "site", "password": "correct horse battery"}
PATIENCE = 60.0


async def filled(broker: Any) -> Any:
    full = await it(broker.declare_queue("full", slots=4, max_messages=4))
    await it(full.publish_many([b"x"] * 4))
    return full


async def has_come_back(queue: Any) -> None:
    """Once, flagged, and nothing of it is in anybody's hand."""
    again = await it(queue.get(timeout=PATIENCE))
    assert (again.body, again.deliveries) == (b"taken", 1)
    await it(again.ack())
    statistics = await it(queue.statistics())
    assert (statistics.depth, statistics.taken) == (0, 0)


async def fails_at_the_end(broker: Any, error: type[Exception], to: Any, **of: Any) -> None:
    """`with`, and `async with`."""
    with pytest.raises(error):
        async with entered(broker.transaction(timeout=0.1)) as transaction:
            inside = transaction.queue("source")
            message = await it(inside.get(timeout=PATIENCE))
            message.ack()
            transaction.publish(to, b"answer", **of)


async def _without_room(api: Api, broker: Any) -> None:
    source, full = await it(broker.declare_queue("source")), await filled(broker)
    await it(source.publish(b"taken"))
    await fails_at_the_end(broker, QueueFull, full)
    await has_come_back(source)
    assert (await it(full.statistics())).depth == 4


async def _to_a_queue_that_is_gone(api: Api, broker: Any) -> None:
    source, gone = await it(broker.declare_queue("source")), await it(broker.declare_queue("gone"))
    await it(source.publish(b"taken"))
    if api.is_over_link:
        await it(broker.delete_queue("gone", force=True))
        await fails_at_the_end(broker, NotFound, gone)
    else:
        with pytest.raises(NotFound):
            async with entered(broker.transaction(timeout=0.1)) as transaction:
                (await it(transaction.queue(source).get(timeout=PATIENCE))).ack()
                transaction.publish(gone, b"answer")
                await it(broker.delete_queue("gone", force=True))
    await has_come_back(source)


PROGRAMS: dict[str, Callable[[Api, Any], Awaitable[None]]] = {
    "without-room": _without_room,
    "to-a-queue-that-is-gone": _to_a_queue_that_is_gone,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_commit_that_fails_gives_its_messages_back(api: Api, program: str) -> None:
    api.run(PROGRAMS[program])


async def _explicitly(api: Api, broker: Any) -> None:
    """Without a block: in shared memory its messages come back with the rollback."""
    source, full = await it(broker.declare_queue("source")), await filled(broker)
    await it(source.publish(b"taken"))
    transaction = broker.transaction()
    (await it(transaction.queue(source).get(timeout=PATIENCE))).ack()
    transaction.publish(full, b"answer")
    with pytest.raises(QueueFull):
        await it(transaction.commit(timeout=0.1))
    if api.is_over_link:
        with pytest.raises(DeliveryRevoked):
            await it(transaction.commit(timeout=0.1))
    transaction.rollback()
    await has_come_back(source)
    with pytest.raises(shmbroker.TransactionEnded):
        await it(transaction.commit())


def test_one_that_failed_is_rolled_back(api: Api) -> None:
    api.run(_explicitly)


async def _once_more(api: Api, broker: Any) -> None:
    full = await filled(broker)
    transaction = broker.transaction()
    transaction.publish(full, b"answer")
    with pytest.raises(QueueFull):
        await it(transaction.commit(timeout=0.1))
    await it(full.receive(timeout=PATIENCE))
    await it(transaction.commit(timeout=PATIENCE))
    there = [await it(full.receive(timeout=PATIENCE)) for _ in range(4)]
    assert there == [b"x", b"x", b"x", b"answer"]


def test_one_that_only_publishes_is_committed_as_soon_as_there_is_room(api: Api) -> None:
    api.run(_once_more)


async def _refused(api: Api, broker: Any) -> None:
    settings = {"max_messages": 4, "when_full": "fail"}
    full = await it(broker.declare_queue("full", slots=4, **settings))
    await it(full.publish_many([b"x"] * 4))
    await it(broker.bind((await it(broker.declare_exchange("all", "fanout"))).name, "full"))
    for to in (full, await it(broker.exchange("all"))):
        transaction = broker.transaction()
        transaction.publish(to, b"answer", **({} if to is full else {"key": ""}))

        async def commits(transaction: Any = transaction) -> None:
            await it(transaction.commit(timeout=None))

        with pytest.raises(QueueFull, match="queue 'full' is full"):
            await result(beside(api, commits()))
        assert await it(full.receive(timeout=PATIENCE)) == b"x"
        await it(transaction.commit(timeout=None))
        assert (await it(full.statistics())).depth == 4
    transaction = broker.transaction()
    transaction.publish(full, b"never")
    with pytest.raises(QueueFull):
        await it(transaction.commit(timeout=0))
    transaction.rollback()
    there = [await it(full.receive(timeout=PATIENCE)) for _ in range(4)]
    assert there == [b"x", b"x", b"answer", b"answer"]


def test_a_queue_that_fails_when_it_is_full_is_not_waited_for(api: Api) -> None:
    """It is said before anything is decided, so the transaction is as it was."""
    api.run(_refused)


async def _prefetched(api: Api, broker: Any) -> None:
    source, full = await it(broker.declare_queue("source")), await filled(broker)
    await it(source.publish_many([b"%d" % number for number in range(6)]))
    seen = []
    async for message in each(source.consume(timeout=PATIENCE, prefetch=2)):
        seen.append(message.body)
        if len(seen) <= 2:
            with pytest.raises(QueueFull):
                async with entered(broker.transaction(timeout=0.05)) as transaction:
                    transaction.ack(message)
                    transaction.publish(full, b"answer")
        if len(seen) == 8:
            break
    assert sorted(set(seen)) == [b"%d" % number for number in range(6)]


def test_a_loop_goes_on_behind_commits_that_fail(api: Api) -> None:
    """What they give back leaves room for more: the window does not fill up with it."""
    api.run(_prefetched)


def test_what_was_acknowledged_before_the_session_was_made_again_is_not_committed_after(
    served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shmbroker.connect(f"tcp://127.0.0.1:{served.port}", **LOGIN) as broker:
        queue = broker.declare_queue("q")
        queue.publish(b"taken")
        message = queue.get(timeout=PATIENCE)
        transaction = broker.transaction()
        session: Any = broker._session  # type: ignore[attr-defined]
        soon: list[Callable[[], None]] = []
        with monkeypatch.context() as patched:
            patched.setattr(session, "_soon", soon.append)
            transaction.ack(message)
        session._client.generation += 1  # by the network thread, which comes to the step only then
        for step in soon:
            session._soon(step)
        with pytest.raises(TransactionRolledBack):
            transaction.commit(timeout=PATIENCE)
        session._client.generation -= 1


def test_one_operation_too_many_is_refused_before_the_commit(api: Api) -> None:
    """Over a link the broker has one of its own in each transaction."""

    async def publish(api: Api, broker: Any) -> None:
        most = 999 if api.is_over_link else 1000
        queue = await it(broker.declare_queue("q", slots=2048))
        transaction = broker.transaction()
        await it(queue.publish(b"taken"))
        message = await it(queue.get(timeout=PATIENCE))
        for _ in range(most):
            transaction.publish(queue, b"x")
        with pytest.raises(TooMany):
            transaction.publish(queue, b"x")
        with pytest.raises(TooMany):
            transaction.ack(message)
        await it(message.ack())
        await it(transaction.commit(timeout=PATIENCE))
        assert (await it(queue.statistics())).depth == most

    api.run(publish)
