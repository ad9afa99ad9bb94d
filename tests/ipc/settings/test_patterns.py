"""Settings by pattern: which one a queue gets, and that a death in the middle breaks none."""

from __future__ import annotations

import asyncio
import mmap
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, DeclaredDifferently, InvalidArgument, NotFound, TooMany, aio
from shmbroker.core import layout as at
from tests.conftest import SHM
from tests.support.killed import KILLS
from tests.support.victim import Confirm, dying


def given(broker: Broker, queue: str, setting: str) -> tuple[object, str]:
    explained = broker.queue(queue).explain()[setting]
    return explained.value, explained.source


def test_a_queue_that_matches_gets_what_it_does_not_name(broker: Broker) -> None:
    broker.settings("orders.#", max_deliveries=3, ttl=60)
    broker.declare_queue("orders.eu", ttl=5)
    broker.declare_queue("prices.eu")
    assert given(broker, "orders.eu", "max_deliveries") == (3, "pattern 'orders.#'")
    assert given(broker, "orders.eu", "ttl") == (5, "declared")
    assert given(broker, "orders.eu", "when_full") == ("block", "default")
    assert given(broker, "prices.eu", "max_deliveries") == (10, "default")


def test_and_it_behaves_so(broker: Broker) -> None:
    broker.settings("#", max_deliveries=1, dead_letter="dead", max_messages=2, when_full="fail")
    orders = broker.declare_queue("orders")
    orders.publish(b"x")
    orders.get_nowait().give_back()
    assert [letter.body for letter in broker.queue("dead").browse()] == [b"x"]
    orders.publish_many([b"a", b"b"])
    with pytest.raises(shmbroker.QueueFull):
        orders.publish(b"c")


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ("#", "orders.eu.de"),
        ("orders.eu.*", "orders.eu.de"),
        ("orders.#", "orders.*.de"),
        ("orders.#", "orders.*.*"),
        ("*.*.de", "orders.eu.#"),
        ("#", "*.#"),
        ("#.#", "#"),
        ("#.*.*.*", "*.*.*"),
        ("*.eu.#", "#.eu.de"),
        ("#.orders.eu.de", "orders.eu.de"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_most_specific_wins(broker: Broker, weaker: str, stronger: str, turned: bool) -> None:
    for pattern in (stronger, weaker) if turned else (weaker, stronger):
        broker.settings(pattern, max_deliveries=2 if pattern == stronger else 9)
    broker.declare_queue("orders.eu.de")
    assert given(broker, "orders.eu.de", "max_deliveries") == (2, f"pattern {stronger!r}")


def test_per_setting(broker: Broker) -> None:
    broker.settings("#", max_deliveries=9, ttl=60)
    broker.settings("orders.#", max_deliveries=3)
    broker.settings("orders.eu", max_deliveries=None)
    broker.declare_queue("orders.eu")
    assert given(broker, "orders.eu", "max_deliveries") == (None, "pattern 'orders.eu'")
    assert given(broker, "orders.eu", "ttl") == (60, "pattern '#'")


def test_none_that_is_declared_wins_over_a_pattern(broker: Broker) -> None:
    broker.settings("#", dead_letter="dead", when_full="fail")
    orders = broker.declare_queue("orders", slots=2, dead_letter=None, when_full="block")
    assert given(broker, "orders", "dead_letter") == (None, "declared")
    assert [queue.name for queue in broker.queues()] == ["orders"]
    orders.publish_many([b"a", b"b"])
    with pytest.raises(shmbroker.QueueFull):
        orders.publish(b"c", timeout=0.01)


def test_queues_that_are_there_keep_what_they_have(broker: Broker) -> None:
    broker.declare_queue("orders", ttl=5)
    broker.settings("orders", max_deliveries=3, ttl=7)
    broker.declare_queue("orders", ttl=5)  # the same queue, although a pattern was added
    assert given(broker, "orders", "max_deliveries") == (10, "default")
    broker.declare_queue("orders")
    with pytest.raises(DeclaredDifferently, match="ttl is 5 s, not 7 s"):
        broker.declare_queue("orders", ttl=7)
    broker.delete_queue("orders")
    broker.declare_queue("orders")
    broker.declare_queue("orders", ttl=7)  # what it has, said aloud
    broker.remove_settings("orders")
    broker.declare_queue("orders")
    assert given(broker, "orders", "ttl") == (7, "pattern 'orders'")


def test_a_declared_none_is_the_same_none_again(broker: Broker) -> None:
    none: dict[str, Any] = {"redelivery_multiplier": None, "max_scheduled": None}
    for _ in range(2):
        broker.declare_queue("orders", **none)
    broker.declare_queue("orders", redelivery_multiplier=1.0)  # which it is
    with pytest.raises(DeclaredDifferently, match="redelivery_multiplier is 1, not 2"):
        broker.declare_queue("orders", redelivery_multiplier=2.0)
    broker.declare_queue("other", max_scheduled=5)
    with pytest.raises(DeclaredDifferently, match="max_scheduled is 5, not"):
        broker.declare_queue("other", **none)


def test_where_messages_go_elsewhere_holds_for_queues_that_are_there(broker: Broker) -> None:
    broker.declare_queue("orders.eu")
    broker.declare_queue("orders.us", redistribution_delay=9)
    broker.settings("orders.#", redistribution_delay=5, redistribution_filters="match", ttl=7)
    assert given(broker, "orders.eu", "redistribution_delay") == (5, "pattern 'orders.#'")
    assert given(broker, "orders.us", "redistribution_delay") == (9, "declared")
    assert given(broker, "orders.us", "redistribution_filters") == ("match", "pattern 'orders.#'")
    assert given(broker, "orders.eu", "ttl") == (None, "default")
    broker.settings("orders.eu", redistribution_delay=None)
    assert given(broker, "orders.eu", "redistribution_delay") == (None, "pattern 'orders.eu'")
    broker.declare_queue("orders.fr")
    broker.remove_settings("orders.#")
    assert given(broker, "orders.fr", "redistribution_delay") == (None, "default")


@pytest.mark.parametrize("seed", range(20))
def test_they_come_from_the_pattern_that_a_declaration_takes(broker: Broker, seed: int) -> None:
    random = Random(seed)
    words = ["a", "b", "*", "#"]
    made = {".".join(random.choices(words, k=random.randint(1, 4))) for _ in range(25)}
    for pattern in made:
        broker.settings(pattern, ttl=60, redistribution_delay=5)
    for length in range(1, 5):
        name = ".".join(random.choices("ab", k=length))
        broker.declare_queue(name)
        assert given(broker, name, "ttl")[1] == given(broker, name, "redistribution_delay")[1]


def test_the_dead_letter_queue_of_all_is_not_its_own(broker: Broker) -> None:
    broker.settings("#", dead_letter="dead")
    broker.settings("*", dead_letter="elsewhere")
    broker.declare_queue("elsewhere")
    assert given(broker, "elsewhere", "dead_letter") == ("dead", "pattern '#'")
    assert given(broker, "dead", "dead_letter") == (None, "default")  # made for the others
    broker.delete_queue("dead")
    broker.declare_queue("dead", dead_letter=None)
    broker.delete_queue("elsewhere")
    broker.declare_queue("a.b")
    broker.remove_settings("*")
    broker.delete_queue("dead")
    broker.declare_queue("dead")
    assert given(broker, "dead", "dead_letter") == (None, "default")


def test_a_pattern_is_replaced_as_a_whole(broker: Broker) -> None:
    broker.settings("orders", max_deliveries=3, ttl=7)
    broker.settings("orders", ttl=8)
    (pattern,) = broker.patterns()
    assert (pattern.pattern, pattern.settings) == ("orders", {"ttl": 8})
    broker.settings("another", when_full="fail")
    assert [each.pattern for each in broker.patterns()] == ["another", "orders"]
    broker.remove_settings("orders")
    assert [each.pattern for each in broker.patterns()] == ["another"]
    with pytest.raises(NotFound, match="no settings for the pattern 'orders'"):
        broker.remove_settings("orders")


def test_what_a_pattern_cannot_be(broker: Broker) -> None:
    with pytest.raises(InvalidArgument, match="a queue has no setting 'max_delivery'"):
        broker.settings("#", max_delivery=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="max_deliveries is a number from 0 to 14, not 99"):
        broker.settings("#", max_deliveries=99)
    with pytest.raises(InvalidArgument, match="the name of a pattern is 1 to 255 bytes"):
        broker.settings("", ttl=1)
    with pytest.raises(InvalidArgument, match="a queue has no setting 'auto_create'"):
        broker.declare_queue("orders", auto_create=True)  # type: ignore[call-arg]
    assert broker.patterns() == []


def test_settings_that_do_not_go_together(broker: Broker) -> None:
    broker.settings("#", ttl_max=1)
    with pytest.raises(InvalidArgument, match="ttl_min is longer than ttl_max"):
        broker.declare_queue("orders", ttl_min=2)
    assert broker.queues() == []


def test_asyncio(vhost: str) -> None:
    async def session() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            await broker.settings("orders.*", ttl=4)
            assert [each.settings for each in await broker.patterns()] == [{"ttl": 4}]
            orders = await broker.declare_queue("orders.eu")
            assert (await orders.explain())["ttl"].value == 4
            await broker.remove_settings("orders.*")

    asyncio.run(session())


def test_two_of_one_pattern_that_a_death_left_are_one(broker: Broker, vhost: str) -> None:
    """The new one was live when its maker died: it counts."""
    broker.settings("x", ttl=1)
    broker.settings("orders", ttl=1)
    broker.settings("orders", ttl=2)  # in a third row; the second row is free now
    with (SHM / f"shmbroker.{vhost}.catalog").open("r+b") as file:
        memory = mmap.mmap(file.fileno(), at.CATALOG_BYTES)
        old = int.from_bytes(memory[at.SETTINGS_COLUMN_AT + 8 :][:8], "little")
        new = memory[at.SETTINGS_COLUMN_AT + 16 :][:8]
        hashed = int.from_bytes(new, "little") & at.ROW_HASH_MASK
        revived = (old | at.ROW_LIVE | hashed).to_bytes(8, "little")
        memory[at.SETTINGS_COLUMN_AT + 8 : at.SETTINGS_COLUMN_AT + 16] = revived
        memory[at.CATALOG_CHANGING_AT : at.CATALOG_CHANGING_AT + 8] = (1).to_bytes(8, "little")
        memory.close()
    assert [each.settings for each in broker.patterns()] == [{"ttl": 2}, {"ttl": 1}]
    broker.declare_queue("orders")
    assert given(broker, "orders", "ttl") == (2, "pattern 'orders'")
    broker.remove_settings("orders")
    assert [each.pattern for each in broker.patterns()] == ["x"]


def test_when_there_can_be_no_more_they_can_be_changed(broker: Broker) -> None:
    most = at.SETTINGS_ROWS - 1
    for number in range(most):
        broker.settings(f"q.{number}", ttl=1)
    with pytest.raises(TooMany, match=f"has {most} patterns"):
        broker.settings("more", ttl=1)
    broker.settings("q.7", ttl=2)
    assert broker.declare_queue("q.7").explain()["ttl"].value == 2
    broker.remove_settings("q.8")
    broker.settings("more", ttl=1)


def test_old_or_new_whenever_one_is_killed(broker: Broker, vhost: str, tmp_path: Path) -> None:
    broker.settings("orders", ttl=1, max_messages=1)
    random = Random(9)

    def work(theirs: Broker, confirm: Confirm) -> None:
        for number in range(1, 1 << 20):
            theirs.settings("orders", ttl=number, max_messages=number)
            confirm(number)

    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random) as confirmed:
            for each in broker.patterns():
                assert each.settings["ttl"] == each.settings["max_messages"]
        orders = broker.declare_queue("orders").explain()
        last = max(confirmed, default=0)
        if last:
            assert orders["ttl"].value in (last, last + 1)
        assert orders["ttl"].value == orders["max_messages"].value
        broker.delete_queue("orders")
        assert len(broker.patterns()) == 1


@pytest.mark.parametrize("name", ["$sf.town.0f", "$turns.orders", "$groups"])
def test_the_brokers_own_queues_get_what_is_said_of_them_by_name_only(
    broker: Broker, name: str
) -> None:
    broker.settings("#", ttl=60, max_messages=16, when_full="drop-oldest", groups=True)
    broker.declare_queue(name, max_deliveries=None)
    broker.settings("$#", ttl=5)  # no word of this pattern is a wildcard
    broker.settings(f"{name.split('.')[0]}.#", redistribution_delay=1)
    for setting, found in broker.queue(name).explain().items():
        is_named = setting == "redistribution_delay"
        assert ("pattern" in found.source) == is_named, setting


@pytest.mark.parametrize("makes", ["queue", "subscription"])
def test_what_goes_with_its_owner_is_not_made_durable(broker: Broker, makes: str) -> None:
    broker.settings("#", durable=True, max_messages=16)
    if makes == "queue":
        made = broker.temporary_queue()
    else:
        broker.declare_exchange("prices", "topic")
        broker.subscription("watch", exchange="prices", key="#")
        made = broker.queue("sub.watch")
    assert made.explain()["durable"].value is False
    assert made.explain()["max_messages"].value == 16
    assert broker.declare_queue("other").explain()["durable"].value is True
