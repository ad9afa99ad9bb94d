"""What waits where no consumer takes it is told by doctor, and what would free it."""

from __future__ import annotations

from contextlib import suppress

import pytest

from shmbroker import Broker, Empty
from shmbroker.ipc.request.return_address import say_node
from shmbroker.netbridge.clustered.unselected import Unselected, findings, of_vhost
from tests.cli.command import Shell

BOTH = ("redistribution_delay=5s", "redistribution_filters=match")


def selects(broker: Broker, name: str, *selectors: str) -> None:
    for each in selectors:
        with suppress(Empty):
            broker.queue(name).select(each, timeout=0).give_back()


def test_what_no_selector_matches(broker: Broker) -> None:
    for name in ("orders", "taken", "idle", "empty"):
        queue = broker.declare_queue(name)
        if name != "empty":
            for number in range(4):
                queue.publish(b"", properties={"n": number}, key="k", priority=7, ttl=60)
        if name != "idle":
            selects(broker, name, "n < 2", "$key = 'l' OR JMSPriority < 7", "JMSExpiration IS NULL")
    selects(broker, "taken", "n > 1 AND $key = 'k' AND $size = 0")
    assert list(of_vhost(broker)) == [
        Unselected(
            "orders", 2, ("$key = 'l' OR JMSPriority < 7", "JMSExpiration IS NULL", "n < 2"), BOTH
        )
    ]
    [note] = findings(broker)
    assert note.severity == "note"
    assert note.problem == "2 messages wait that no selector of its consumers matches"
    assert "redistribution" not in note.remedy
    [told] = [each for each in Shell(broker.vhost)("doctor", "--json").json
              if each["subject"] == f"queue 'orders' of vhost {broker.vhost!r}"]  # fmt: skip
    assert told["problem"] == note.problem
    with pytest.raises(Empty):  # who takes anything
        while True:
            broker.queue("orders").get(timeout=0).give_back()
            broker.queue("orders").purge()
    assert list(of_vhost(broker)) == []


def test_in_a_cluster_the_settings_that_lack(broker: Broker, other: Broker) -> None:
    say_node(broker, "town", b"n" * 16)
    settings = {"redistribution_delay": 1.0, "redistribution_filters": "match"}
    for name, more in (("a", {}), ("b", settings), ("c", settings)):
        broker.declare_queue(name, **more).publish(b"", properties={"n": 1})  # type: ignore[arg-type]
    broker.declare_queue("e", **settings).publish(b"", properties={"n": 1})  # type: ignore[arg-type]
    for name in ("a", "b"):
        selects(broker, name, "n = 2")
    for program in (broker, other):
        selects(program, "e", *(f"n = {id(program)} + {number}" for number in range(5)))
    broker.declare_queue("d").publish(b"")
    found = {each.queue: each for each in of_vhost(broker)}
    assert {name: each.lacks for name, each in found.items()} == {
        "a": BOTH, "b": (), "c": (), "d": BOTH[:1], "e": (),
    }  # fmt: skip
    remedies = {each.subject[7:8]: each.remedy for each in findings(broker)}
    assert "redistribution_delay=5s and redistribution_filters=match: then they go" in remedies["a"]
    assert remedies["b"].startswith("they go to a node with a consumer that takes them")
    assert "redistribution_delay=5s: then" in remedies["d"]
    assert remedies["e"].endswith("more than 8 selectors of a queue keeps them")
    assert found["d"].problem == "1 message waits, and nobody takes from it"
