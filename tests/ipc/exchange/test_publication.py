"""A message that waits for room in one queue of an exchange, while bindings change."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from shmbroker import Broker, Empty, QueueFull, Unroutable, aio
from shmbroker.core.codes import DIFFERENT, FULL
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.catalog.catalog import Catalog
from shmbroker.ipc.exchange.publication import Publication
from tests.support.host import PATIENCE

NAMES = ("a", "b", "c", "d")
ROOM = 2


@pytest.fixture
def x(broker: Broker) -> Broker:
    """An exchange with four queues, in this order, of which c is full."""
    broker.declare_exchange("x", "fanout")
    for name in NAMES:
        broker.declare_queue(name, slots=ROOM)
        broker.bind("x", name)
    broker.queue("c").publish_many([b"before"] * ROOM)
    return broker


def has(broker: Broker) -> dict[str, int]:
    """How often each of them has the message."""
    bodies = {name: [each.body for each in broker.queue(name).browse()] for name in NAMES}
    return {name: found.count(b"x") for name, found in bodies.items()}


def stuck(broker: Broker) -> Publication:
    publication = Publication(broker.exchange("x"), b"x")
    with pytest.raises(QueueFull, match="2 queues have the message"):
        publication.go_on(0)
    return publication


def stuck_behind_one_passed_over(broker: Broker, other: Broker) -> Publication:
    """Of a and b only b has a consumer, and no room."""
    for name in ("c", "d"):
        broker.unbind("x", name)
    other.queue("b").publish(b"before")
    other.queue("b").receive(timeout=0)
    broker.queue("b").publish_many([b"before"] * ROOM)
    publication = Publication(broker.exchange("x"), b"x", immediate=True)
    with pytest.raises(QueueFull):
        publication.go_on(0)
    return publication


def test_one_that_was_passed_over_is_not_counted_later(x: Broker, other: Broker) -> None:
    publication = stuck_behind_one_passed_over(x, other)
    x.queue("b").purge()
    assert publication.go_on(0) == 1
    assert has(x) == {"a": 0, "b": 1, "c": 0, "d": 0}


def test_nor_if_it_has_a_consumer_by_now(x: Broker, other: Broker) -> None:
    publication = stuck_behind_one_passed_over(x, other)
    with pytest.raises(Empty):
        x.queue("a").receive(timeout=0)
    other.close()
    x.queue("b").purge()
    with pytest.raises(Unroutable):
        publication.go_on(0)


def test_c_programs_are_told_of_another_route(x: Broker) -> None:
    """And not to call again, which would say the same for ever."""
    progress, message = ffi.new("sb_progress *"), ffi.new("sb_outgoing *")
    going = (x.exchange("x")._exchange, message, 0, progress, ffi.NULL)
    assert lib.sb_exchange_go_on(*going) == FULL
    x.unbind("x", "a")
    for _ in range(2):
        assert lib.sb_exchange_go_on(*going) == DIFFERENT
        assert progress.done == 2


def test_it_goes_on_whatever_else_changes_meanwhile(
    x: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where clients come and go all the time."""
    catalog = lib.sb_catalog(x._connection)
    changes = iter(range(1000))

    def generation(_of: Catalog) -> int:
        next(changes)
        return int(lib.sb_catalog_changed(catalog))

    monkeypatch.setattr(Catalog, "generation", property(generation))
    publication = stuck(x)
    x.unbind("x", "a")
    x.queue("c").purge()
    assert publication.go_on(0) == 3
    assert has(x) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_it_passes_over_no_queue_when_one_before_goes(x: Broker) -> None:
    publication = stuck(x)
    x.unbind("x", "a")
    x.queue("c").purge()
    assert publication.go_on(0) == 3
    assert has(x) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_no_queue_has_it_twice_when_one_before_comes(x: Broker) -> None:
    x.unbind("x", "a")
    publication = Publication(x.exchange("x"), b"x")
    with pytest.raises(QueueFull, match="1 queues have the message"):
        publication.go_on(0)
    x.bind("x", "a")  # in the row that was free
    x.queue("c").purge()
    publication.go_on(0)
    assert has(x) == {"a": 0, "b": 1, "c": 1, "d": 1}


def test_those_behind_a_queue_that_goes_have_it(x: Broker) -> None:
    publication = stuck(x)
    x.unbind("x", "c")
    x.unbind("x", "b")
    assert publication.go_on(0) == 2
    assert has(x) == {"a": 1, "b": 1, "c": 0, "d": 1}


def test_it_may_be_stuck_several_times(x: Broker) -> None:
    x.queue("d").publish_many([b"before"] * ROOM)
    publication = stuck(x)
    x.delete_queue("a", force=True)
    x.declare_queue("a", slots=ROOM)
    x.queue("c").purge()
    with pytest.raises(QueueFull, match="queue 'd' is full"):
        publication.go_on(0)
    x.unbind("x", "b")
    x.queue("d").purge()
    publication.go_on(0)
    assert has(x) == {"a": 0, "b": 1, "c": 1, "d": 1}


def just_before(patch: pytest.MonkeyPatch, method: str, does: Callable[[], None]) -> None:
    """It is done once, before this method of a publication."""
    real = getattr(Publication, method)

    def first(publication: Publication, *rest: int) -> Any:
        patch.setattr(Publication, method, real)
        does()
        return real(publication, *rest)

    patch.setattr(Publication, method, first)


def test_it_passes_over_no_queue_when_one_goes_just_before_the_call(
    x: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    publication = stuck(x)
    x.queue("c").purge()
    just_before(monkeypatch, "_publish", lambda: x.unbind("x", "a"))
    assert publication.go_on(0) == 3
    assert has(x) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_it_passes_over_no_queue_when_one_goes_just_after_the_call(
    x: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    just_before(monkeypatch, "_route", lambda: x.unbind("x", "a"))
    publication = Publication(x.exchange("x"), b"x")
    with pytest.raises(QueueFull):
        publication.go_on(0)
    x.queue("c").purge()
    assert publication.go_on(0) == 3
    assert has(x) == {"a": 1, "b": 2, "c": 1, "d": 1}, "rather twice than not at all"


@pytest.fixture
def alarm(x: Broker) -> Iterator[None]:
    """A queue goes while the message waits, and then there is room."""

    def rings(_number: int, _frame: FrameType | None) -> None:
        x.unbind("x", "a")
        x.queue("c").purge()

    before = signal.signal(signal.SIGALRM, rings)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_who_waits_is_interrupted(x: Broker) -> None:
    assert x.exchange("x").publish(b"x", timeout=PATIENCE) == 3
    assert has(x) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_asyncio(x: Broker, vhost: str) -> None:
    async def session() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            exchange = await broker.exchange("x")
            waiting = asyncio.create_task(exchange.publish(b"x", timeout=PATIENCE))
            while x.queue("b").statistics().depth == 0:
                await asyncio.sleep(0.001)
            x.unbind("x", "a")
            x.queue("c").purge()
            await waiting

    asyncio.run(session())
    assert has(x) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_asyncio_when_the_binding_of_the_full_queue_goes(
    x: Broker, vhost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Just before it waits for that one: the others have the message, so there is nothing to wait
    for, and nothing is full."""
    x.unbind("x", "d")
    note = Publication._note_lacking

    def note_and_unbind(publication: Publication) -> None:
        note(publication)
        x.unbind("x", "c")

    monkeypatch.setattr(Publication, "_note_lacking", note_and_unbind)

    async def session() -> int:
        async with aio.connect(f"shm://{vhost}") as broker:
            exchange = await broker.exchange("x")
            return await exchange.publish(b"x", timeout=PATIENCE)

    assert asyncio.run(session()) == 2
    assert has(x) == {"a": 1, "b": 1, "c": 0, "d": 0}
