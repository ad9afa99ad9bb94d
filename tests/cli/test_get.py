"""`shmbroker queue get`, and `--selector` of the verbs that show, take, move and copy messages."""

from __future__ import annotations

import pytest

from tests.cli.command import Shell


@pytest.fixture
def orders(shell: Shell) -> Shell:
    """Three messages: n is 1, 2 and 3."""
    shell.does("queue", "declare", "orders")
    for number in "123":
        shell.does("pub", "orders", f"order {number}", "--property", f"n={number}", "--key", "k")
    return shell


def test_get_takes_the_oldest_and_acknowledges_it(orders: Shell) -> None:
    assert orders.does("queue", "get", "orders").lines == ["order 1"]
    assert orders.bodies("orders") == ["order 2", "order 3"]
    taken = orders.does("queue", "get", "orders", "--json").json
    assert (taken["body"], taken["properties"], taken["key"]) == ("order 2", {"n": 2}, "k")
    assert orders.does("queue", "stat", "orders", "--json").json["acked"] == 2


def test_requeue_gives_all_back(orders: Shell) -> None:
    assert orders.does("queue", "get", "orders", "--requeue", "--count", "2").lines == [
        "order 1", "order 2",
    ]  # fmt: skip
    browsed = orders.does("queue", "browse", "orders", "--json").json
    assert [(each["body"], each["deliveries"]) for each in browsed] == [
        ("order 1", 1), ("order 2", 1), ("order 3", 0),
    ]  # fmt: skip


def test_get_says_how_many_came(orders: Shell) -> None:
    answer = orders("queue", "get", "orders", "--count", "4")
    assert (answer.code, answer.lines) == (1, ["order 1", "order 2", "order 3"])
    assert "3 of 4 messages came" in answer.said
    empty = orders("queue", "get", "orders", "--timeout", "1ms")
    assert (empty.code, empty.out) == (1, "")


def test_get_selects(orders: Shell) -> None:
    answer = orders.does("queue", "get", "orders", "--selector", "n >= 2", "--count", "2")
    assert answer.lines == ["order 2", "order 3"]
    assert orders.bodies("orders") == ["order 1"]


@pytest.mark.parametrize("verb", [["queue", "browse"], ["browse"]], ids=" ".join)
def test_browse_selects(orders: Shell, verb: list[str]) -> None:
    selected = orders.does(*verb, "orders", "--selector", "n <> 2 AND $key = 'k'", "--json").json
    assert [each["body"] for each in selected] == ["order 1", "order 3"]
    limited = orders.does(*verb, "orders", "--selector", "n > 1", "--count", "1", "--json").json
    assert [each["body"] for each in limited] == ["order 2"]


def test_browse_selects_by_headers(orders: Shell) -> None:
    orders.does("pub", "orders", "late", "--priority", "9", "--ttl", "1h")
    for selector in ("JMSPriority = 9", "JMSExpiration > JMSTimestamp"):
        (found,) = orders.does("browse", "orders", "--selector", selector, "--json").json
        assert found["body"] == "late"


def test_sub_selects(orders: Shell) -> None:
    watching = ["sub", "orders", "--from", "earliest", "--selector", "n > 1", "--count", "2"]
    assert orders.does(*watching).lines == ["order 2", "order 3"]
    orders.does("exchange", "declare", "prices", "fanout")
    audit = ["sub", "--name", "audit", "--exchange", "prices", "--durable"]
    orders(*audit, "--timeout", "1ms")
    for number in "12":
        orders.does("pub", "--exchange", "prices", number, "--property", f"n={number}")
    assert orders.does(*audit, "--selector", "n = 2", "--count", "1").lines == ["2"]
    assert orders.bodies("sub.audit") == ["1"]


def test_move_and_copy_select(orders: Shell) -> None:
    orders.does("queue", "declare", "one", "--slots", "2")
    orders.does("pub", "one", "first")
    orders.does("queue", "declare", "big")
    orders.does("queue", "copy", "orders", "big", "--selector", "n <> 2")
    moved = orders.does("queue", "move", "orders", "one", "--selector", "n = 2")
    assert "1 message moved" in moved.said
    assert orders.bodies("big") == orders.bodies("orders") == ["order 1", "order 3"]
    assert orders.bodies("one") == ["first", "order 2"]


def test_a_wrong_selector_is_a_usage_error(orders: Shell) -> None:
    answer = orders("queue", "get", "orders", "--selector", "n >")
    assert answer.code == 2
    assert "selector, character" in answer.said
    assert "expected" in answer.said
