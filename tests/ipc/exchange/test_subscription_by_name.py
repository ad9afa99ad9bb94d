"""Subscriptions by name: who gets what, who may have it at once, and what is kept while away."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, aio
from shmbroker.ipc.catalog.catalog import SubscriptionInfo
from shmbroker.perf.machine.process import Process
from tests.crash.leaks import blocks
from tests.support.host import PATIENCE
from tests.support.killed import victims

AUDIT = {"exchange": "prices", "key": "eu.#"}


@pytest.fixture
def broker(broker: Broker) -> Broker:
    broker.declare_exchange("prices", "topic")
    return broker


def test_it_takes_what_its_key_takes(broker: Broker) -> None:
    audit = broker.subscription("audit", exchange="prices", key="eu.*.fx")
    for key in ("eu.de.fx", "us.ny.fx", "eu.fr.fx", "eu.fx"):
        broker.exchange("prices").publish(key.encode(), key=key)
    assert [each.body for each in audit.consume(timeout=0)] == [b"eu.de.fx", b"eu.fr.fx"]
    assert (audit.name, audit.subscription) == ("sub.audit", "audit")


def test_a_durable_one_collects_while_nobody_is_there(vhost: str, broker: Broker) -> None:
    with shmbroker.connect(f"shm://{vhost}") as away:
        away.subscription("audit", durable=True, **AUDIT)
    broker.exchange("prices").publish(b"1.07", key="eu.de")
    assert broker.subscription("audit", durable=True, **AUDIT).receive(timeout=0) == b"1.07"


def test_a_durable_one_collects_so_many(vhost: str, broker: Broker) -> None:
    bounded: dict[str, Any] = {"durable": True, "max_messages": 2, "when_full": "drop-oldest"}
    with shmbroker.connect(f"shm://{vhost}") as away:
        away.subscription("audit", **AUDIT, **bounded)
    for number in range(5):
        broker.exchange("prices").publish(b"%d" % number, key="eu.de")
    audit = broker.subscription("audit", **AUDIT, **bounded)
    assert [each.body for each in audit.consume(timeout=0)] == [b"3", b"4"]


def test_whoever_comes_back_finds_it_whatever_its_settings(vhost: str, broker: Broker) -> None:
    broker.settings("sub.#", durable=True, slow_consumer_threshold=5.0, auto_delete=True)
    with shmbroker.connect(f"shm://{vhost}") as away:
        away.subscription("audit", durable=True, **AUDIT)
    with broker.subscription("audit", durable=True, **AUDIT) as audit:
        assert audit.level == "disk"
    with pytest.raises(shmbroker.DeclaredDifferently, match="not shared"):
        broker.subscription("audit", durable=True, shared=True, **AUDIT)


def test_one_that_is_not_durable_goes_with_its_consumer(vhost: str, broker: Broker) -> None:
    with shmbroker.connect(f"shm://{vhost}") as away:
        away.subscription("audit", **AUDIT)
        assert [each.name for each in broker.subscriptions()] == ["audit"]
    assert not broker.subscriptions()
    assert not broker.bindings()


def test_who_closes_it_leaves_it_to_others(broker: Broker, other: Broker) -> None:
    with broker.subscription("kept", durable=True, **AUDIT), broker.subscription("gone", **AUDIT):
        for name, durable in (("kept", True), ("gone", False)):
            with pytest.raises(shmbroker.SubscriptionTaken):
                other.subscription(name, durable=durable, **AUDIT)
    assert [each.name for each in broker.subscriptions()] == ["kept"]
    other.subscription("kept", durable=True, **AUDIT)


def test_closing_it_leaves_nothing_behind(vhost: str, broker: Broker) -> None:
    for _ in range(3):
        with broker.subscription("gone", **AUDIT) as gone:
            broker.exchange("prices").publish(bytes(5000), key="eu.de")
            assert len(gone.receive(timeout=0)) == 5000
        with pytest.raises(shmbroker.NotFound, match="was deleted"):
            gone.publish(b"1")
        assert not blocks(vhost)
    assert broker.declare_queue("next", slots=8) is not None
    assert [queue.id for queue in broker.queues()] == [0], "its row is used again"


def test_a_second_consumer_is_refused(broker: Broker, other: Broker) -> None:
    broker.subscription("audit", durable=True, **AUDIT)
    says = f"subscription 'audit' has a consumer, participant {broker.participant}: share it"
    with pytest.raises(shmbroker.SubscriptionTaken, match=says):
        other.subscription("audit", durable=True, **AUDIT)
    broker.close()
    other.subscription("audit", durable=True, **AUDIT)


def test_several_share_one(broker: Broker, other: Broker) -> None:
    ours = broker.subscription("audit", shared=True, **AUDIT)
    theirs = other.subscription("audit", shared=True, **AUDIT)
    for number in range(4):
        broker.exchange("prices").publish(b"%d" % number, key="eu.de")
    assert [each.receive(timeout=0) for each in (ours, theirs, ours, theirs)] == [
        b"0", b"1", b"2", b"3",
    ]  # fmt: skip


def test_a_shared_one_goes_with_its_last_consumer(vhost: str, broker: Broker) -> None:
    with shmbroker.connect(f"shm://{vhost}") as last:
        with shmbroker.connect(f"shm://{vhost}") as first:
            first.subscription("audit", shared=True, **AUDIT)
            theirs = last.subscription("audit", shared=True, **AUDIT)
        broker.exchange("prices").publish(b"1.07", key="eu.de")
        assert theirs.receive(timeout=0) == b"1.07"
    assert not broker.subscriptions()


@pytest.mark.parametrize("first", [0, 1])
def test_a_shared_one_goes_when_its_last_consumer_closes_it(
    broker: Broker, other: Broker, first: int
) -> None:
    """Both stay connected."""
    both = [each.subscription("audit", shared=True, **AUDIT) for each in (broker, other)]
    both[first].close()
    assert both[1 - first].statistics().consumers == 1
    both[1 - first].close()
    assert not broker.subscriptions()
    assert not broker.bindings()


def test_twice_is_once(broker: Broker) -> None:
    for _ in range(2):
        broker.subscription("audit", durable=True, **AUDIT)
    assert len(broker.bindings()) == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"key": "us.#"}, "exists with another exchange or key: use it so, or unsubscribe first"),
        ({"exchange": "orders"}, "exists with another exchange or key"),
        ({"durable": False}, "'audit' exists and is durable and not shared: use it so"),
        ({"shared": True}, "exists and is durable and not shared"),
        ({"slots": 8}, "exists with 1024 slots, not 8"),
        ({"ttl": 1.0}, "exists with other settings"),
    ],
)
def test_another_definition(broker: Broker, change: dict[str, Any], says: str) -> None:
    broker.declare_exchange("orders", "topic")
    defined: dict[str, Any] = {**AUDIT, "durable": True}
    broker.subscription("audit", **defined)
    with pytest.raises(shmbroker.DeclaredDifferently, match=says):
        broker.subscription("audit", **{**defined, **change})
    assert len(broker.bindings()) == 1


def test_what_it_cannot_be(broker: Broker) -> None:
    with pytest.raises(shmbroker.NotFound, match="there is no exchange 'nowhere'"):
        broker.subscription("audit", exchange="nowhere")
    with pytest.raises(shmbroker.InvalidName, match="a subscription contains no '/'"):
        broker.subscription("a/b", **AUDIT)
    with pytest.raises(shmbroker.InvalidName, match="1 to 251 bytes, this one has 252"):
        broker.subscription("a" * 252, **AUDIT)
    with pytest.raises(shmbroker.InvalidArgument, match="a key is text"):
        broker.subscription("audit", exchange="prices", key=7)  # type: ignore[arg-type]
    with pytest.raises(shmbroker.InvalidArgument, match="power of two"):
        broker.subscription("audit", slots=3, **AUDIT)
    with pytest.raises(shmbroker.InvalidArgument, match="448 bytes"):
        broker.subscription("audit", exchange="prices", key="a" * 449)
    broker.declare_queue("sub.plain", slots=8)
    with pytest.raises(shmbroker.DeclaredDifferently, match="is no subscription"):
        broker.subscription("plain", **AUDIT)
    assert [each.name for each in broker.queues()] == ["sub.plain"]


def test_unsubscribe(broker: Broker, other: Broker) -> None:
    with pytest.raises(shmbroker.NotFound, match="no subscription 'audit'"):
        broker.unsubscribe("audit")
    other.subscription("audit", durable=True, **AUDIT)
    with pytest.raises(shmbroker.InUse):
        broker.unsubscribe("audit")
    broker.unsubscribe("audit", force=True)
    assert not broker.queues()
    assert not broker.bindings()


def test_unsubscribe_what_one_has_left_who_was_killed(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    def live() -> int:
        theirs = shmbroker.connect(f"shm://{vhost}")
        theirs.subscription("audit", **AUDIT)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    process = Process(live, tmp_path / "errors")
    assert process.has_ended(PATIENCE)
    assert process.status == -signal.SIGKILL
    broker.unsubscribe("audit")  # nobody has repaired anything since
    assert not broker.queues()


def test_they_are_listed(broker: Broker) -> None:
    broker.subscription("audit", durable=True, **AUDIT)
    broker.subscription("all", shared=True, exchange="prices", key="#")
    broker.exchange("prices").publish(b"1.07", key="eu.de")
    assert broker.subscriptions() == [
        SubscriptionInfo("all", "sub.all", "prices", "#", False, True, None, 1),
        SubscriptionInfo(
            "audit", "sub.audit", "prices", "eu.#", True, False, broker.participant, 1
        ),
    ]


def test_it_is_bound_again_when_its_exchange_comes_back(broker: Broker) -> None:
    broker.subscription("audit", durable=True, **AUDIT)
    broker.delete_exchange("prices", force=True)
    assert broker.subscriptions()[0].exchange is None
    broker.declare_exchange("prices", "topic")
    audit = broker.subscription("audit", durable=True, **AUDIT)
    broker.exchange("prices").publish(b"1.07", key="eu.de")
    assert audit.receive(timeout=0) == b"1.07"


def test_for_asyncio(vhost: str, broker: Broker) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as connected:
            async with await connected.subscription("audit", durable=True, **AUDIT) as audit:
                assert audit.subscription == "audit"
                broker.exchange("prices").publish(b"1.07", key="eu.de")
                assert await audit.receive(timeout=30) == b"1.07"
                with pytest.raises(shmbroker.SubscriptionTaken):
                    broker.subscription("audit", durable=True, **AUDIT)
            broker.subscription("audit", durable=True, **AUDIT).close()
            await connected.unsubscribe("audit", force=True)
            assert not await connected.subscriptions()

    asyncio.run(main())


def subscribe_and_leave(broker: Broker) -> None:
    with suppress(shmbroker.Empty):
        broker.subscription("one", durable=True, **AUDIT).receive(timeout=0)
    broker.subscription("fleeting", **AUDIT).publish(bytes(3000))
    broker.subscription("several", shared=True, **AUDIT)
    broker.subscription("fleeting", **AUDIT).close()


def test_one_that_was_killed_does_not_count(vhost: str, broker: Broker, tmp_path: Path) -> None:
    # the exchange is a queue's only way in, so that what is lost or doubled would show
    broker.subscription("one", durable=True, **AUDIT).close()
    broker.subscription("several", shared=True, **AUDIT)
    for number, _victim in victims(f"shm://{vhost}", tmp_path, subscribe_and_leave, 3):
        with broker.subscription("one", durable=True, **AUDIT) as ours:
            broker.exchange("prices").publish(b"%d" % number, key="eu.de")
            assert ours.receive(timeout=30) == b"%d" % number
        broker.repair()
        assert [each.name for each in broker.subscriptions()] == ["one", "several"]
        assert len(broker.bindings()) == 2
        broker.exchange("prices").publish(b"to nobody", key="us")  # and we let go of what is gone
        rows = {queue.id for queue in broker.queues()}
        assert {row for _state, _owner, row in blocks(vhost)} <= rows
