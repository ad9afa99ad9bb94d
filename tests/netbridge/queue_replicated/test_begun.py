"""Who waits until a queue follows: each is told once, whatever ends it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shmbroker
from shmbroker import InvalidArgument
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.ipc.queue_replica.copy import declare
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.queue_replica.codec import encode
from shmbroker.netbridge.queue_replica.source import Source
from shmbroker.netbridge.queue_replica.told import Follows
from shmbroker.netbridge.queue_replicated.confirming import Confirming
from shmbroker.netbridge.queue_replicated.feeding import Feedings
from shmbroker.netbridge.queue_replicated.following import Following
from shmbroker.netbridge.queue_replicated.replicas import QueueReplicas
from shmbroker.netbridge.wire.frame import Talk

NAME = "orders"
AWAY = "tcp://127.0.0.1:1"


def dial(*_: Any) -> Any:
    """A link to nobody."""
    return SimpleNamespace(
        state="connecting", why="nobody is there", stop=lambda: None, close=lambda: None
    )


def test_all_who_wait_are_told_by_whoever_has_waited_long_enough(
    broker: shmbroker.Broker, vhost: str, tmp_path: Path
) -> None:
    broker.declare_queue(NAME)
    with shmbroker.connect(f"shm://{vhost}", name="network") as own, NetworkThread(own) as thread:
        feedings = Feedings(thread, "a", Confirming(1.0, print), is_on=True)
        replicas = QueueReplicas(
            thread, own, tmp_path, dial, lambda line: None, feedings, is_of_node=False
        )
        first, second = (replicas.follow(NAME, AWAY, None) for _ in range(2))
        replicas.abandon(NAME, first)
        for each in (first, second):
            with pytest.raises(InvalidArgument, match=r"not begin to follow: .*nobody is there"):
                each.result(0)
        third = replicas.follow(NAME, AWAY, None)
        replicas.abandon(NAME, second)
        assert not third.done(), "who has asked since then waits for himself"
        replicas.detach(NAME)
        with pytest.raises(InvalidArgument, match="was detached before it began"):
            third.result(0)
        fourth = replicas.follow(NAME, AWAY, None)
        replicas.close()
        with pytest.raises(InvalidArgument, match="the broker stops"):
            fourth.result(0)


def test_who_is_told_that_it_has_begun_reads_where_it_is_saved(
    broker: shmbroker.Broker, vhost: str, tmp_path: Path
) -> None:
    broker.declare_queue(NAME).publish(b"before")
    (tmp_path / RUN).mkdir()
    read: list[str] = []
    began = Follows(1, b"i" * 16, 0, 64, 0, (), is_durable=False)
    end: Any = SimpleNamespace(say=lambda frame: None)
    links: list[Following] = []

    def told(_: Any) -> None:
        [row] = read_whole(tmp_path / RUN / "replicas")["replicas"]
        read.append(row["saved"])

    def dials(link: Following, _: str) -> Any:
        links.append(link)
        return dial()

    def answered() -> None:
        links[0].came(end)
        links[0].heard(end, Talk(encode(began)))

    with shmbroker.connect(f"shm://{vhost}", name="network") as own, NetworkThread(own) as thread:
        feedings = Feedings(thread, "a", Confirming(1.0, print), is_on=True)
        replicas = QueueReplicas(
            thread, own, tmp_path, dials, lambda line: None, feedings, is_of_node=False
        )
        begun = replicas.follow(NAME, AWAY, None)
        begun.add_done_callback(told)
        thread.ask(answered)
        begun.result(0)
        replicas.close()
    assert read == [str(each) for each in (tmp_path / "saved").iterdir()] != []


def test_a_queue_that_is_deleted_while_its_broker_begins_keeps_no_other_from_following(
    broker: shmbroker.Broker, vhost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("deleted", NAME):
        broker.declare_queue(name)
    declare(broker, NAME, 0, Source(AWAY, b"i" * 16).packed())
    dialled: list[str] = []

    def dials(_: Any, plan: str) -> Any:
        dialled.append(plan)
        return dial()

    with shmbroker.connect(f"shm://{vhost}", name="network") as own, NetworkThread(own) as thread:
        found = sorted(own._catalog.queues(), key=lambda each: each.name)
        broker.delete_queue("deleted")
        monkeypatch.setattr(own._catalog, "queues", lambda: iter(found))
        feedings = Feedings(thread, "a", Confirming(1.0, print), is_on=True)
        replicas = QueueReplicas(
            thread, own, tmp_path, dials, lambda line: None, feedings, is_of_node=False
        )
        replicas.begin()
        assert [each["queue"] for each in replicas.show()] == [NAME]
        assert dialled == [AWAY]
        replicas.close()
