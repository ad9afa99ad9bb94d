"""`shmbroker queue`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.paging.pager import Pager
from shmbroker.ipc.sink.sink import Sink
from tests.cli.command import Shell
from tests.support.records import stream

INFO_KEYS = [
    "name", "id", "depth", "slots", "published", "consumers", "producers", "paused", "created_at",
    "critical",
]  # fmt: skip
STATISTICS_KEYS = [
    "name", "depth", "taken", "slots", "paused", "critical", "replicate", "published", "delivered",
    "acked", "redelivered", "expired", "dead_lettered", "set_aside", "dropped", "scheduled",
    "paged", "paged_bytes", "duplicates", "replaced", "carried", "slow_consumers", "bytes",
    "consumers", "recorded", "latency", "gates", "origins",
]  # fmt: skip
SCHEDULED_KEYS = [
    "id", "deliver_at", "key", "properties", "published_at", "body", "body_encoding", "bytes",
    "deliveries",
]  # fmt: skip
MESSAGE_KEYS = [
    "position", "key", "properties", "published_at", "body", "body_encoding", "bytes",
    "deliveries", "taken", "taken_by", "confirmed",
]  # fmt: skip


@pytest.fixture
def orders(shell: Shell) -> Shell:
    """Two queues, three messages in one of them."""
    shell.does("queue", "declare", "orders", "--slots", "8")
    shell.does("queue", "declare", "later", "--slots", "8")
    shell.does("pub", "orders", "--lines", "--key", "k", "--property", "n=1", stdin=b"a\nb\nc\n")
    return shell


def test_declaring_is_idempotent_and_says_so_on_stderr(shell: Shell) -> None:
    for _ in range(2):
        answer = shell.does("queue", "declare", "orders", "--slots", "64")
        assert answer.out == ""
        assert "orders" in answer.said
    answer = shell("queue", "declare", "orders", "--slots", "128")
    assert answer.code == 1
    assert "64" in answer.said
    assert "128" in answer.said


def test_an_impossible_number_of_slots(shell: Shell) -> None:
    assert shell("queue", "declare", "orders", "--slots", "3").code == 1
    assert shell("queue", "declare", "orders", "--slots", "0").code == 2


def test_list(orders: Shell) -> None:
    assert sorted(orders.does("queue", "list", "--names").lines) == ["later", "orders"]
    found = {queue["name"]: queue for queue in orders.does("queue", "list", "--json").json}
    assert list(found["orders"]) == INFO_KEYS
    assert (found["orders"]["depth"], found["later"]["depth"]) == (3, 0)
    assert found["orders"]["slots"] == 8
    header, *rows = orders.does("queue", "list").lines
    assert header.split()[:3] == ["NAME", "DEPTH", "SLOTS"]
    assert ["orders", "3", "8", "3"] in [row.split()[:4] for row in rows]


def test_an_empty_vhost_has_an_empty_list(shell: Shell) -> None:
    assert shell.does("queue", "list", "--names").out == ""
    assert shell.does("queue", "list", "--json").json == []
    assert shell.does("queue", "list").lines[0].startswith("NAME")


def test_stat(orders: Shell) -> None:
    found = orders.does("queue", "stat", "orders", "--json").json
    assert list(found) == STATISTICS_KEYS
    assert (found["depth"], found["published"], found["acked"]) == (3, 3, 0)
    lines = [line.split() for line in orders.does("queue", "stat", "orders").lines]
    assert ["depth", "3"] in lines
    assert ["paused", "no"] in lines


def test_stat_lists_what_comes_from_elsewhere(shell: Shell) -> None:
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        queue = broker.declare_queue("orders", slots=64)
        for number in range(12):
            with Sink(broker, bytes([number]) * 16) as sink:
                sink.to_queue(queue)
                sink.pour(stream([b"x"], first=1000 + number))
        with Sink(broker, bytes([11]) * 16) as sink:
            sink.to_queue(queue)
            found = shell.does("queue", "stat", "orders", "--json").json["origins"]
            assert {(each["identity"], each["position"]) for each in found} == {
                ((bytes([number]) * 16).hex(), 1001 + number) for number in range(12)
            }
            assert [each["owner"] for each in found] == [broker.participant] + [None] * 11
        (line,) = [
            line
            for line in shell.does("queue", "stat", "orders").lines
            if line.startswith("origins")
        ]
    assert line.count("idle since") == 10
    assert line.endswith("and 2 more")


def test_how_far_streams_are_in_exchanges_is_in_no_list(shell: Shell) -> None:
    shell.does("exchange", "declare", "prices", "topic")
    with shmbroker.connect(f"shm://{shell.vhost}") as broker, Sink(broker, bytes(16)) as sink:
        sink.to_exchange(broker.exchange("prices"))
        assert shell.does("queue", "list", "--names").out == ""
        assert shell.does("queue", "list", "--json").json == []
        assert "$sink" not in shell("doctor").out
        assert "$sink" not in shell("check").out


def test_browse_takes_nothing(orders: Shell) -> None:
    for _ in range(2):
        found = orders.does("queue", "browse", "orders", "--json").json
        assert [message["body"] for message in found] == ["a", "b", "c"]
    first = found[0]
    assert list(first) == MESSAGE_KEYS
    assert (first["key"], first["properties"], first["deliveries"]) == ("k", {"n": 1}, 0)
    assert len(orders.does("queue", "browse", "orders", "--count", "2", "--json").json) == 2
    header, *rows = orders.does("queue", "browse", "orders").lines
    assert header.split() == ["POSITION", "STATE", "DELIVERIES", "KEY", "SIZE", "BODY"]
    assert [row.split()[-1] for row in rows] == ["a", "b", "c"]


HOLDER_KEYS = [
    "participant", "taken", "bytes", "position", "published_at", "deliveries", "pid", "name",
    "state",
]  # fmt: skip


def test_who_has_a_message_that_was_taken_is_shown(orders: Shell) -> None:
    assert len(orders.does("queue", "holders", "orders").lines) == 1
    with (
        shmbroker.connect(f"shm://{orders.vhost}", name="slow") as slow,
        shmbroker.connect(f"shm://{orders.vhost}", name="other") as other,
    ):
        held = [slow.queue("orders").get(timeout=0), other.queue("orders").get(timeout=0),
                slow.queue("orders").get(timeout=0)]  # fmt: skip
        found = orders.does("queue", "holders", "orders", "--json").json
        assert list(found[0]) == HOLDER_KEYS
        assert [(row["name"], row["taken"], row["bytes"], row["position"]) for row in found] == [
            ("slow", 2, 2, 0), ("other", 1, 1, 1)
        ]  # fmt: skip
        assert {(row["pid"], row["state"]) for row in found} == {(os.getpid(), "live")}
        header, first, _ = orders.does("queue", "holders", "orders").lines
        assert header.split() == [
            "PARTICIPANT", "PID", "NAME", "STATE", "TAKEN", "BYTES", "FIRST", "PUBLISHED"
        ]  # fmt: skip
        assert first.split()[2:5] == ["slow", "live", "2"]
        assert first.endswith(" ago")
        _, *rows = orders.does("queue", "browse", "orders").lines
        states = [" ".join(row.split()[1:4]) for row in rows]
        assert states == [f"taken by {each}" for each in
                          (slow.participant, other.participant, slow.participant)]  # fmt: skip
        assert len(held) == 3


def test_browse_shows_what_is_on_disk_and_the_rest_when_asked(shell: Shell) -> None:
    shell.does("queue", "declare", "safe", "--durable")
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        broker.queue("safe").publish(b"x", confirm="shm")
    assert shell.does("queue", "browse", "safe", "--json").json == []
    (found,) = shell.does("queue", "browse", "safe", "--unconfirmed", "--json").json
    assert (found["body"], found["confirmed"]) == ("x", False)
    _header, row = shell.does("queue", "browse", "safe", "--unconfirmed").lines
    assert row.split()[:2] == ["0", "unconfirmed"]


def test_browse_shows_bytes_that_are_no_text(orders: Shell) -> None:
    orders.does("pub", "later", stdin=b"\xff\x00\x1b[31m")
    (found,) = orders.does("queue", "browse", "later", "--json").json
    assert (found["body"], found["body_encoding"]) == ("/wAbWzMxbQ==", "base64")
    assert "\x1b" not in orders.does("queue", "browse", "later").out


def test_purge(orders: Shell) -> None:
    answer = orders.does("queue", "purge", "orders", "--yes")
    assert "3 messages" in answer.said
    assert orders.bodies("orders") == []


def test_move_keeps_order_key_and_properties(orders: Shell) -> None:
    answer = orders.does("queue", "move", "orders", "later")
    assert "3 messages" in answer.said
    assert orders.bodies("orders") == []
    found = orders.does("queue", "browse", "later", "--json").json
    assert [m["body"] for m in found] == ["a", "b", "c"]
    assert {m["key"] for m in found} == {"k"}
    assert [m["properties"] for m in found] == [{"n": 1}] * 3


def test_move_so_many(orders: Shell) -> None:
    orders.does("queue", "move", "orders", "later", "--count", "2")
    assert (orders.bodies("orders"), orders.bodies("later")) == (["c"], ["a", "b"])
    assert "1 message " in orders.does("queue", "move", "orders", "later", "--count", "5").said


def test_move_into_a_full_queue_loses_nothing(orders: Shell) -> None:
    orders.does("queue", "declare", "small", "--slots", "2")
    answer = orders("queue", "move", "orders", "small", "--timeout", "10ms")
    assert answer.code == 1
    assert "2 messages" in answer.said
    assert (orders.bodies("orders"), orders.bodies("small")) == (["c"], ["a", "b"])


def test_a_queue_that_is_full_by_bytes_says_so(orders: Shell) -> None:
    orders.does("queue", "declare", "small", "--max-bytes", "200B")
    for verb in ("move", "copy"):
        answer = orders("queue", verb, "orders", "small", "--timeout", "10ms")
        assert answer.code == 1
        assert "queue 'small' is full" in answer.said
    assert (orders.bodies("orders"), orders.bodies("small")) == (["c"], ["a", "b"])


def test_move_says_what_stays(orders: Shell) -> None:
    orders.does("pub", "orders", "d", "--deliver-after", "1h")
    with shmbroker.connect(f"shm://{orders.vhost}") as broker:
        held = broker.queue("orders").get(timeout=0)
        answer = orders("queue", "move", "orders", "later")
        held.ack()
    assert answer.code == 1
    assert "2 messages moved from 'orders' to 'later'" in answer.said
    assert "queue 'orders' still has 1 message (1 taken) and 1 scheduled message" in answer.said
    answer = orders("queue", "move", "orders", "later")
    assert answer.code == 1
    assert "queue 'orders' still has 0 messages and 1 scheduled message" in answer.said
    orders.does("queue", "move", "orders", "later", "--count", "5")
    orders.does("queue", "pause", "later")
    answer = orders("queue", "move", "later", "orders")
    assert answer.code == 1
    assert "still has 2 messages; it is paused" in answer.said


def test_move_says_what_stays_in_page_files(shell: Shell, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        with Pager(broker, tmp_path):
            paged = broker.declare_queue("paged", slots=4, when_full="page")
            paged.publish_many([b"x"] * 9)
        before = paged.statistics()
        broker.declare_queue("orders")
        answer = shell("queue", "move", "paged", "orders")
        assert before.paged
        assert before.depth == 9
        assert answer.code == 1
        assert f"queue 'paged' still has {before.paged} messages ({before.paged} paged)" in (
            answer.said
        )


def test_move_takes_what_is_in_page_files_as_it_comes_out(shell: Shell, tmp_path: Path) -> None:
    bodies = [f"{number}" for number in range(300)]
    with shmbroker.connect(f"shm://{shell.vhost}") as broker, Pager(broker, tmp_path):
        paged = broker.declare_queue("paged", slots=4, when_full="page")
        broker.declare_queue("orders", slots=512)
        paged.publish_many([body.encode() for body in bodies])
        answer = shell.does("queue", "move", "paged", "orders")
        assert "300 messages moved from 'paged' to 'orders'" in answer.said
        assert paged.statistics().depth == 0
    assert shell.bodies("orders") == bodies


def test_pause_and_resume(orders: Shell) -> None:
    orders.does("queue", "pause", "orders")
    assert orders.does("queue", "stat", "orders", "--json").json["paused"] is True
    arguments = ["consumer", "--destination", "orders", "--message-count", "3", "--timeout", "50ms"]
    assert orders(*arguments).code == 1
    orders.does("queue", "resume", "orders")
    assert orders.does("queue", "stat", "orders", "--json").json["paused"] is False
    orders.does(*arguments)


def test_delete(orders: Shell) -> None:
    orders.does("pub", "orders", "d", "--deliver-after", "1h")
    answer = orders.does("queue", "delete", "orders", "--yes")
    assert "queue 'orders' is deleted with 3 messages and 1 scheduled message" in answer.said
    assert orders.does("queue", "list", "--names").lines == ["later"]


def test_what_is_scheduled_is_listed_and_cancelled(orders: Shell) -> None:
    orders.does("pub", "later", "cake", "--deliver-after", "2h", "--key", "k")
    orders.does("pub", "later", "bread", "--deliver-at", "2040-01-01T00:00Z")
    orders.does("pub", "later", "stale", "--deliver-at", "2020-01-01T00:00")
    assert orders.bodies("later") == ["stale"]
    cake, bread = orders.does("queue", "scheduled", "later", "--json").json
    assert list(cake) == SCHEDULED_KEYS
    assert (cake["body"], cake["key"], cake["deliveries"]) == ("cake", "k", 0)
    assert (bread["body"], bread["deliver_at"]) == ("bread", "2040-01-01T00:00:00+00:00")
    header, first, _ = orders.does("queue", "scheduled", "later").lines
    assert header.split() == ["ID", "DUE", "DELIVERIES", "KEY", "SIZE", "BODY"]
    assert first.split()[0] == str(cake["id"])
    assert orders.does("queue", "stat", "later", "--json").json["scheduled"] == 2
    orders.does("queue", "scheduled", "later", "--cancel", str(cake["id"]))
    answer = orders("queue", "scheduled", "later", "--cancel", str(cake["id"]))
    assert (answer.code, "delivered or cancelled" in answer.said) == (1, True)
    (left,) = orders.does("queue", "scheduled", "later", "--json", "--count", "5").json
    assert left["body"] == "bread"


def test_what_is_no_time_of_day(orders: Shell) -> None:
    assert orders("pub", "orders", "x", "--deliver-at", "tomorrow").code == 2
    assert orders("pub", "orders", "x", "--deliver-after", "-1s").code == 2
    assert (
        orders("pub", "orders", "x", "--deliver-after", "1s", "--deliver-at", "2040-01-01").code
        == 2
    )


def test_the_value_of_a_key(shell: Shell) -> None:
    shell.does("queue", "declare", "prices", "--last-value", "--non-destructive")
    for price in ("1.07", "1.08"):
        shell.does("pub", "prices", price, "--key", "eur")
    assert shell.does("queue", "value", "prices", "eur").lines == ["1.08"]
    assert shell.does("queue", "value", "prices", "eur", "--json").json["body"] == "1.08"
    answer = shell("queue", "value", "prices", "usd")
    assert answer.code == 1
    assert "queue 'prices' has no message of key 'usd'" in answer.said
    assert shell.does("queue", "stat", "prices", "--json").json["replaced"] == 1
    answer = shell("consumer", "--destination", "prices", "--message-count", "1")
    assert answer.code == 1
    assert "nothing is taken" in answer.said
