"""Selectors of consumers elsewhere: what goes to them when it is published, and what later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from shmbroker import Broker, Empty, Queue
from shmbroker.netbridge.cluster.advert import SELECTORS_MAX
from shmbroker.netbridge.cluster.balancing import Member
from shmbroker.netbridge.clustered.balancing import programs_of
from tests.cli.command import Shell
from tests.netbridge.clustered.conftest import Cluster
from tests.netbridge.clustered.test_balancing import consumes, on_their_way, shares
from tests.netbridge.clustered.test_redistribution import at, numbers, started
from tests.support.until import until

GIVES = {"durable": True, "redistribution_delay": 0}


@contextmanager
def both(cluster: Cluster, mode: str) -> Iterator[tuple[Broker, Broker]]:
    started(cluster, "east", "west", mode=mode)
    with at(cluster, "east") as east, at(cluster, "west") as west:
        yield east, west


def selects(queue: Queue, selector: str) -> None:
    """It consumes with this from now on."""
    with pytest.raises(Empty):
        queue.select(selector, timeout=0)


def seen(cluster: Cluster, where: str, whose: str, queue: str, *selectors: str) -> None:
    """This one knows of consumers of that one with these selectors."""

    def holds() -> bool:
        told = cluster.copied(where, lambda _: True)
        return any(
            (row["queue"], row["name"]) == (queue, whose) and row["consumed"]
            and row["selectors"] == sorted(selectors)
            for row in told["queues"]
        )  # fmt: skip

    until(holds)


def bodies(queue: Queue) -> list[bytes]:
    return [each.body for each in queue.browse()]


@pytest.mark.parametrize("filters", ["ignore", "match"])
def test_what_waits_for_a_selector_elsewhere(cluster: Cluster, filters: str) -> None:
    """A message with 10 waits where a consumer selects 5, and then one elsewhere selects 10."""
    with ExitStack() as opened:
        east, west = opened.enter_context(both(cluster, "on-demand"))
        here = east.declare_queue("orders", redistribution_filters=filters, **GIVES)
        with at(cluster, "east") as consumer:
            selects(consumer.queue("orders"), "myCorrelID = 5")
            for number in (10, 5, 7, 10):
                here.publish(b"%d" % number, properties={"myCorrelID": number})
            there = west.declare_queue("orders", durable=True)
            selects(there, "myCorrelID = 10")
            seen(cluster, "east", "west", "orders", "myCorrelID = 10")
            if filters == "match":
                until(lambda: bodies(there) == [b"10", b"10"])
                assert bodies(here) == [b"5", b"7"]
            else:
                # what is published from now on goes there
                until(lambda: _goes_there(here, there))
                until(lambda: on_their_way(east) == 0)
                assert bodies(here)[:4] == [b"10", b"5", b"7", b"10"]
            # neither takes it: it stays, and so does what only the one here takes
            for number in (7, 5):
                here.publish(b"%d" % number, properties={"myCorrelID": number})
            assert bodies(here)[-2:] == [b"7", b"5"]
            shell = Shell(cluster.vhosts["east"])
            whose = f"queue 'orders' of vhost {shell.vhost!r}"
            [note] = [each for each in shell("doctor", "--json").json if each["subject"] == whose]
            assert "that no selector of its consumers matches" in note["problem"]
            assert ("redistribution_filters=match" in note["remedy"]) == (filters == "ignore")
            listed = shell("cluster", "queues", str(cluster["east"].folder)).out
            assert "myCorrelID = 5" in listed
            assert "myCorrelID = 10" in listed
        # the consumer here has left: what the other one takes goes, all else stays
        until(lambda: b"10" not in bodies(here))
        assert set(bodies(here)) == {b"5", b"7"}
        assert set(bodies(there)) == {b"10"}


def _goes_there(here: Queue, there: Queue) -> bool:
    before = len(bodies(there))
    here.publish(b"10", properties={"myCorrelID": 10})
    until(lambda: on_their_way(here._broker) == 0)
    return len(bodies(there)) > before


def test_what_is_published_goes_to_nodes_whose_consumers_take_it(cluster: Cluster) -> None:
    started(cluster, "east", "west", "north", mode="on-demand")
    with at(cluster, "east") as east, at(cluster, "west") as west, at(cluster, "north") as north:
        here, *there = (each.declare_queue("q", durable=True) for each in (east, west, north))
        selects(there[0], "n < 10 OR n = 50")
        selects(there[1], "n > 20")
        seen(cluster, "east", "west", "q", "n < 10 OR n = 50")
        seen(cluster, "east", "north", "q", "n > 20")

        def published() -> bool:
            """Once the set is as it is to be."""
            for each in (here, *there):
                each.purge()
            for number in range(30):
                here.publish(b"%d" % number, properties={"n": number})
            until(lambda: on_their_way(east) == 0)
            return bodies(there[0]) == numbers(0, 10)

        until(published)
        assert bodies(there[1]) == numbers(21, 30)
        assert bodies(here) == numbers(10, 21)
        for _ in range(10):
            here.publish(b"both", properties={"n": 50})
        until(lambda: on_their_way(east) == 0)
        assert [bodies(each).count(b"both") for each in (here, *there)] == [0, 5, 5]
        consumes(there[1])  # one that takes everything as well
        seen(cluster, "east", "north", "q")

        def all_there() -> bool:
            here.publish(b"any", properties={"n": 15})
            until(lambda: on_their_way(east) == 0)
            return b"any" in bodies(there[1])

        until(all_there)


def test_they_go_in_order_and_once_though_others_wait_between_them(cluster: Cluster) -> None:
    with ExitStack() as opened:
        east, west = opened.enter_context(both(cluster, "off-with-redistribution"))
        here = east.declare_queue("orders", slots=2048, **GIVES)
        there = west.declare_queue("orders", slots=2048, durable=True, max_deliveries=None)
        for number in range(900):
            here.publish(b"%d" % number, properties={"n": number % 3})
        selects(there, "n = 1")
        until(lambda: len(there) >= 50)
        cluster["east"].kill()
        cluster["east"].start().becomes("live")
        wanted = [b"%d" % each for each in range(1, 900, 3)]
        until(lambda: len(bodies(there)) >= 300)
        assert bodies(there) == wanted
        assert bodies(here) == [b"%d" % each for each in range(900) if each % 3 != 1]
        here.publish(b"900", properties={"n": 1})
        until(lambda: len(bodies(there)) == 301)
        assert bodies(there) == [*wanted, b"900"]


def test_an_exchange_whose_queue_is_only_elsewhere(cluster: Cluster) -> None:
    """Its stand-in has turns as well; what none of them takes goes to the first."""
    started(cluster, "east", "west", "north", mode="on-demand")
    with at(cluster, "east") as east, at(cluster, "west") as west, at(cluster, "north") as north:
        there = []
        for broker, selector in ((west, "n < 10"), (north, "n > 20")):
            broker.declare_exchange("news", "fanout")
            there.append(broker.declare_queue("q", durable=True))
            selects(there[-1], selector)
        west.bind("news", "q")
        news = east.declare_exchange("news", "fanout")
        for name in ("west", "north"):
            selector = "n < 10" if name == "west" else "n > 20"
            seen(cluster, "east", name, "q", selector)

        def published() -> bool:
            for each in there:
                each.purge()
            for number in range(30):
                if not news.publish(b"%d" % number, properties={"n": number}):
                    return False  # its binding there is not known yet
            until(lambda: sum(len(bodies(each)) for each in there) >= 30)
            found = sorted(int(body) for each in there for body in bodies(each))
            return found == list(range(30)) and bodies(there[1])[-9:] == numbers(21, 30)

        until(published)
        assert set(numbers(0, 10)) <= set(bodies(there[0]))
        assert set(numbers(21, 30)) <= set(bodies(there[1]))
        for each in there:
            each.purge()
        with east.transaction() as tx:  # this comes to the stand-in, and is passed on
            for number in range(30):
                tx.publish(news, b"%d" % number, properties={"n": number})
        until(lambda: sum(len(bodies(each)) for each in there) >= 30)
        assert set(numbers(0, 10)) <= set(bodies(there[0]))
        assert set(numbers(21, 30)) <= set(bodies(there[1]))
        assert sorted(int(body) for each in there for body in bodies(each)) == list(range(30))


def test_with_match_what_a_selector_here_takes_stays(cluster: Cluster) -> None:
    with ExitStack() as opened:
        east, west = opened.enter_context(both(cluster, "off-with-redistribution"))
        here = east.declare_queue("orders", redistribution_filters="match", **GIVES)
        selects(here, "n = 5")
        for number in (5, 6, 5, 2, 7):
            here.publish(b"%d" % number, properties={"n": number})
        there = west.declare_queue("orders", durable=True)
        selects(there, "n > 3")
        until(lambda: bodies(there) == [b"6", b"7"])
        assert bodies(here) == [b"5", b"5", b"2"]
        consumes(here)  # what takes anything keeps everything
        seen(cluster, "east", "east", "orders")
        here.publish(b"8", properties={"n": 8})
        with at(cluster, "west") as other:  # by the time that this goes, the 8 would have gone
            west_only = east.declare_queue("bills", **GIVES)
            west_only.publish(b"1")
            consumes(other.declare_queue("bills", durable=True))
            until(lambda: bodies(other.queue("bills")) == [b"1"])
        assert bodies(here)[-1] == b"8"


def test_more_selectors_than_are_told_count_as_everything(cluster: Cluster) -> None:
    with ExitStack() as opened:
        _, west = opened.enter_context(both(cluster, "on-demand"))
        there = west.declare_queue("q")
        half = SELECTORS_MAX // 2 + 1
        first, second = ([f"n = {each + start}" for each in range(half)] for start in (0, half))
        for each in first:
            selects(there, each)
        seen(cluster, "east", "west", "q", *first)
        with at(cluster, "west") as other:
            for each in second:
                selects(other.queue("q"), each)
            seen(cluster, "east", "west", "q")
        seen(cluster, "east", "west", "q", *first)


def test_with_more_selectors_than_it_tells_a_node_sends_on_what_none_of_them_matches(
    cluster: Cluster,
) -> None:
    with ExitStack() as opened:
        east, west = opened.enter_context(both(cluster, "on-demand"))
        other = opened.enter_context(at(cluster, "east"))
        queues = {"east": east.declare_queue("q"), "west": west.declare_queue("q")}
        for number in range(SELECTORS_MAX + 1):
            selects((east, other)[number % 2].queue("q"), f"n = {number}")
        for where in ("east", "west"):
            seen(cluster, where, "east", "q")
        consumes(queues["west"])
        until(lambda: shares(east, queues, 10)["west"])  # it knows of the consumer there
        assert shares(east, queues, 10) == {"east": 0, "west": 10}


def test_what_has_no_room_in_a_set_takes_everything() -> None:
    long = " OR ".join(f"n = {number}" for number in range(40))
    few, many = ("n = 1",), tuple(f"({long}) AND m = {each}" for each in range(2))
    east, west, north = (bytes([each]) * 16 for each in range(3))
    eligible, programs = programs_of(
        [Member(east, True, many), Member(west, True, few), Member(north, True)]
    )
    assert eligible == 0b101
    assert len(programs) % 8 == 0
    assert programs[0] == 1  # the member that it is of
    assert programs_of([Member(west, True, few), Member(north, False, few)]) == (
        0, programs_of([Member(west, True, few)])[1]
    )  # fmt: skip
    assert programs_of([Member(west, True, ("n = = 1",)), Member(north, False)]) == (0b01, b"")
