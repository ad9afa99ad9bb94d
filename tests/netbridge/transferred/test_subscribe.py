"""Mode 1: what is published there comes here, as far as it is bound here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from shmbroker import Broker
from tests.cli.command import Shell
from tests.netbridge.networked.conftest import Brokers, taken
from tests.netbridge.transferred.conftest import (
    add,
    agent_of,
    bound,
    forwarded,
    got,
    subscribed,
)

KINDS: dict[str, dict[str, Any]] = {
    "topic": {"key": "eu.#"},
    "headers": {"arguments": {"land": "de"}, "match": "any"},
    "fanout": {},
    "direct": {"key": "eu.de"},
}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Brokers, Broker, Broker]]:
    with ExitStack() as opened:
        brokers = Brokers(tmp_path_factory.mktemp("two"), opened)
        add(brokers, "far").start().becomes("live")
        given = [{"name": each, "to": "far", "mode": "subscriber"} for each in KINDS]
        add(brokers, "near", *given).start().becomes("live")
        yield brokers, brokers.at("near"), brokers.at("far")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_exchange_and_unbinding(
    two: tuple[Brokers, Broker, Broker], kind: str
) -> None:
    brokers, near, far = two
    binding = KINDS[kind]
    here = bound(near, kind, kind, kind, **binding)
    there = subscribed(brokers, far, kind, 1)
    said: dict[str, Any] = {"key": "eu.de", "properties": {"land": "de", "cups": 2}}
    assert there.publish(b"0", mandatory=True, timeout=60, **said) == 1
    if kind != "fanout":
        assert there.publish(b"1", key="us", properties={"land": "us"}) == 0
    with here.get(timeout=60) as message:
        assert (bytes(message.body), message.key) == (b"0", "eu.de")
        assert message.properties == said["properties"]
        message.ack()
    near.exchange(kind).publish(b"2", **said)
    assert got(here, 1) == [2], "what is published here stays here"
    near.unbind(kind, kind, **binding)
    subscribed(brokers, far, kind, 0)
    assert there.publish(b"3", **said) == 0
    assert got(here, 0) == []


def test_what_an_operator_sees(two: tuple[Brokers, Broker, Broker]) -> None:
    brokers, _, _ = two
    shells = {each: Shell(brokers.vhosts[each]) for each in ("near", "far")}

    def rows() -> dict[str, dict[str, Any]]:
        return {row["exchange"]: row for row in shells["near"]("mta", "list", "--json").json}

    row = brokers.until(rows, lambda those: all(
        those.get(each, {}).get("state") == "up" for each in KINDS
    ))["topic"]  # fmt: skip
    assert (row["mode"], row["plan"]) == ("subscribe", brokers.address("far"))
    assert (row["state"], row["peer"]) == ("up", "far")
    assert brokers.link("near", str(row["name"]))["state"] == "up", "it is a link as others are"
    assert shells["far"]("mta", "list", "--names").out == "", "others make none"


def test_bindings_from_before_and_a_link_that_bounces(brokers: Brokers) -> None:
    add(brokers, "far").start().becomes("live")
    add(brokers, "near", {"name": "quotes", "to": "far", "mode": 0}).start().becomes("live")
    near, far = brokers.at("near"), brokers.at("far")
    here = bound(near, "quotes", "topic", key="eu.#")
    near.bind("quotes", "got", "#.de")
    assert brokers["near"].stop() == 0
    place = brokers["near"].folder / "shmbroker.toml"
    place.write_text(place.read_text().replace("mode = 0", "mode = 1"))
    brokers["near"].start().becomes("live")
    there = subscribed(brokers, far, "quotes", 2)
    there.publish(b"0", key="eu.de")
    assert got(here, 1) == [0], "two bindings take it, and it comes once"
    link = agent_of(brokers, "quotes", "far", "subscribe")
    brokers.order("near", "stop", link)
    subscribed(brokers, far, "quotes", 0)
    assert there.publish(b"1", key="eu.de") == 0, "nobody is there for it"
    near.unbind("quotes", "got", key="#.de")
    near.bind("quotes", "got", "us.#")
    brokers.order("near", "start", link)
    subscribed(brokers, far, "quotes", 2)
    assert there.publish(b"2", key="jp.de") == 0
    assert there.publish(b"3", key="us.ny") == 1
    assert got(here, 1) == [3]
    assert len([each for each in far.queues() if each.name.startswith("$mta:")]) == 1
    far.delete_exchange("quotes", force=True)
    brokers.until(lambda: [each.name for each in far.exchanges()], lambda found: "quotes" in found)
    assert subscribed(brokers, far, "quotes", 2).publish(b"4", key="us.ny") == 1
    assert got(here, 1) == [4], "it is bound again when the exchange was made anew"


@pytest.mark.parametrize("victim", ["near", "far"])
def test_none_comes_twice_and_it_goes_on_when_one_was_killed(brokers: Brokers, victim: str) -> None:
    add(brokers, "far").start().becomes("live")
    add(brokers, "near", {"name": "quotes", "to": "far", "mode": 1}).start().becomes("live")
    near, far = brokers.at("near"), brokers.at("far")
    here = bound(near, "quotes", "topic", key="#")
    there = subscribed(brokers, far, "quotes", 1)
    for each in range(300):
        there.publish(b"%d" % each, key="k", timeout=60)
    found = taken(here, 10)
    brokers[victim].kill()
    brokers[victim].start().becomes("live")
    numbers = itertools.count(1000)

    def more() -> list[int]:
        there.publish(b"%d" % next(numbers), key="k", timeout=60)
        found.extend(taken(here, 1000, patience=0.2))
        return found

    brokers.until(more, lambda those: those[-1] >= 1000)
    found += taken(here, 1000, patience=1.0)
    assert found == sorted(set(found)), "each once, in order"
    assert got(here, 0) == []


def test_both_modes_to_one_broker_and_back_give_one_copy_each(brokers: Brokers) -> None:
    add(brokers, "far").start().becomes("live")
    given = [{"name": "trade", "to": "far", "mode": mode} for mode in (1, 2)]
    add(brokers, "near", *given).start().becomes("live")
    near, far = brokers.at("near"), brokers.at("far")
    queues = [bound(each, "trade", "topic", key="#") for each in (near, far)]
    forwarded(brokers, near, "trade")
    subscribed(brokers, far, "trade", 1)
    for name in ("subscribe", "forward-all"):
        brokers.becomes("near", "up", agent_of(brokers, "trade", "far", name))
    near.exchange("trade").publish(b"0", key="k")
    far.exchange("trade").publish(b"1", key="k")
    for queue in queues:
        assert sorted(got(queue, 2)) == [0, 1]


def test_what_a_broker_before_had_of_agents_is_dropped(brokers: Brokers) -> None:
    add(brokers, "far").start().becomes("live")
    add(brokers, "near", {"name": "quotes", "to": "far", "mode": 1}).start().becomes("live")
    near, far = brokers.at("near"), brokers.at("far")
    bound(near, "quotes", "topic", key="#")
    there = subscribed(brokers, far, "quotes", 1)
    for each in ("far", "near"):
        brokers[each].kill()
    assert there.publish(b"0", key="k") == 1, "nobody has told that the agent is gone"
    brokers["far"].start().becomes("live")
    subscribed(brokers, far, "quotes", 0)
    assert not any(each.name.startswith("$mta:") for each in far.queues())
