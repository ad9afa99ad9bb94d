"""Replication for real: loopback TCP, CURVE, two journals; the live is killed, and the other takes
over."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

import shmbroker
from shmbroker import Broker, NotEnoughReplicas
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.journal.history import History
from shmbroker.ipc.journal.journal import Journal
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.paging.pager import Pager
from shmbroker.netbridge.replica.feed import State
from shmbroker.netbridge.replica.replica import Replica
from shmbroker.netbridge.wire.words import ReplicaAck
from shmbroker.perf.machine.process import Process
from tests.conftest import vhost_for_a_while
from tests.support.replicas import NODE, PATIENCE, Pair, wait_for

BOTH = "disk+replicated"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with vhost_for_a_while() as one, vhost_for_a_while() as two:
        shmbroker.vhost.create(one, arena_bytes=64 << 20)
        yield Pair(tmp_path, {"one": one, "two": two})


def test_a_confirm_waits_for_the_replica(pair: Pair) -> None:
    with (
        pair.live("one") as live,
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
        ExitStack() as other,
    ):
        orders = broker.declare_queue("orders", durable=True)
        assert orders.publish(b"alone", timeout=PATIENCE) == 0
        assert orders.level == "disk"
        replica = other.enter_context(pair.replica("two"))
        wait_for(
            lambda: replica.may_take_over and live.in_sync == ("two",),
            lambda: (pair.lines("one"), pair.lines("two")),
        )
        assert live.in_sync == ("two",)
        for number in range(1, 20):
            assert orders.publish(b"%d" % number, confirm="replicated", timeout=PATIENCE) == number
        assert orders.confirm(timeout=PATIENCE) == BOTH
        other.close()
        wait_for(lambda: orders.level == "disk")
        assert orders.publish(b"alone again", timeout=PATIENCE) == 20
        wait_for(lambda: live.in_sync == ())


def test_what_is_replicated_is_there_after_a_takeover(pair: Pair) -> None:
    with (
        pair.live("one"),
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
        pair.replica("two") as replica,
    ):
        orders = broker.declare_queue("orders", durable=True)
        wait_for(lambda: replica.may_take_over)
        bodies = [b"%d" % number for number in range(100)]
        for body in bodies:
            orders.publish(body, confirm="replicated", timeout=PATIENCE)
        with orders.get(timeout=PATIENCE):
            pass
        held = orders.get(timeout=PATIENCE)
        orders.confirm(timeout=PATIENCE)
        with pytest.raises(shmbroker.Error, match="is being restored"):
            shmbroker.connect(f"shm://{pair.vhosts['two']}")
        held.ack()
        there, journaler = replica.take_over(2)
        with there, journaler, shmbroker.connect(f"shm://{pair.vhosts['two']}") as program:
            queue = program.queue("orders")
            left = [message.body for message in queue.consume(timeout=0)]
            assert left in (bodies, bodies[1:], bodies[2:]), "the last acknowledgements may lag"
            queue.publish(b"more", timeout=PATIENCE)
            assert queue.confirm(timeout=PATIENCE) == "disk"


def published(broker: Broker, first: int, count: int, size: int = 2000) -> list[bytes]:
    bodies = [(b"%08d" % number).ljust(size, b".") for number in range(first, first + count)]
    for at in range(0, count, 50):
        broker.queue("orders").publish_many(bodies[at : at + 50], timeout=PATIENCE)
    return bodies


def taken_over(pair: Pair, replica: Replica, epoch: int = 2) -> list[bytes]:
    there, journaler = replica.take_over(epoch)
    with there, journaler, shmbroker.connect(f"shm://{pair.vhosts['two']}") as program:
        return [message.body for message in program.queue("orders").browse()]


def test_a_newcomer_gets_all_while_others_publish(pair: Pair) -> None:
    """Messages of several segments, and such that come while they are copied."""
    pair.terms = replace(pair.terms, window=64 << 10)
    with (
        pair.live("one"),
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
        ThreadPoolExecutor(1) as pool,
    ):
        orders = broker.declare_queue("orders", durable=True, slots=8192)
        bodies = published(broker, 0, 2000)
        coming = pool.submit(published, broker, 2000, 1000)
        with pair.replica("two") as replica:
            bodies += coming.result(timeout=PATIENCE)
            wait_for(lambda: replica.may_take_over)
            orders.confirm(level="replicated", timeout=PATIENCE)
            assert taken_over(pair, replica) == bodies
    states = [each["state"] for each in pair.lines("one") if each["event"] == "replica"]
    assert states[:2] == ["syncing", "in sync"]


def test_one_that_was_away_gets_what_it_misses(pair: Pair) -> None:
    """Its process ends and begins; segments that nobody needs are kept for it."""
    with (
        pair.live("one"),
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
    ):
        orders = broker.declare_queue("orders", durable=True, slots=4096)
        with pair.replica("two") as replica:
            wait_for(lambda: replica.may_take_over)
            bodies = published(broker, 0, 100)
        bodies += published(broker, 100, 1500)
        taken = 0
        while taken < 1500:
            taken += sum(1 for _ in orders.receive_many(500, timeout=PATIENCE))
        bodies += published(broker, 1600, 10)
        with pair.replica("two") as replica:
            wait_for(lambda: replica.may_take_over)
            orders.confirm(level="replicated", timeout=PATIENCE)
            assert not list(pair.store("two").glob("oldreplica.*"))
            left = bodies[taken:]
            assert taken_over(pair, replica)[-len(left) :] == left
    copied = [each["copied"] for each in pair.lines("one") if each.get("state") == "in sync"]
    assert copied[1] < 4 << 20, "no more than what it misses"


def test_what_the_live_does_not_know_is_set_aside(pair: Pair) -> None:
    """The newest is kept, under a name with a number."""
    pair.terms = replace(pair.terms, saved_journals=1, resync_bytes=0)
    store = pair.store("two")
    for number in range(3):
        foreign = store / "journal"
        if number:
            for each in foreign.glob("*"):
                each.unlink()
        foreign.mkdir(exist_ok=True)
        with Journal(foreign, epoch=1, node=NODE, segment_bytes=64 << 10) as journal:
            journal.message(1, 0, b"of another past")
            journal.commit()
        with (
            pair.live("one", epoch=number + 1),
            shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
            pair.replica("two") as replica,
        ):
            broker.declare_queue("orders", durable=True)
            wait_for(lambda replica=replica: replica.may_take_over)  # type: ignore[misc]
            older = store / f"oldreplica.{number}"
            wait_for(lambda older=older: not older.exists())  # type: ignore[misc]
    assert [each.name for each in store.glob("oldreplica.*")] == ["oldreplica.3"]
    with Replay(store / "oldreplica.3") as replay:
        assert b"of another past" in {each.body for each in replay}


def test_there_is_one_place_unless_more_are_given(pair: Pair, tmp_path: Path) -> None:
    with vhost_for_a_while() as three:
        pair.vhosts["three"] = three
        with pair.live("one") as live, pair.replica("two") as first, ExitStack() as opened:
            wait_for(lambda: first.may_take_over)
            second = opened.enter_context(pair.replica("three"))
            wait_for(lambda: second.state == "waiting")
            # the line follows the state
            wait_for(lambda: pair.lines("three")[-1]["reason"] == "already-replicating")
            assert live.in_sync == ("two",)


def test_a_hung_replica_is_waited_for_once(pair: Pair) -> None:
    """The level falls, is told, and rises again when it goes on."""

    def follow() -> int:
        with pair.replica("two"):
            Event().wait()
        return 0

    pair.terms = replace(pair.terms, replica_timeout=0.5)
    with pair.live("one") as live, shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker:
        orders = broker.declare_queue("orders", durable=True)
        other = Process(follow, pair.folder / "errors")
        try:
            wait_for(lambda: live.in_sync == ("two",))
            orders.publish(b"0", confirm=BOTH, timeout=PATIENCE)
            other.stop()
            orders.publish(b"1", timeout=PATIENCE)
            assert orders.confirm(timeout=PATIENCE) == "disk"
            for _ in range(10):
                orders.publish(b"more", timeout=PATIENCE)
            wait_for(lambda: live.in_sync == ())
            other.go_on()
            wait_for(lambda: live.in_sync == ("two",))
            orders.publish(b"2", confirm=BOTH, timeout=PATIENCE)
            assert orders.confirm(timeout=PATIENCE) == BOTH
        finally:
            other.kill()
    lines = [each for each in pair.lines("one") if each["event"] == "replica"]
    told = [(each["state"], each["confirms"]) for each in lines if each["state"] != "syncing"]
    assert [state for state, _ in told][:3] == ["in sync", "dropped", "in sync"]


def test_a_replica_may_wait_for_its_disk(pair: Pair) -> None:
    pair.terms = replace(pair.terms, replica_ack=ReplicaAck.DISK)
    with (
        pair.live("one"),
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
        pair.replica("two") as replica,
    ):
        broker.declare_queue("orders", durable=True)
        wait_for(lambda: replica.may_take_over)
        bodies = published(broker, 0, 100)
        broker.queue("orders").confirm(level=BOTH, timeout=PATIENCE)
        assert taken_over(pair, replica) == bodies


def test_half_a_copy_does_not_take_over(pair: Pair) -> None:
    with pair.replica("two") as replica, pytest.raises(InvalidArgument, match="not in sync"):
        replica.take_over(2)


def test_a_queue_that_pages_is_not_replicated(pair: Pair) -> None:
    """Its pages would be missing: so the replica counts no more, and says why."""
    (pair.folder / "pages").mkdir()
    with (
        pair.live("one") as live,
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
        pair.replica("two") as replica,
    ):
        wait_for(lambda: live.in_sync == ("two",))
        with Pager(broker, pair.folder / "pages"):
            paging = broker.declare_queue("paging", durable=True, slots=16, when_full="page")
            for number in range(32):
                paging.publish(b"%d" % number, timeout=PATIENCE)
            wait_for(lambda: replica.state == "failed")
            wait_for(lambda: live.in_sync == ())
            assert not replica.may_take_over
            failed = [each for each in pair.lines("two") if each.get("state") == "failed"]
            assert "'paging' pages" in failed[0]["reason"]


def test_a_store_that_cannot_be_read_is_set_aside(pair: Pair) -> None:
    with (
        pair.live("one"),
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
    ):
        broker.declare_queue("orders", durable=True)
        with pair.replica("two") as replica:
            bodies = published(broker, 0, 600)
            wait_for(lambda: replica.may_take_over)
            broker.queue("orders").confirm(level="replicated", timeout=PATIENCE)
        first = min((pair.store("two") / "journal").glob("*.journal"))
        with first.open("r+b") as file:
            file.seek(8192)
            file.write(b"damage")
        with pair.replica("two") as replica:
            wait_for(lambda: replica.may_take_over)
            broker.queue("orders").confirm(level="replicated", timeout=PATIENCE)
            assert [each.name for each in pair.store("two").glob("oldreplica.*")]
            assert taken_over(pair, replica) == bodies


def test_without_enough_replicas_nothing_is_confirmed(pair: Pair) -> None:
    pair.terms = replace(pair.terms, min_insync=2)
    with (
        pair.live("one"),
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
        ThreadPoolExecutor(1) as pool,
    ):
        orders = broker.declare_queue("orders", durable=True)
        with pytest.raises(NotEnoughReplicas, match="min-insync") as told:
            orders.publish(b"0", timeout=0.1)
        assert told.value.pending == (("orders", 0),)
        waiting = pool.submit(orders.publish, b"1", timeout=PATIENCE)
        with pair.replica("two") as replica:
            assert waiting.result(timeout=PATIENCE) == 1
            told.value.confirm(timeout=PATIENCE)
            orders.publish(b"2", confirm=BOTH, timeout=PATIENCE)
            wait_for(lambda: replica.may_take_over)
        wait_for(lambda: "two" not in {each.name for each in orders.gates()})
        with pytest.raises(NotEnoughReplicas):
            orders.publish(b"3", timeout=0.1)
        orders.publish(b"4", confirm="disk", timeout=PATIENCE)


def serial_is_missing(journal: Path) -> bool:
    serials = [int(each.stem, 16) for each in journal.glob("*.journal")]
    return max(serials) - min(serials) >= len(serials)


def test_one_that_cannot_go_on_gets_all(pair: Pair) -> None:
    """A message that is larger than a segment leaves a serial out: perhaps a segment is missing."""
    pair.segment_bytes = 256 << 10
    with (
        pair.live("one"),
        shmbroker.connect(f"shm://{pair.vhosts['one']}") as broker,
    ):
        orders = broker.declare_queue("orders", durable=True)
        with pair.replica("two") as replica:
            wait_for(lambda: replica.may_take_over)
            orders.publish(b"small", confirm=BOTH, timeout=PATIENCE)
        large = bytes(1 << 20)
        orders.publish(large, timeout=PATIENCE)
        # as long as the file is there that was left out, it is seen that nothing is missing
        wait_for(lambda: serial_is_missing(pair.store("one") / "journal"))
        with pair.replica("two") as replica:
            wait_for(lambda: replica.may_take_over, lambda: pair.lines("one")[-3:])
            orders.confirm(level="replicated", timeout=PATIENCE)
            assert taken_over(pair, replica) == [b"small", large]
    assert [each.name for each in pair.store("two").glob("oldreplica.*")] == ["oldreplica.1"]


def test_a_live_ends_while_it_reads_for_a_newcomer(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its worker tells after that finds nothing to go on with."""
    reads, ends, has_read = Event(), Event(), Event()
    read = History.read

    def slow(self: History) -> memoryview:
        reads.set()
        assert ends.wait(PATIENCE)
        return read(self)

    monkeypatch.setattr(History, "read", slow)
    with pair.live("one") as live, ExitStack() as other:
        end = live.end

        def ended() -> None:
            end()
            live.worker.do(has_read.set, lambda _: None)
            ends.set()
            assert has_read.wait(PATIENCE)

        monkeypatch.setattr(live, "end", ended)
        other.enter_context(pair.replica("two"))
        assert reads.wait(PATIENCE)
        (feeding,) = live.thread.ask(lambda: list(live._feedings.values()))
        live.close()
        assert feeding.feed.state is State.OVER
        assert feeding.history is None
        assert feeding.end is None
        assert live.states() == {}
