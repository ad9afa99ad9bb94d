"""Bridges that ship what a filter takes, and change it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Empty, Message, Queue, QueueFull
from shmbroker.ipc.base.errors import ArenaFull
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.instance.config.config import ConfigError
from shmbroker.ipc.transaction.transaction import Transaction
from shmbroker.netbridge.bridged import outbox
from shmbroker.netbridge.bridged.transformer import Transformer, Unusable
from shmbroker.netbridge.broker.former import FormerBridges
from shmbroker.netbridge.carrier import reached
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.config.config import load
from shmbroker.netbridge.plan.bridge import outbox_of
from shmbroker.perf.machine.port import free_port
from tests.netbridge.broker.conftest import Two
from tests.support.link import PATIENCE, SOURCE, TARGET

TOWARDS = f"$bridge.to-far.{SOURCE}"
DOTTED = "to.far%"
MODULE = """
def loud(message):
    if message.body == b"bad":
        raise ValueError("bad one")
    if message.body == b"odd":
        return b"ODD", {"no_such_option": 1}
    if message.body == b"late":
        return b"LATE", {"ttl": "soon"}
    if message.body == b"as it is":
        return None
    if message.body == b"only a body":
        return b"ONLY A BODY"
    return message.body.upper(), {"key": "loud", "properties": {"was": message.key}}
"""


def taken(queue: Queue, count: int) -> list[bytes]:
    found, late = [], time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < late:
        with suppress(Empty):
            found += queue.receive_many(count - len(found), timeout=1)
    return found


def filtered(two: Two, **more: object) -> tuple[Broker, Broker]:
    two.write(two.near, **{"bridges.to-far.filter": "size_class = 'large'", **more})
    return two.started()


def publish(queue: Queue, first: int, end: int) -> None:
    for each in range(first, end):
        kind = "large" if each % 2 else "small"
        queue.publish(b"%d" % each, properties={"size_class": kind}, timeout=PATIENCE)


def test_what_the_filter_does_not_take_stays_and_others_may_take_it(two: Two) -> None:
    near, far = filtered(two)
    publish(near.queue(SOURCE), 0, 200)
    assert taken(far.queue(TARGET), 100) == [b"%d" % each for each in range(1, 200, 2)]
    assert taken(near.queue(SOURCE), 100) == [b"%d" % each for each in range(0, 200, 2)]
    assert two.becomes("up")["queue"] == SOURCE


@pytest.mark.parametrize("victim", ["near", "far"])
def test_each_is_there_once_whoever_is_killed(two: Two, victim: str) -> None:
    near, far = filtered(two)
    source, target = near.queue(SOURCE), far.queue(TARGET)
    run = two.near if victim == "near" else two.far
    for at in range(0, 900, 300):
        publish(source, at, at + 300)
        run.kill()
        run.start().becomes("live")
    assert taken(target, 450) == [b"%d" % each for each in range(1, 900, 2)]
    with pytest.raises(Empty):
        target.get(timeout=0.3)
    assert len(taken(source, 450)) == 450


def test_a_bridge_without_its_filter_ships_the_rest_and_what_it_had_selected(two: Two) -> None:
    near, far = filtered(two)
    two.becomes("up")
    two.far.stop()
    source = near.queue(SOURCE)
    publish(source, 0, 20)
    until = time.monotonic() + PATIENCE
    while len(source) > 10:
        assert time.monotonic() < until
        time.sleep(0.01)  # what was selected is on its way
    two.write(two.near, **{"bridges.to-far.filter": None})
    two.reload(two.near)
    two.far.start().becomes("live")
    found = taken(far.queue(TARGET), 20)
    assert sorted(found, key=int) == [b"%d" % each for each in range(20)]
    assert TOWARDS not in {each.name for each in near.queues()}


def test_a_bridge_that_is_gone_leaves_everything_in_its_queue(two: Two) -> None:
    near, _ = filtered(two)
    two.becomes("up")
    two.far.stop()
    source = near.queue(SOURCE)
    publish(source, 0, 20)
    two.near.stop()
    gone = {key: None for key in two.given[two.near.folder] if "to-far" in key}
    listens = {
        "acceptors.own.uri": f"tcp://127.0.0.1:{free_port()}",
        "acceptors.own.roles": ["peering"],
    }
    two.write(two.near, **gone, **listens)
    two.near.start().becomes("live")
    assert sorted(taken(source, 20), key=int) == [b"%d" % each for each in range(20)]


def test_what_a_link_still_ships_is_not_brought_back(vhost: str) -> None:
    """Another bridge is gone as well, and its link has ended before."""
    with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
        source, way = broker.declare_queue("q"), broker.declare_queue(outbox_of("to", "q"))
        way.publish(b"on its way")
        former = FormerBridges(vhost, lambda _: None)
        with Follower(broker, "link to", kind="link", lasting=True, skips=True) as follower:
            follower.add(way)
            former.drop(broker, ())
            assert (len(source), len(way)) == (0, 1)
        former.drop(broker, ())
        assert taken(source, 1) == [b"on its way"]
        assert way.name not in {each.name for each in broker.queues()}


def test_what_is_for_a_queue_that_is_gone_says_so_once_and_waits_for_it(vhost: str) -> None:
    lines: list[str] = []
    with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
        source = broker.declare_queue("q", slots=16)
        fill(source)
        way = broker.declare_queue(outbox_of("to", "q"))
        way.publish(b"selected")
        former = FormerBridges(vhost, lambda line: lines.append(line["detail"]))
        former.drop(broker, ())
        former.tries()
        assert lines == [f"it is tried again: {way.name}"]
        broker.delete_queue("q", force=True)
        former.tries()
        former.tries()
        assert len(lines) == 2
        assert "there is no queue 'q'" in lines[1]
        source = broker.declare_queue("q")
        former.tries()
        assert (taken(source, 1), former.waits, len(lines)) == ([b"selected"], set(), 2)


def fill(queue: Queue) -> None:
    with suppress(QueueFull):
        while True:
            queue.publish(b"", timeout=0)


def test_what_finds_no_room_in_its_queue_goes_back_when_there_is(two: Two) -> None:
    near, _ = filtered(two)
    two.becomes("up")
    two.far.stop()
    near.delete_queue(SOURCE, force=True)
    source, late = near.declare_queue(SOURCE, slots=16), time.monotonic() + PATIENCE
    for each in range(5):
        source.publish(b"%d" % each, properties={"size_class": "large"})
    while len(source):
        assert time.monotonic() < late
        time.sleep(0.01)  # what was selected is on its way
    for each in range(5, 21):
        source.publish(b"%d" % each)
    two.write(two.near, **{key: None for key in two.given[two.near.folder] if "to-far" in key})
    two.reload(two.near)
    while not any(each["detail"].endswith(TOWARDS) for each in two.lines(two.near, "bridge")):
        assert time.monotonic() < late
        time.sleep(0.01)  # its link has to end
    assert sorted(taken(source, 21), key=int) == [b"%d" % each for each in range(21)]
    while left_of_links(near, source):
        assert time.monotonic() < late, left_of_links(near, source)
        time.sleep(0.01)  # nothing tells when it is deleted


def left_of_links(near: Broker, source: Queue) -> list[str]:
    gates = [gate.name for gate in source.gates() if gate.kind == "link"]
    return gates + [each.name for each in near.queues() if each.name.startswith("$bridge.")]


@pytest.mark.parametrize("is_filtered", [True, False])
def test_it_is_so_without_any_network_and_if_its_name_has_dots(two: Two, is_filtered: bool) -> None:
    named = {key: each for key, each in two.given[two.near.folder].items() if "to-far" in key}
    dotted = {key.replace("to-far", DOTTED): each for key, each in named.items()}
    if is_filtered:
        dotted[f"bridges.{DOTTED}.filter"] = "size_class = 'large'"
    two.write(two.near, **dict.fromkeys(named), **dotted)
    near, _ = two.started()
    two.becomes("up", DOTTED)
    two.far.stop()
    source = near.queue(SOURCE)
    publish(source, 0, 20)
    late = time.monotonic() + PATIENCE
    while is_filtered and len(source) > 10:
        assert time.monotonic() < late
        time.sleep(0.01)  # what was selected is on its way
    two.near.stop()
    of_network = [key for key in two.given[two.near.folder]
                  if key.startswith(("bridges", "credentials"))]  # fmt: skip
    two.write(two.near, **dict.fromkeys(of_network))
    two.near.start().becomes("live")
    assert sorted(taken(source, 20), key=int) == [b"%d" % each for each in range(20)]
    while left_of_links(near, source):
        assert time.monotonic() < late, left_of_links(near, source)
        time.sleep(0.01)  # nothing tells when it is dropped


def test_a_function_changes_each_message(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "our_bridges.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    two.write(two.near, **{"bridges.to-far.transformer": "our_bridges:loud"})
    near, far = two.started()
    dead = near.declare_queue("dead", slots=64)
    near.settings(SOURCE, dead_letter="dead")
    near.delete_queue(SOURCE, force=True)
    source, target = near.declare_queue(SOURCE, slots=64), far.queue(TARGET)
    for body in (b"quiet", b"bad", b"odd", b"late", b"as it is", b"only a body"):
        source.publish(body, key="low", properties={"n": 1}, priority=7, ttl=3600.0)

    def arrived() -> Message:
        return target.get(timeout=PATIENCE)

    with arrived() as first, arrived() as second, arrived() as third:
        assert [bytes(each.body) for each in (first, second)] == [b"QUIET", b"as it is"]
        assert (first.key, first.properties) == ("loud", {"was": "low"})
        assert (second.key, second.properties) == ("low", {"n": 1})
        assert (bytes(third.body), third.priority) == (b"ONLY A BODY", 7)
        assert all(each.expires_at is not None for each in (first, second, third))
    assert taken(dead, 3) == [b"bad", b"odd", b"late"]
    until, wanted = time.monotonic() + PATIENCE, "our_bridges:loud: ValueError: bad one"
    while all(each["detail"] != wanted for each in two.lines(two.near, "bridge")):
        assert time.monotonic() < until
        time.sleep(0.01)  # another thread writes the log


def test_one_that_is_not_there_is_told(two: Two) -> None:
    two.write(two.near, **{"bridges.to-far.transformer": "no_such_module:loud"})
    two.near.start().becomes("live")
    assert "no_such_module" in two.becomes("failed")["reason"]
    assert two.near.stop() == 0
    with pytest.raises(Unusable, match="is not callable"):
        Transformer("os:sep")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("filter", "size >", "selector"),
        ("filter", 7, "selector"),
        ("transformer", "loud", "function"),
    ],
)
def test_what_is_refused(two: Two, key: str, value: object, why: str) -> None:
    two.write(two.near, **{f"bridges.to-far.{key}": value})
    with pytest.raises(ConfigError, match=why):
        load(two.near.folder)


def test_a_queue_that_is_not_there_is_one_line(vhost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is looked for; and one more when it is gone again."""
    looks = threading.Semaphore(0)

    def serving(broker: Broker, name: str) -> Queue:
        looks.release()
        return reached.serving(broker, name)

    monkeypatch.setattr(outbox, "serving", serving)
    monkeypatch.setattr(outbox, "AGAIN_SECONDS", 0.001)
    lines: list[Mapping[str, object]] = []

    def look(times: int) -> None:
        for _ in range(times):
            assert looks.acquire(timeout=PATIENCE)

    with (
        shmbroker.connect(f"shm://{vhost}", name="test") as broker,
        NetworkThread(broker) as thread,
        outbox.Outbox(thread, vhost, "to", "q", "kind = 1", None, lines.append),
    ):
        look(5)
        assert [each["what"] for each in lines] == ["it cannot take from its queue"]
        queue, late = broker.declare_queue("q"), time.monotonic() + PATIENCE
        queue.publish(b"x", properties={"kind": 1})
        while len(queue):
            assert time.monotonic() < late
            time.sleep(0.01)  # it is on its way
        broker.delete_queue("q")
        while len(lines) < 2:
            look(1)
        look(5)
        assert len(lines) == 2


def as_it_is(_: Message) -> None:
    """A transformer."""


def test_what_finds_no_room_uses_up_no_delivery(
    vhost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried more often than it may be delivered."""
    tried, has_room = threading.Semaphore(0), threading.Event()
    publish = Transaction.publish

    def publishes(*given: Any, **more: Any) -> None:
        tried.release()
        if not has_room.is_set():
            raise ArenaFull("no room")
        publish(*given, **more)

    monkeypatch.setattr(Transaction, "publish", publishes)
    monkeypatch.setattr(outbox, "AGAIN_SECONDS", 0.001)
    lines: list[Mapping[str, object]] = []
    with (
        shmbroker.connect(f"shm://{vhost}", name="test") as broker,
        NetworkThread(broker) as thread,
    ):
        source = broker.declare_queue("q", max_deliveries=2)
        for body in (b"1", b"2"):
            source.publish(body)
        with outbox.Outbox(thread, vhost, "to", "q", None, f"{__name__}:as_it_is", lines.append):
            for _ in range(5):
                assert tried.acquire(timeout=PATIENCE)
            has_room.set()
            way = broker.queue(outbox_of("to", "q"))
            assert taken(way, 2) == [b"1", b"2"]
    assert lines == []
