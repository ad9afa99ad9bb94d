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
from shmbroker.ipc.settings.setting import WhenFull
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


@pytest.fixture
def changing(x: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog, whenever somebody looks, as where clients come and go all the time."""
    catalog = lib.sb_catalog(x._connection)
    changes = iter(range(1000))

    def generation(_of: Catalog) -> int:
        next(changes)
        return int(lib.sb_catalog_changed(catalog))

    monkeypatch.setattr(Catalog, "generation", property(generation))


@pytest.mark.usefixtures("changing")
def test_it_goes_on_whatever_else_changes_meanwhile(x: Broker) -> None:
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


def just_after_noting(patch: pytest.MonkeyPatch, does: Callable[[], None]) -> None:
    """It is done once, when a publication has noted which queues lack the message."""
    real = Publication._note_lacking

    def first(publication: Publication) -> None:
        patch.setattr(Publication, "_note_lacking", real)
        real(publication)
        does()

    patch.setattr(Publication, "_note_lacking", first)


def bind_another(broker: Broker, when_full: WhenFull) -> None:
    """Behind those that are bound."""
    broker.declare_queue("e", slots=ROOM, when_full=when_full)
    broker.bind("x", "e")


def full_queue(publication: Publication) -> str:
    """That for which it waits."""
    with pytest.raises(QueueFull):
        publication.try_now()
    return str(ffi.string(lib.sb_queue_name(publication.full_queue())).decode())


def test_without_a_wait_when_the_only_binding_goes_just_before_noting(
    x: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abd":
        x.unbind("x", name)
    just_before(monkeypatch, "_note_lacking", lambda: x.unbind("x", "c"))
    assert Publication(x.exchange("x"), b"x").try_now() == 0


def test_without_a_wait_when_the_full_queue_is_the_last_and_goes(
    x: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is full by now."""
    x.unbind("x", "d")
    just_after_noting(monkeypatch, lambda: x.unbind("x", "c"))
    assert Publication(x.exchange("x"), b"x").try_now() == 2


@pytest.mark.parametrize(("when_full", "before"), [("fail", 0), ("drop-oldest", ROOM)])
def test_without_a_wait_when_another_takes_the_place_of_the_full_queue(
    x: Broker, monkeypatch: pytest.MonkeyPatch, when_full: WhenFull, before: int
) -> None:
    """Else that one would be taken for it: no publish would wait for a queue that fails, and all
    of them would wait for one that drops its oldest message when the next comes."""
    x.unbind("x", "d")
    bind_another(x, when_full)
    x.queue("e").publish_many([b"before"] * before)
    just_after_noting(monkeypatch, lambda: x.unbind("x", "c"))
    assert Publication(x.exchange("x"), b"x").try_now() == 3
    assert has(x) == {"a": 1, "b": 1, "c": 0, "d": 0}
    assert b"x" in [each.body for each in x.queue("e").browse()]


def test_it_waits_for_the_full_queue_when_one_before_goes(
    x: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    just_after_noting(monkeypatch, lambda: x.unbind("x", "a"))
    assert full_queue(Publication(x.exchange("x"), b"x")) == "c"


def test_it_waits_for_the_full_queue_when_one_before_comes(
    x: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    x.unbind("x", "a")
    just_after_noting(monkeypatch, lambda: x.bind("x", "a"))  # in the row that was free
    assert full_queue(Publication(x.exchange("x"), b"x")) == "c"


@pytest.mark.usefixtures("changing")
def test_it_waits_for_the_full_queue_whatever_else_changes_meanwhile(x: Broker) -> None:
    assert full_queue(Publication(x.exchange("x"), b"x")) == "c"


def published(vhost: str) -> int:
    async def session() -> int:
        async with aio.connect(f"shm://{vhost}") as broker:
            exchange = await broker.exchange("x")
            return await exchange.publish(b"x", timeout=PATIENCE)

    return asyncio.run(session())


def test_asyncio_when_the_only_binding_goes(
    x: Broker, vhost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abd":
        x.unbind("x", name)
    just_before(monkeypatch, "_note_lacking", lambda: x.unbind("x", "c"))
    assert published(vhost) == 0


def test_asyncio_when_one_that_fails_takes_the_place_of_the_full_queue(
    x: Broker, vhost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x.unbind("x", "d")
    bind_another(x, "fail")
    just_after_noting(monkeypatch, lambda: x.unbind("x", "c"))
    assert published(vhost) == 3


def test_asyncio_when_one_that_fails_takes_the_place_because_one_before_goes(
    x: Broker, vhost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x.unbind("x", "d")
    bind_another(x, "fail")

    def change() -> None:
        x.unbind("x", "a")
        x.queue("c").purge()

    just_after_noting(monkeypatch, change)
    assert published(vhost) == 3


def test_asyncio_fails_for_a_full_queue_that_fails(x: Broker, vhost: str) -> None:
    """As it is, however often it tries."""
    x.unbind("x", "c")
    bind_another(x, "fail")
    x.queue("e").publish_many([b"before"] * ROOM)
    with pytest.raises(QueueFull):
        published(vhost)
