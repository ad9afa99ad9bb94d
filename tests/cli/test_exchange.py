"""`shmbroker exchange`, `bind`, `unbind`, and publishing through them."""

from __future__ import annotations

import pytest

import shmbroker
from tests.cli.command import Shell


@pytest.fixture
def prices(shell: Shell) -> Shell:
    shell.does("exchange", "declare", "prices", "topic")
    shell.does("queue", "declare", "orders")
    return shell


def declared(shell: Shell) -> dict[str, dict[str, object]]:
    """All but those that every vhost may have from its beginning."""
    return {e["name"]: e for e in shell.does("exchange", "list", "--json").json}


def test_declare_and_list(prices: Shell) -> None:
    prices.does("exchange", "declare", "more", "direct", "--alternate", "prices")
    found = declared(prices)
    assert found["prices"] == {
        "name": "prices", "kind": "topic", "alternate": None, "bindings": 0, "replicate": "none"
    }  # fmt: skip
    assert found["more"]["alternate"] == "prices"
    assert {"more", "prices"} <= set(prices.does("exchange", "list", "--names").lines)
    assert prices.does("exchange", "list").lines[0].split() == [
        "NAME", "KIND", "ALTERNATE", "BINDINGS", "REPLICATE",
    ]  # fmt: skip


def test_declaring_differently_is_told(prices: Shell) -> None:
    prices.does("exchange", "declare", "prices", "topic")
    answer = prices("exchange", "declare", "prices", "fanout")
    assert answer.code == 1
    assert "prices" in answer.said


def test_bind_publish_unbind(prices: Shell) -> None:
    prices.does("bind", "prices", "orders", "--key", "eu.#")
    assert declared(prices)["prices"]["bindings"] == 1
    (binding,) = prices.does("exchange", "bindings", "prices", "--json").json
    assert binding == {
        "exchange": "prices",
        "destination": "orders",
        "to": "queue",
        "key": "eu.#",
        "arguments": {},
        "match": "all",
        "exclusive": False,
    }
    assert "queue://orders" in prices.does("exchange", "bindings").out
    prices.does("pub", "--exchange", "prices", "--key", "eu.de.fx", "1.08")
    nobody = prices.does("pub", "--exchange", "prices", "--key", "us.fx", "1.09")
    assert "no binding" in nobody.said
    assert prices("pub", "--exchange", "prices", "--key", "us.fx", "--mandatory", "1").code == 1
    assert prices.bodies("orders") == ["1.08"]
    prices.does("unbind", "prices", "orders", "--key", "eu.#")
    prices.does("pub", "--exchange", "prices", "--key", "eu.de.fx", "1.10")
    assert prices.bodies("orders") == ["1.08"]


def test_immediate_is_for_queues_with_a_consumer(prices: Shell) -> None:
    words = ["pub", "--exchange", "prices", "--key", "eu.de", "--immediate", "1.08"]
    prices.does("bind", "prices", "orders", "--key", "eu.#")
    nobody = prices(*words)
    assert nobody.code == 1
    assert "no queue with a consumer" in nobody.said
    assert prices.bodies("orders") == []
    with shmbroker.connect(f"shm://{prices.vhost}") as broker:
        with pytest.raises(shmbroker.Empty):
            broker.queue("orders").get(timeout=0)  # from now on it is a consumer
        prices.does(*words)
        assert prices.bodies("orders") == ["1.08"]
    assert prices("pub", "orders", "--immediate", "1.09").code == 2


def test_arguments_of_a_headers_exchange(prices: Shell) -> None:
    prices.does("exchange", "declare", "kinds", "headers")
    arguments = ["--argument", "kind=invoice", "--argument", "year=2026"]
    prices.does("bind", "kinds", "orders", *arguments, "--match", "any")
    (binding,) = prices.does("exchange", "bindings", "kinds", "--json").json
    assert binding["arguments"] == {"kind": "invoice", "year": 2026}
    assert binding["match"] == "any"
    prices.does("pub", "--exchange", "kinds", "--property", "year=2026", "yes")
    prices.does("pub", "--exchange", "kinds", "--property", "year='2026'", "no")
    assert prices.bodies("orders") == ["yes"]
    prices.does("unbind", "kinds", "orders", *arguments, "--match", "any")
    assert prices.does("exchange", "bindings", "kinds", "--json").json == []


def test_an_exchange_that_goes_to_an_exchange(prices: Shell) -> None:
    prices.does("exchange", "declare", "all", "fanout")
    prices.does("bind", "prices", "all", "--key", "#", "--to-exchange")
    prices.does("bind", "all", "orders")
    prices.does("pub", "--exchange", "prices", "--key", "x", "through two")
    assert prices.bodies("orders") == ["through two"]


def test_an_exchange_in_use_is_deleted_by_force_only(prices: Shell) -> None:
    prices.does("bind", "prices", "orders", "--key", "eu.#")
    answer = prices("exchange", "delete", "prices", "--yes")
    assert answer.code == 1
    assert "prices" in answer.said
    prices.does("exchange", "delete", "prices", "--yes", "--force")
    assert "prices" not in declared(prices)


def test_unbinding_what_is_not_bound_is_told(prices: Shell) -> None:
    assert prices("unbind", "prices", "orders", "--key", "eu.#").code == 1
