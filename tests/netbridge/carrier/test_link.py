"""Links for real: two vhosts, two processes, loopback TCP, CURVE and proofs."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import zmq

import shmbroker
from shmbroker import Broker, Queue
from shmbroker.netbridge.carrier import link as links
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.wire.words import Standing, TargetKind
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.support.host import journaling
from tests.support.link import DEAD, PATIENCE, SOURCE, TARGET, Pair
from tests.support.trace import TRACE

ARENA = 256 << 20


@dataclass
class World:
    near: Broker
    far: Broker
    pair: Pair
    opened: ExitStack

    def begin(self, end: str) -> object:
        process = self.pair.process(end)
        self.opened.callback(process.kill)
        return process

    def both(self) -> None:
        self.begin("far")
        self.begin("near")

    def said(self, end: str, **wanted: str) -> str:
        """Wait for a line of the log with these values: its reason."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for line in self.pair.lines(end):
                if wanted.items() <= line.items():
                    return str(line.get("reason", ""))
            time.sleep(0.01)
        raise AssertionError(f"no {wanted} in {self.pair.lines(end)}")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as opened:
        names = [opened.enter_context(vhost_for_a_while()) for _ in range(2)]
        near, far = (
            opened.enter_context(
                shmbroker.connect(f"shm://{name}", create=True, arena_bytes=ARENA, name="test")
            )
            for name in names
        )
        yield World(near, far, Pair(*names, free_port(), tmp_path), opened)


def received(far: Broker, count: int, queue: str = TARGET) -> list[bytes]:
    target, got = far.queue(queue), []
    while len(got) < count:
        got += target.receive_many(count - len(got), timeout=PATIENCE)
    return got


def emptied(source: Queue) -> None:
    """All of it is confirmed."""
    until = time.monotonic() + PATIENCE
    while len(source) > 0 and time.monotonic() < until:
        time.sleep(0.01)
    assert len(source) == 0


def bodies(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_a_stream_arrives_once_and_in_order(world: World) -> None:
    source = world.near.declare_queue(SOURCE, slots=4096)
    target = world.far.declare_queue(TARGET, slots=4096)
    source.publish_many(bodies(1000), timeout=PATIENCE)
    world.both()
    assert received(world.far, 1000) == bodies(1000)
    source.publish(b"one more", key="key", properties=TRACE)
    with target.get(timeout=PATIENCE) as message:
        assert (message.body, message.key) == (b"one more", "key")
        assert message.properties == TRACE
    assert target.statistics().published == 1001


def test_what_is_confirmed_is_done_with_at_the_source(world: World) -> None:
    source = world.near.declare_queue(SOURCE, slots=64)
    world.far.declare_queue(TARGET, slots=4096)
    world.both()
    for body in bodies(1000):  # in a ring of 64
        source.publish(body, timeout=PATIENCE)
    assert received(world.far, 1000) == bodies(1000)


def test_a_full_target_holds_the_stream_and_not_another(world: World) -> None:
    pair = world.pair = replace(
        world.pair, ships=(Shipped(SOURCE, TARGET), Shipped("other", "other"))
    )
    assert pair.ships[1].queue == "other"
    for broker in (world.near, world.far):
        broker.declare_queue("other", slots=64)
    world.near.declare_queue(SOURCE, slots=8192).publish_many(bodies(5000), timeout=PATIENCE)
    target = world.far.declare_queue(TARGET, slots=64)
    world.both()
    world.near.queue("other").publish(b"free", timeout=PATIENCE)
    assert received(world.far, 1, "other") == [b"free"]
    assert received(world.far, 5000) == bodies(5000)
    assert target.statistics().published == 5000


def test_a_message_that_is_larger_than_a_frame_comes_in_parts(world: World) -> None:
    world.pair = replace(world.pair, times=LinkTimes(max_frame_size=64 << 10))
    source = world.near.declare_queue(SOURCE)
    world.far.declare_queue(TARGET)
    large = [bytes([each]) * (each << 20) for each in (3, 1, 9)]
    for body in (*large, b"small"):
        source.publish(body, timeout=PATIENCE)
    world.both()
    assert received(world.far, 4) == [*large, b"small"]


def test_what_the_target_refuses_goes_to_the_dead_letters_of_the_source(world: World) -> None:
    dead = world.near.declare_queue(DEAD)
    source = world.near.declare_queue(SOURCE, dead_letter=DEAD)
    world.far.declare_queue(TARGET, slots=64, when_full="fail")
    source.publish_many(bodies(70), timeout=PATIENCE)
    world.both()
    assert received(world.near, 6, DEAD) == bodies(70)[64:]
    world.said("near", what="refused by the target")
    assert received(world.far, 64) == bodies(64)
    source.publish(b"after", timeout=PATIENCE)
    assert received(world.far, 1) == [b"after"]
    emptied(source)
    assert dead.statistics().published == 6


def test_durable_to_durable_waits_for_the_disk_there(world: World, tmp_path: Path) -> None:
    source = world.near.declare_queue(SOURCE, slots=256, durable=True)
    world.far.declare_queue(TARGET, slots=4096, durable=True)
    world.both()
    (tmp_path / "near").mkdir()
    (tmp_path / "far").mkdir()
    with journaling(world.pair.near, tmp_path / "near"):
        source.publish_many(bodies(200), timeout=PATIENCE)
        world.said("near", state="up")
        time.sleep(0.5)
        assert len(source) == 200  # nothing there is on disk yet
        with journaling(world.pair.far, tmp_path / "far"):
            assert received(world.far, 200) == bodies(200)
            emptied(source)


def gate_passes(source: Queue, position: int) -> None:
    """All below is confirmed, what was refused too."""
    until = time.monotonic() + PATIENCE
    while True:
        gates = [each for each in source.gates() if each.kind == "link"]
        if gates and gates[0].position >= position:
            return
        assert time.monotonic() < until, gates
        time.sleep(0.01)


def test_a_refused_message_is_confirmed_when_its_mark_is_synced(
    world: World, tmp_path: Path
) -> None:
    dead = world.near.declare_queue(DEAD, durable=True)
    source = world.near.declare_queue(SOURCE, slots=64, durable=True, dead_letter=DEAD)
    world.far.declare_queue(TARGET, slots=2, durable=True, when_full="fail")
    world.both()
    with journaling(world.pair.near, tmp_path / "near"):
        with journaling(world.pair.far, tmp_path / "far"):
            source.publish_many(bodies(2), timeout=PATIENCE)
            gate_passes(source, 2)
        source.publish(b"2", timeout=PATIENCE)
        assert dead.receive(timeout=PATIENCE) == b"2"
        source.publish(b"3", timeout=PATIENCE)
        assert dead.receive(timeout=PATIENCE) == b"3", "and the mark was moved behind the first"
        (gate,) = [each for each in source.gates() if each.kind == "link"]
        assert gate.position == 2
        with journaling(world.pair.far, tmp_path / "far", epoch=2):
            gate_passes(source, 4)


def to_exchange(world: World, **settings: object) -> dict[str, Queue]:
    world.pair = replace(world.pair, ships=(Shipped(SOURCE, "prices", TargetKind.EXCHANGE),))
    world.far.declare_exchange("other", "fanout")
    world.far.declare_exchange("prices", "topic", alternate="other")
    made = {name: world.far.declare_queue(name, slots=64, **settings) for name in ("eu", "all")}
    rest = made["rest"] = world.far.declare_queue("rest", slots=64, **settings)
    world.far.bind("prices", "eu", "eu.*")
    world.far.bind("prices", "all", "*.x")
    world.far.bind("other", rest)
    return made


def test_through_an_exchange_each_queue_has_its_own_once(world: World) -> None:
    queues = to_exchange(world)
    source = world.near.declare_queue(SOURCE, slots=64)
    for number, key in enumerate(("eu.x", "us.x", "eu.y", "nobody") * 10):
        source.publish(b"%d" % number, key=key)
    world.both()
    emptied(source)
    counted = {name: each.statistics().published for name, each in queues.items()}
    assert counted == {"eu": 20, "all": 20, "rest": 10}
    assert received(world.far, 20, "eu") == [b"%d" % n for n in range(40) if n % 2 == 0]


def test_a_full_queue_behind_an_exchange_holds_the_stream(world: World) -> None:
    queues = to_exchange(world)
    world.far.declare_queue("small", slots=2)
    world.far.bind("prices", "small", "eu.*")
    world.near.declare_queue(SOURCE, slots=64)
    for number in range(10):
        world.near.queue(SOURCE).publish(b"%d" % number, key="eu.y")
    world.both()
    assert received(world.far, 10, "small") == bodies(10)
    emptied(world.near.queue(SOURCE))
    assert queues["eu"].statistics().published == 10


def test_what_one_queue_behind_an_exchange_refuses_is_a_dead_letter(world: World) -> None:
    queues = to_exchange(world)
    world.far.declare_queue("picky", slots=4, when_full="fail")
    world.far.bind("prices", "picky", "eu.*")
    world.near.declare_queue(DEAD)
    source = world.near.declare_queue(SOURCE, slots=64, dead_letter=DEAD)
    for number in range(6):
        source.publish(b"%d" % number, key="eu.y")
    world.both()
    assert received(world.near, 2, DEAD) == [b"4", b"5"]
    emptied(source)
    assert received(world.far, 4, "picky") == bodies(4)
    assert queues["eu"].statistics().published == 6, "the others have it"


def test_an_exchange_confirms_when_its_durable_queues_have_it_on_disk(
    world: World, tmp_path: Path
) -> None:
    queues = to_exchange(world, durable=True)
    source = world.near.declare_queue(SOURCE, slots=64, durable=True)
    (tmp_path / "near").mkdir()
    (tmp_path / "far").mkdir()
    with journaling(world.pair.near, tmp_path / "near"):
        for key in ("eu.x", "rest"):
            source.publish(b"1", key=key, timeout=PATIENCE)
        for again in range(2):  # the second link finds them there, and not on disk
            far, near = world.begin("far"), world.begin("near")
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until and (
                queues["rest"].published < 1 or world.pair.states("near").count("up") <= again
            ):
                time.sleep(0.01)
            world.said("near", state="up")
            assert len(source) == 2
            near.kill()
            far.kill()
        world.both()
        with journaling(world.pair.far, tmp_path / "far"):
            emptied(source)
    assert {name: each.published for name, each in queues.items()} == {
        "eu": 1, "all": 1, "rest": 1
    }  # fmt: skip


def test_a_message_that_expires_while_it_waits_never_travels(world: World) -> None:
    late = world.near.declare_queue("late")
    source = world.near.declare_queue(SOURCE, expiry_queue="late")
    world.far.declare_queue(TARGET)
    source.publish(b"late", ttl=0.001)
    source.publish(b"in time", ttl=PATIENCE * 10)
    until = time.monotonic() + PATIENCE
    while not source.expire() and time.monotonic() < until:
        time.sleep(0.001)
    assert late.receive(timeout=PATIENCE) == b"late"
    world.both()
    with world.far.queue(TARGET).get(timeout=PATIENCE) as message:
        assert message.body == b"in time"
        assert message.expires_at is not None
    emptied(source)
    assert world.far.queue(TARGET).statistics().published == 1


def test_another_password_is_refused(world: World) -> None:
    source = world.near.declare_queue(SOURCE)
    world.far.declare_queue(TARGET)
    source.publish(b"not for all")
    world.begin("far")
    world.pair = world.pair.with_password("another horse battery")
    world.begin("near")
    assert "credentials" in world.said("near", state="refused")
    assert len(world.far.queue(TARGET)) == 0
    assert len(source) == 1


def test_a_closed_socket_is_told_at_both_ends(world: World) -> None:
    for end, other in (("near", "far"), ("far", "near")):
        world.near.declare_queue(SOURCE)
        world.far.declare_queue(TARGET)
        processes = {each: world.begin(each) for each in ("far", "near")}
        world.said("near", state="up")
        world.said("far", state="up")
        processes[end].kill()
        assert world.said(other, state="lost", level="warning").startswith("disconnected")
        processes[other].kill()
        for each in ("near", "far"):
            (world.pair.folder / f"{each}.log").unlink()


def test_silence_is_told(world: World) -> None:
    world.near.declare_queue(SOURCE)
    world.far.declare_queue(TARGET)
    far = world.begin("far")
    world.begin("near")
    world.said("near", state="up")
    far.stop()
    assert world.said("near", state="lost").startswith("silence")
    far.go_on()
    world.near.queue(SOURCE).publish(b"after it")
    assert received(world.far, 1) == [b"after it"]


def test_a_graceful_stop_confirms_what_is_on_its_way(world: World) -> None:
    source = world.near.declare_queue(SOURCE, slots=4096)
    world.far.declare_queue(TARGET, slots=4096)
    world.begin("far")
    with world.pair.linked() as link:
        source.publish_many(bodies(1000), timeout=PATIENCE)
        received(world.far, 1000)
    assert link.state == "stopped"
    assert len(source) == 0
    until = time.monotonic() + PATIENCE  # the far end forgets the origin after it has answered
    while world.far.queue(TARGET).origins() and time.monotonic() < until:
        time.sleep(0.01)
    assert world.far.queue(TARGET).origins() == ()


@pytest.fixture
def dialling(world: World) -> Iterator[Callable[[], Link]]:
    """Links of this process, to the far end."""
    world.near.declare_queue(SOURCE)
    world.far.declare_queue(TARGET)
    world.begin("far")
    keys, uri = world.pair.credential, f"failover:(tcp://{world.pair.address})"
    ours = Identity(b"n" * 16, os.urandom(16), "near", Standing.LIVE, 0)
    with (
        shmbroker.connect(f"shm://{world.near.vhost}", name="near") as own,
        NetworkThread(own) as thread,
    ):
        yield lambda: Link(thread, "link", uri, keys, ours, world.pair.ships)


def is_up(link: Link) -> None:
    until = time.monotonic() + PATIENCE
    while link.state != "up":
        assert time.monotonic() < until, link.why
        time.sleep(0.01)


def test_a_link_that_is_made_again_counts_also_when_the_clock_was_set_back(
    dialling: Callable[[], Link], monkeypatch: pytest.MonkeyPatch
) -> None:
    then = time.time_ns()
    for ahead in (3600, 0):
        monkeypatch.setattr(time, "time_ns", lambda ahead=ahead: then + ahead * 10**9)
        with dialling() as link:
            is_up(link)


@pytest.mark.parametrize("what", ["dealer", "Monitor"])
def test_an_attempt_without_a_free_descriptor_has_failed_and_no_more(
    dialling: Callable[[], Link], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    make, tried = getattr(links, what), []

    def made(*given: object) -> object:
        tried.append(what)
        if len(tried) <= 2:
            raise zmq.ZMQError(errno.EMFILE)
        return make(*given)

    monkeypatch.setattr(links, what, made)
    with dialling() as link:
        is_up(link)
    assert len(tried) == 3
