"""What consumers select stands in shared memory, for who wants to know what is taken."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue, aio
from shmbroker.core.layout import PARTICIPANT_LIST, SELECTOR_BYTES_MAX, SELECTORS_OF_QUEUE
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.queue.consuming import Consuming
from shmbroker.ipc.selector.selection import Selection

EVERYTHING: frozenset[str] = frozenset()


def taken(broker: Broker, name: str = "q") -> frozenset[str] | None:
    """None: nobody takes from it."""
    reference = lib.sb_queue_reference(broker.queue(name)._queue)
    return broker._participants.taken([reference]).get(reference)


def selects(queue: Queue, *selectors: str) -> None:
    for each in selectors:
        with suppress(Empty):
            queue.select(each, timeout=0).give_back()


@pytest.fixture
def queue(broker: Broker) -> Queue:
    return broker.declare_queue("q", slots=64)


def test_each_selector_is_told_until_its_connection_ends(broker: Broker, queue: Queue) -> None:
    assert taken(broker) is None
    with shmbroker.connect(f"shm://{broker.vhost}") as other:
        selects(other.queue("q"), "n > 3")
        before = broker._participants.uses_now()
        selects(other.queue("q"), "n > 3", "n = 1")
        assert taken(broker) == {"n > 3", "n = 1"}
        assert broker._participants.uses_now() != before
        before = broker._participants.uses_now()
        selects(other.queue("q"), "n > 3")
        assert broker._participants.uses_now() == before
        selects(queue, "m = 2")
        assert taken(broker) == {"n > 3", "n = 1", "m = 2"}
    assert taken(broker) == {"m = 2"}


def test_who_takes_anything_takes_everything(broker: Broker, queue: Queue) -> None:
    selects(queue, "n > 3")
    with shmbroker.connect(f"shm://{broker.vhost}") as other:
        with pytest.raises(Empty):
            other.queue("q").get(timeout=0)
        assert taken(broker) == EVERYTHING
    assert taken(broker) == {"n > 3"}
    with pytest.raises(Empty):
        queue.get(timeout=0)
    assert taken(broker) == EVERYTHING


def test_a_consumer_tells_before_it_is_seen_to_consume(broker: Broker, queue: Queue) -> None:
    Consuming(queue, 0, False, Selection("n > 3")).begin()  # it has not taken anything yet
    assert taken(broker) == {"n > 3"}
    assert list(queue.consume(selector="n > 3", timeout=0)) == []
    assert taken(broker) == {"n > 3"}

    async def consumes() -> None:
        async with await aio.connect(f"shm://{broker.vhost}") as other:
            queue = await other.queue("q")
            async for _ in queue.consume(selector="n = 1", timeout=0):
                pass
            assert taken(broker) == {"n > 3", "n = 1"}

    asyncio.run(consumes())


def test_what_has_no_place_counts_as_everything(broker: Broker, queue: Queue) -> None:
    most = [f"n = {each}" for each in range(SELECTORS_OF_QUEUE)]
    selects(queue, *most)
    assert taken(broker) == set(most)
    selects(queue, "n = 100")
    assert taken(broker) == EVERYTHING
    long = broker.declare_queue("long")
    text = "n = 1" + " " * (SELECTOR_BYTES_MAX - 5)
    selects(long, text)
    assert taken(broker, "long") == {text}
    selects(long, text + " ")
    assert taken(broker, "long") == EVERYTHING


def test_a_page_that_is_full_and_queues_that_are_deleted(broker: Broker) -> None:
    filler = " " * (SELECTOR_BYTES_MAX - 10)
    names = [f"q{each}" for each in range(8)]
    for name in names:
        selects(broker.declare_queue(name), f"n = 1{filler}")
    found = [taken(broker, name) for name in names]
    assert found == [{f"n = 1{filler}"}] * 7 + [EVERYTHING]
    for name in names[1:5]:
        broker.delete_queue(name, force=True)
    selects(broker.declare_queue("later"), f"n = 2{filler}")
    assert taken(broker, "later") == {f"n = 2{filler}"}
    assert taken(broker, "q0") == taken(broker, "q6") == {f"n = 1{filler}"}


def test_a_program_without_a_text_counts_as_everything(broker: Broker, queue: Queue) -> None:
    selection = Selection("n > 3")
    selection.selection.text = ffi.NULL
    with pytest.raises(Empty):
        queue.select(selection, timeout=0)
    assert taken(broker) == EVERYTHING


def test_also_of_a_queue_beyond_the_list_of_a_participant(broker: Broker) -> None:
    for each in range(PARTICIPANT_LIST + 1):
        broker.declare_queue(f"f{each}", slots=8).publish(b"")
    last = broker.declare_queue("last", slots=8)
    selects(last, "n > 3")
    assert taken(broker, "last") == {"n > 3"}
    with pytest.raises(Empty):
        last.get(timeout=0)
    assert taken(broker, "last") == EVERYTHING
