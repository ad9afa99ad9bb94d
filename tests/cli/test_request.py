"""`shmbroker request`, `sub --name`, `subscription`, `divert` and `queue copy`."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable

import pytest

import shmbroker
from tests.cli.command import Shell, eventually, line_of


def test_request(shell: Shell) -> None:
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        asked = broker.declare_queue("asked", slots=8)

        def serve() -> None:
            for _ in range(2):
                with asked.get(timeout=60) as message:
                    message.reply(message.body.upper(), properties={"of": message.key})

        thread = threading.Thread(target=serve)
        thread.start()
        assert shell.does("request", "asked", "one", "--timeout", "30s").out == "ONE\n"
        reply = shell.does("request", "asked", "two", "--key", "k", "--json").json
        assert (reply["body"], reply["properties"]) == ("TWO", {"of": "k"})
        thread.join()


def test_no_reply_ends_with_1(shell: Shell) -> None:
    shell.does("queue", "declare", "asked")
    answer = shell("request", "asked", "?", "--timeout", "10ms")
    assert (answer.code, answer.out) == (1, "")
    assert "no reply came in time" in answer.said
    assert shell.does("queue", "list", "--names").lines == ["asked"]


def test_a_request_without_a_reply_is_taken_back(shell: Shell) -> None:
    shell.does("queue", "declare", "asked")
    shell.does("pub", "asked", "of somebody else")
    answer = shell("request", "asked", "?", "--timeout", "10ms")
    assert "it was taken back from queue 'asked'" in answer.said
    assert shell.bodies("asked") == ["of somebody else"]


def test_a_request_that_somebody_has_taken_stays_with_him(shell: Shell) -> None:
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        asked = broker.declare_queue("asked")
        thread = threading.Thread(target=lambda: taken.append(asked.get(timeout=60)))
        taken: list[shmbroker.Message] = []
        thread.start()
        answer = shell("request", "asked", "?", "--timeout", "1s")
        thread.join()
        assert answer.code == 1
        assert "somebody has taken the request" in answer.said
        taken[0].ack()


@pytest.fixture
def prices(shell: Shell) -> Shell:
    shell.does("exchange", "declare", "prices", "topic")
    return shell


AUDIT = ["sub", "--name", "audit", "--exchange", "prices", "--key", "eu.#", "--durable"]


def test_sub_by_name_collects_and_consumes(prices: Shell) -> None:
    prices("sub", *AUDIT[1:], "--timeout", "1ms")
    for key in ("eu.de", "us.ny", "eu.fr"):
        prices.does("pub", "--exchange", "prices", "--key", key, key)
    (listed,) = prices.does("subscription", "list", "--json").json
    assert listed == {
        "name": "audit", "queue": "sub.audit", "exchange": "prices", "key": "eu.#",
        "durable": True, "shared": False, "consumer": None, "depth": 2,
    }  # fmt: skip
    assert prices.does("subscription", "list").lines[0].split() == [
        "NAME", "EXCHANGE", "KEY", "DURABLE", "SHARED", "CONSUMER", "DEPTH",
    ]  # fmt: skip
    assert prices.does(*AUDIT, "--count", "2").lines == ["eu.de", "eu.fr"]
    short = prices(*AUDIT, "--count", "1", "--timeout", "1ms")
    assert short.code == 1
    assert "0 of 1 message came" in short.said


def test_a_second_one_is_refused_and_removing_needs_force(
    prices: Shell, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    watching = start(*AUDIT, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert b"subscribed" in line_of(watching.stderr)
    answer = prices(*AUDIT, "--timeout", "1ms")
    assert answer.code == 1
    assert "has a consumer" in answer.said
    assert prices("subscription", "remove", "audit", "--yes").code == 1
    watching.kill()
    watching.wait()
    eventually(lambda: prices("subscription", "remove", "audit", "--yes").code == 0)
    assert prices.does("subscription", "list", "--names").lines == []
    missing = prices("subscription", "remove", "audit", "--yes")
    assert "there is no subscription 'audit'" in missing.said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sub"], "--name and --exchange"),
        (["sub", "--name", "audit"], "--name goes with --exchange"),
        (["sub", "q", "--name", "audit", "--exchange", "prices"], "without a queue"),
        (["sub", "q", "--durable"], "go with --name"),
        (["queue", "copy", "a", "a"], "itself"),
        (["request", "q"], "Missing argument 'BODY'"),
    ],
)
def test_wrong_usage(prices: Shell, arguments: list[str], says: str) -> None:
    answer = prices(*arguments)
    assert answer.code == 2
    assert says in answer.said


def test_divert(prices: Shell) -> None:
    prices.does("exchange", "declare", "audit", "fanout")
    for name in ("prices", "audit"):
        prices.does("queue", "declare", name)
        prices.does("bind", name, name, "--key", "#")
    prices.does("divert", "prices", "audit", "--key", "eu.#", "--exclusive")
    prices.does("pub", "--exchange", "prices", "--key", "eu.de", "1")
    assert (prices.bodies("prices"), prices.bodies("audit")) == ([], ["1"])
    lines = prices.does("exchange", "bindings", "prices").lines
    assert "prices    exchange://audit  eu.#  -          exclusive" in lines
    prices.does("undivert", "prices", "audit", "--key", "eu.#")
    prices.does("pub", "--exchange", "prices", "--key", "eu.de", "2")
    assert (prices.bodies("prices"), prices.bodies("audit")) == (["2"], ["1"])
    assert "Did you mean 'prices'" in prices("divert", "price", "audit").said


def test_copy(shell: Shell) -> None:
    shell.does("queue", "declare", "orders")
    shell.does("queue", "declare", "small", "--slots", "2")
    shell.does("pub", "orders", "--lines", stdin=b"a\nb\nc\n")
    shell.does("queue", "copy", "orders", "small", "--count", "1")
    answer = shell("queue", "copy", "orders", "small", "--timeout", "1ms")
    assert answer.code == 1
    assert "1 message copied" in answer.said
    assert "'small' is full" in answer.said
    assert (shell.bodies("orders"), shell.bodies("small")) == (["a", "b", "c"], ["a", "a"])


def test_a_copy_that_ends_for_want_of_memory_has_failed(shell: Shell) -> None:
    for name in ("orders", "copies"):
        shell.does("queue", "declare", name)
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        broker.queue("orders").publish_many([bytes(64 << 10)] * 40)  # of an arena of 4 MiB
    answer = shell("queue", "copy", "orders", "copies", "--timeout", "1ms")
    assert answer.code == 1
    copied = shell.does("queue", "stat", "copies", "--json").json["depth"]
    assert 0 < copied < 40
    assert f"{copied} messages copied" in answer.said
    assert "memory for messages" in answer.said
