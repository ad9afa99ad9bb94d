"""A bridge, a network link and an agent whose store was restored from a backup, or whose journal
was imported: positions are used twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Queue
from shmbroker.ipc.instance import backup
from shmbroker.ipc.instance.config.config import load
from shmbroker.ipc.instance.importing import imported_at
from shmbroker.ipc.instance.journal_place import of_existing, of_new
from shmbroker.ipc.instance.restoration import restore
from shmbroker.ipc.journal.export import exported
from shmbroker.ipc.vhost import vhost as vhosts
from tests.netbridge.broker.conftest import Two
from tests.netbridge.networked.conftest import Brokers
from tests.netbridge.transferred import conftest as agents
from tests.support.link import PATIENCE, SOURCE, TARGET
from tests.support.runs import Run


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    with ExitStack() as opened:
        yield Brokers(tmp_path, opened)


def put(vhost: str, *bodies: bytes, queue: str = SOURCE) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        made = broker.declare_queue(queue, slots=4096, durable=True)
        for body in bodies:
            made.publish(body, timeout=PATIENCE)


def taken(queue: Queue, count: int) -> list[bytes]:
    return [queue.receive(timeout=PATIENCE) for _ in range(count)]


def arrives(vhost: str, count: int) -> list[bytes]:
    until = time.monotonic() + PATIENCE
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue(TARGET, slots=4096, durable=True)
        while time.monotonic() < until:
            found = [bytes(each.body) for each in queue.browse()]
            if len(found) >= count:
                return found
            time.sleep(0.01)
    raise AssertionError(f"only {found} arrived")


@contextmanager
def restored(run: Run, vhost: str) -> Iterator[None]:
    """What comes meanwhile is not in its store afterwards; it is live again."""
    config, kept = load(run.folder), run.folder / "backup"
    backup.take(config, kept, None, print)
    yield
    run.kill()
    vhosts.delete(vhost, force=True)
    config.store.rename(run.folder / "lost")
    restore(config, kept, new_node=False)
    run.start().becomes("live")


@contextmanager
def imported(run: Run, vhost: str) -> Iterator[None]:
    """The same, of what is left of a damaged journal."""
    place = of_existing(run.folder)
    lines = list(exported(place.journal, print))
    yield
    run.kill()
    vhosts.delete(vhost, force=True)
    place.journal.rename(run.folder / "damaged")
    imported_at(of_new(run.folder), lines)
    run.start().becomes("live")


def come(queue: Queue, *last: bytes) -> None:
    """These do, behind what may come again."""
    missing = list(last)
    while missing:
        body = queue.receive(timeout=PATIENCE)
        if body == missing[0]:
            missing.pop(0)
        assert body in (b"1", b"2", *last)


@pytest.mark.parametrize("again", [restored, imported])
def test_what_is_published_after_a_restore_is_not_taken_for_what_the_target_knows(
    two: Two, again: Callable[[Run, str], AbstractContextManager[None]]
) -> None:
    two.far.start().becomes("live")
    arrives(two.far_vhost, 0)
    two.near.start().becomes("live")
    put(two.near_vhost, b"1", b"2")
    assert arrives(two.far_vhost, 2) == [b"1", b"2"]
    with again(two.near, two.near_vhost):
        put(two.near_vhost, b"3", b"4", b"5")
        arrives(two.far_vhost, 5)
    put(two.near_vhost, b"6", b"7")
    found = arrives(two.far_vhost, 7)
    while b"7" not in found:  # what the backup had not as shipped comes again before that
        found = arrives(two.far_vhost, len(found) + 1)
    assert found[:5] == [b"1", b"2", b"3", b"4", b"5"]
    assert found[-2:] == [b"6", b"7"]
    assert set(found[5:-2]) <= {b"1", b"2"}


def test_nor_by_a_network_link(brokers: Brokers) -> None:
    far, vhost = brokers.add("far").start().becomes("live"), brokers.vhosts["far"]
    brokers.add("near", brokers.address("far")).start().becomes("live")
    here = brokers.at("near").declare_queue("orders", durable=True)
    put(vhost, b"1", b"2", queue="orders")
    assert taken(here, 2) == [b"1", b"2"]
    with restored(far, vhost):
        put(vhost, b"3", b"4", b"5", queue="orders")
        assert taken(here, 3) == [b"3", b"4", b"5"]
    put(vhost, b"6", b"7", queue="orders")
    come(here, b"6", b"7")


def test_nor_by_an_agent(brokers: Brokers) -> None:
    brokers.add("far").start().becomes("live")
    near = agents.add(brokers, "near", {"name": "news", "to": "far", "mode": 2})
    near.start().becomes("live")
    got = agents.bound(brokers.at("far"), "news", "fanout")
    vhost = brokers.vhosts["near"]
    with shmbroker.connect(f"shm://{vhost}") as broker:
        news = agents.forwarded(brokers, broker, "news", "fanout")
        for body in (b"1", b"2"):
            news.publish(body)
    assert taken(got, 2) == [b"1", b"2"]
    with restored(near, vhost), shmbroker.connect(f"shm://{vhost}") as broker:
        for body in (b"3", b"4", b"5"):
            broker.exchange("news").publish(body)
        assert taken(got, 3) == [b"3", b"4", b"5"]
    with shmbroker.connect(f"shm://{vhost}") as broker:
        for body in (b"6", b"7"):
            agents.forwarded(brokers, broker, "news").publish(body)
        come(got, b"6", b"7")
