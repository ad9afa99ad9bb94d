"""Messages as lines of JSON, there and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

import shmbroker
from shmbroker import ArenaFull, Broker, InvalidArgument, MessageTooLarge, Queue, QueueFull
from shmbroker.ipc.message.properties import Packed
from shmbroker.ipc.queue.export import exported, imported, message_of
from tests.conftest import vhost_for_a_while
from tests.support.killed import KILLS, victims
from tests.support.overwriting import BROKEN, ODD, overwrite


def test_there_and_back(broker: Broker) -> None:
    here, there = broker.declare_queue("here"), broker.declare_queue("there")
    here.publish("grün\n".encode(), key="k.ü", properties={"n": 1, "raw": b"\xff", "x": [None]})
    here.publish(b"\xff\x00", ttl=100, priority=9)
    here.publish(b"")
    held = here.get_nowait()
    lines = list(exported(here))
    assert here.statistics().depth == 3
    assert imported(there, lines) == 3
    messages = list(there.browse())
    assert [m.body for m in messages] == ["grün\n".encode(), b"\xff\x00", b""]
    assert messages[0].key == "k.ü"
    assert messages[0].properties == {"n": 1, "raw": b"\xff", "x": [None]}
    assert (messages[1].priority, messages[2].priority) == (9, None)
    assert messages[1].expires_ns > 0
    assert messages[2].expires_ns == 0
    held.ack()


@pytest.mark.parametrize(
    "properties",
    [
        {"base64": "QQ=="},
        {"n": {"base64": "QQ=="}},
        {"n": {1: 2}},
        {"n": {b"k": 2}},
        {"at": msgpack.Timestamp(1, 2)},
        Packed(b"\x81\xa1\xff\x00"),
    ],
)
def test_properties_that_json_would_change_come_back_as_they_were(
    broker: Broker, properties: dict[str, object]
) -> None:
    here, there = broker.declare_queue("here"), broker.declare_queue("there")
    here.publish(b"odd", properties=properties)
    here.publish(b"next")
    assert imported(there, exported(here)) == 2
    first, _ = here.browse()
    copy, after = there.browse()
    assert (copy.properties, copy.unreadable) == (first.properties, first.unreadable)
    assert after.body == b"next"


@pytest.mark.parametrize("broken", BROKEN)
def test_properties_that_are_no_map_are_exported_and_no_others_are_held_up(
    broker: Broker, vhost: str, broken: bytes
) -> None:
    queue = broker.declare_queue("here")
    queue.publish(b"bad", properties=ODD)
    overwrite(vhost, broken)
    queue.publish(b"next")
    bad, after = map(json.loads, exported(queue))
    assert base64.b64decode(bad["properties"]) == broken
    assert after["body"] == "next"


def test_what_a_line_has(broker: Broker) -> None:
    queue = broker.declare_queue("here")
    queue.publish(b"x", ttl=100)
    queue.get_nowait().give_back()
    (line,) = map(json.loads, exported(queue))
    assert 99 < line.pop("ttl") <= 100
    assert line.pop("published_at") > 0
    assert line == {
        "key": None,
        "properties": {},
        "body": "x",
        "body_encoding": "utf-8",
        "priority": None,
        "deliveries": 1,
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "expected a JSON object, Expecting value"),
        ("[1]", "expected a JSON object with a body"),
        ('{"key": "k"}', "expected a JSON object with a body"),
        ('{"body": 5}', "expected body to be str, not 5"),
        ('{"body": "x", "ttl": "5s"}', 'expected ttl to be int or float or null, not "5s"'),
        ('{"body": "x", "priority": true}', "expected priority to be int or null, not true"),
        ('{"body": "x", "bdy": ""}', "'bdy' is none of key, properties, body"),
        ('{"body": "x", "body_encoding": "rot13"}', "expected body_encoding to be utf-8 or base64"),
        ('{"body": "!", "body_encoding": "base64"}', "expected base64: "),
        ('{"body": "x", "properties": {"n": {"base64": "!"}}}', "expected base64: "),
        ('{"body": "x", "properties": {"n": {"base64": 5}}}', "expected base64: "),
        ('{"body": "x", "properties": "gA=="}', "expected properties to be a map, or text whose"),
        ('{"body": "x", "properties_encoding": "base64"}', "expected properties to be a map, or"),
        ('{"body": "x", "properties": {"base64": "QQ=="}}', "expected properties to be a map, or"),
        (r'{"body": "\ud800"}', "expected a body that can be UTF-8: "),
        ("[" * 100_000, "expected a JSON object, "),
    ],
)
def test_what_is_no_message(line: str, expected: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{expected}"):
        message_of(line)


def test_nothing_behind_a_bad_line_is_published(broker: Broker) -> None:
    queue = broker.declare_queue("here")
    lines = ['{"body": "a"}', "", '{"body": "b", "priority": 11}', '{"body": "c"}']
    with pytest.raises(InvalidArgument, match=r"line 3: a priority is .*; 1 before it are"):
        imported(queue, lines)
    assert [message.body for message in queue.browse()] == [b"a"]
    told: list[str] = []
    assert imported(queue, lines, skip=told.append) == 2
    assert told == ["line 3: a priority is a number from 0 to 9, not 11"]


def test_who_finds_no_room_is_told_where_to_go_on(broker: Broker) -> None:
    queue = broker.declare_queue("here", slots=2)
    lines = ['{"body": "a"}', "", '{"body": "b"}', '{"body": "c"}']
    with pytest.raises(QueueFull, match=r"^line 4: .*; 2 before it are published$") as caught:
        imported(queue, lines, timeout=0)
    assert caught.value.published == 2


@pytest.fixture
def small() -> Iterator[Queue]:
    """A queue whose arena has room for few."""
    with (
        vhost_for_a_while() as vhost,
        shmbroker.connect(f"shm://{vhost}", create=True, arena_bytes=1 << 20) as broker,
    ):
        yield broker.declare_queue("here")


def test_a_message_too_large_is_skipped_as_a_bad_line_is(small: Queue) -> None:
    lines = ['{"body": "a"}', json.dumps({"body": "x" * (1 << 19)}), '{"body": "c"}']
    with pytest.raises(MessageTooLarge, match=r"^line 2: .*; 1 before it are published$") as told:
        imported(small, lines)
    assert told.value.published == 1
    skipped: list[str] = []
    assert imported(small, lines, skip=skipped.append) == 2
    assert [each.split(":")[0] for each in skipped] == ["line 2"]
    assert [message.body for message in small.browse()] == [b"a", b"a", b"c"]


def test_a_full_arena_says_where_to_go_on_and_skips_nothing(small: Queue) -> None:
    lines = [json.dumps({"body": "x" * 100_000})] * 20
    with pytest.raises(ArenaFull) as told:
        imported(small, lines, timeout=0, skip=pytest.fail)
    published = len(small)
    assert told.value.published == published > 0
    text = str(told.value)
    assert text.startswith(f"line {published + 1}: ")
    assert text.endswith(f"; {published} before it are published")


def test_what_is_expired_is_not_exported(broker: Broker) -> None:
    queue = broker.declare_queue("here")
    queue.publish(b"late", ttl=1e-9)
    assert list(exported(queue)) == []


def import_again(broker: Broker) -> None:
    here, there = broker.queue("here"), broker.queue("there")
    imported(there, exported(here), timeout=0)


def test_whoever_is_killed_each_message_is_whole_and_in_order(
    vhost: str, broker: Broker, tmp_path: Path
) -> None:
    here, there = broker.declare_queue("here"), broker.declare_queue("there", slots=65536)
    bodies = [b"%d" % number * 100 for number in range(10)]
    for number, body in enumerate(bodies):
        here.publish(body, key=f"k{number}", properties={"n": number})
    before = whole = 0
    for _number, _victim in victims(f"shm://{vhost}", tmp_path, import_again, 6):
        broker.repair()
        assert [message.body for message in here.browse()] == bodies
        found = list(there.browse())
        assert there.publish(b"the next one") == before + len(found)
        for number, message in enumerate(found):
            n = number % len(bodies)
            assert (message.body, message.key, message.properties) == (bodies[n], f"k{n}", {"n": n})
        whole += len(found) // len(bodies)
        there.purge()
        before += len(found) + 1
    assert whole >= KILLS, "they had no time to do anything"
