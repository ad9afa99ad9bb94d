"""What is in a queue that is replaced by a replica is in a file, and nothing is in neither."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import InvalidArgument, Queue
from shmbroker.ipc.queue_replica.copy import declare
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.queue_replicated.confirming import Confirming
from shmbroker.netbridge.queue_replicated.feeding import Feedings
from shmbroker.netbridge.queue_replicated.replicas import QueueReplicas

NAME = "orders"


class Replacing:
    """A queue of which a program has a handle, as has the network of its broker."""

    def __init__(self, own: shmbroker.Broker, thread: NetworkThread, folder: Path) -> None:
        self.own = own
        self.told: list[Any] = []
        feedings = Feedings(thread, "a", Confirming(1.0, print), is_on=True)
        dial: Any = None  # nothing is dialled
        self.replicas = QueueReplicas(
            thread, own, folder, dial, self.told.append, feedings, is_of_node=False
        )

    def replace(self, name: str = NAME) -> None:
        declare(self.own, name, 0, b"something else")

    def saved(self, before: Any = None) -> list[str]:
        """What is in the file; `before` the queue is replaced that is done."""

        def replace() -> None:
            if before is not None:
                before()
            self.replace()

        name = self.replicas._save(self.own.queue(NAME), replace)
        lines = Path(name).read_text().splitlines() if name else []
        return [json.loads(each)["body"] for each in lines]


@pytest.fixture
def queue(broker: shmbroker.Broker) -> Queue:
    """Durable, and nothing of it gets to a disk."""
    return broker.declare_queue(NAME, durable=True)


@pytest.fixture
def replacing(vhost: str, queue: Queue, tmp_path: Path) -> Any:
    with shmbroker.connect(f"shm://{vhost}", name="network") as own, NetworkThread(own) as thread:
        yield Replacing(own, thread, tmp_path)


def test_what_is_not_confirmed_yet_is_saved(replacing: Replacing, queue: Queue) -> None:
    queue.publish_nowait(b"on its way to the disk")
    assert replacing.saved() == ["on its way to the disk"]


def test_what_comes_before_the_queue_is_replaced_is_saved(
    replacing: Replacing, queue: Queue
) -> None:
    queue.publish_nowait(b"first")
    body = bytes(100_000)
    both = ["first", body.decode()]
    assert replacing.saved(lambda: queue.publish_nowait(body)) == both
    assert replacing.told == []


def test_a_queue_that_had_nothing_leaves_no_file(replacing: Replacing, tmp_path: Path) -> None:
    assert replacing.saved() == []
    assert list((tmp_path / "saved").iterdir()) == []


@pytest.mark.parametrize("name", ["o" * 255, "ö" * 127, "a b:*?"])
def test_a_queue_of_any_name_is_saved(
    replacing: Replacing, broker: shmbroker.Broker, tmp_path: Path, name: str
) -> None:
    broker.declare_queue(name).publish(b"before")
    path = replacing.replicas._save(replacing.own.queue(name), lambda: replacing.replace(name))
    [saved] = (tmp_path / "saved").iterdir()
    assert (str(saved), json.loads(saved.read_text())["body"]) == (path, "before")


def test_what_is_in_the_file_alone_stays_in_it(
    replacing: Replacing, queue: Queue, tmp_path: Path
) -> None:
    queue.publish_nowait(b"only here")

    def fails() -> None:
        raise InvalidArgument("no memory for it")

    with pytest.raises(InvalidArgument, match="no memory for it"):
        replacing.saved(fails)
    assert list((tmp_path / "saved").iterdir()) == [], "it is in the queue"
    replacing.replace, replaces = fails, replacing.replace  # type: ignore[method-assign]
    with pytest.raises(InvalidArgument, match="no memory for it: what was in it is in "):
        replacing.saved(replaces)
    [saved] = (tmp_path / "saved").iterdir()
    assert "only here" in saved.read_text()
