"""A node that leaves gives all that it has to another one, each message once and in order."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue

import pytest

import shmbroker
from shmbroker import Broker, Empty, Error, Moved, NotFound, Queue
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.ipc.instance.leaving import SOMETHING_STAYED
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.perf.machine.port import free_port
from tests.cli.command import Shell, eventually
from tests.netbridge.clustered.conftest import PASSWORD, PATIENCE, Cluster

HOPS = {"cluster__town__max_hops": 1, "cluster__town__message_load_balancing": "off"}
LEAVES = {**HOPS, "ha__policy": "live-only"}
TO_EAST = {**LEAVES, "ha__scale_down__connectors": ["east"]}


def started(cluster: Cluster, *others: str, **leaver: object) -> None:
    """Others, and `west`, which is to leave."""
    for name in others:
        cluster.add(name, **HOPS).start().becomes("live")
    cluster.add("west", **(leaver or TO_EAST)).start().becomes("live")
    names = (*others, "west")
    for name in names:
        cluster.sees(name, *(each for each in names if each != name))


@contextmanager
def at(cluster: Cluster, name: str) -> Iterator[Broker]:
    with shmbroker.connect(f"shm://{cluster.vhosts[name]}", name="test") as broker:
        yield broker


def bodies(queue: Queue) -> list[bytes]:
    return [bytes(each.body) for each in queue.browse()]


def taken(queue: Queue, count: int) -> list[bytes]:
    found = []
    with suppress(Empty):
        while len(found) < count:
            with queue.get(timeout=PATIENCE) as message:
                found.append(bytes(message.body))
                message.ack()
    return found


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % each for each in range(first, end)]


def stop(cluster: Cluster, *more: str) -> tuple[int, str]:
    """By the command: its exit code, and what it says."""
    done = Shell(cluster.vhosts["west"])("stop", str(cluster["west"].folder), *more)
    return done.code, done.said


def test_everything_moves_with_settings_bindings_and_times(cluster: Cluster) -> None:
    started(cluster, "east")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        already = east.declare_queue("already", durable=True)
        already.publish(b"own")
        durable = west.declare_queue("durable", durable=True, max_deliveries=7, slots=4096)
        shm = west.declare_queue("shm", ttl=3600.0)
        there = west.declare_queue("already", durable=True)
        paged = west.declare_queue("paged", durable=True, when_full="page", slots=64)
        latest = west.declare_queue("latest", last_value=True)
        held = west.declare_queue("held", durable=True)
        west.declare_exchange("news", "topic")
        west.bind("news", "durable", "a.#")
        for body in numbers(0, 1500):
            durable.publish(body, key="k", properties={"kind": "tea"}, confirm="shm")
            shm.publish(body) if len(body) < 3 else None
        durable.publish(b"x" * 1_000_000)
        for body in numbers(0, 400):
            paged.publish(body, confirm="shm")
        there.publish(b"moved")
        for each in (b"1", b"2"):
            latest.publish(each, key="one")
        due = datetime.now(UTC) + timedelta(hours=1)
        durable.publish(b"by day", deliver_at=due)
        shm.publish(b"after", deliver_after=1800.0)
        durable.publish(b"soon", deliver_after=600.0)
        held.publish(b"in hand")
        in_hand = held.get(timeout=PATIENCE)
        temporary = west.temporary_queue()
        temporary.publish(b"mine")
        code, said = stop(cluster)
        assert (code, cluster["west"].ends()) == (0, 0), cluster.story()
        assert "moved 7 of 7 queues" in said
        assert "messages to east" in said
        with pytest.raises(Moved):
            durable.publish(b"late")
        with suppress(Error):
            in_hand.ack()

        found = east.queue("durable")
        assert found.explain()["max_deliveries"].value == 7
        assert found.slots == 4096
        assert bodies(found) == [*numbers(0, 1500), b"x" * 1_000_000]
        first = next(iter(found.browse()))
        assert (first.key, dict(first.properties)) == ("k", {"kind": "tea"})
        assert east.queue("shm").explain()["ttl"].value == 3600.0
        assert not {each.name: each for each in east.queues()}["shm"].durable
        assert bodies(east.queue("shm")) == numbers(0, 100)
        assert bodies(already) == [b"own", b"moved"]
        assert taken(east.queue("paged"), 400) == numbers(0, 400)
        assert bodies(east.queue("latest")) == [b"2"]
        assert bodies(east.queue("held")) == [b"in hand"]
        assert [each.key for each in east.bindings() if each.destination == "durable"] == ["a.#"]
        scheduled = {each.body: each for each in found.scheduled()}
        assert scheduled.keys() == {b"by day", b"soon"}
        assert abs(scheduled[b"by day"].deliver_at - due) < timedelta(seconds=1)
        [after] = east.queue("shm").scheduled()
        assert abs(after.deliver_at - datetime.now(UTC) - timedelta(minutes=30)) < timedelta(
            minutes=5
        )
        assert len({each.id for each in scheduled.values()}) == 2
    for state in ("scaling down", "scaled down"):
        [line] = cluster.logged("west", state)
        assert "2007 messages of 7 queues" in line["detail"]

    node = cluster.told("west")["node"]
    cluster["west"].start().becomes("live")
    told = cluster.sees("west", "east")
    assert told["node"] == node
    with at(cluster, "west") as west:
        here = {each.name for each in west.queues() if each.name[0] != "$"}
        assert here <= {"town.undeliverable"}
        assert not west.exchanges()


def test_what_fills_more_than_half_of_the_memory_goes_as_memory_is_free_again(
    cluster: Cluster,
) -> None:
    started(cluster, "east")
    sent = [b"%d" % each + bytes(2000) for each in range(5000)]
    with at(cluster, "west") as west:
        here = west.declare_queue("orders", durable=True, slots=8192)
        for body in sent:
            here.publish(body, confirm="shm")
        here.confirm()
        code, said = stop(cluster)
        assert code == 0, said
    with at(cluster, "east") as east:
        assert taken(east.queue("orders"), len(sent)) == sent


def test_one_that_has_just_started_gives_everything(cluster: Cluster) -> None:
    """The way to the other node is made while it leaves, and the journal must hear of it."""
    cluster.add("west", **TO_EAST).start().becomes("live")
    with at(cluster, "west") as west:
        west.declare_queue("orders", durable=True).publish(b"1")
    cluster["west"].kill()
    cluster.add("east", **HOPS).start().becomes("live")
    cluster["west"].start().becomes("live")
    code, said = stop(cluster)
    assert (code, cluster["west"].ends()) == (0, 0), f"{said}\n{cluster.story()}"
    with at(cluster, "east") as east:
        assert bodies(east.queue("orders")) == [b"1"]


@pytest.mark.parametrize("name", ["$bridge.one.orders", "$mta.news.far", "$link.00.far"])
def test_what_waits_for_a_broker_of_no_cluster_stays(cluster: Cluster, name: str) -> None:
    """A bridge, an agent or a network link has it: it is confirmed, and in no other queue."""
    started(cluster, "east")
    with at(cluster, "west") as west:
        west.declare_queue("orders", durable=True).publish(b"moved")
        west.declare_queue(name, durable=True).publish(b"waits")
    code, _ = stop(cluster)
    assert (code, cluster["west"].ends()) == (1, SOMETHING_STAYED), cluster.story()
    assert cluster.bodies("east") == [b"moved"]
    [line] = [each for each in cluster["west"].said() if each["event"] == "not scaled down"]
    assert line["why"] == f"waits for another broker: 1 in queue {name!r}"

    cluster["west"].start().becomes("live")
    still_has(cluster, name)


def still_has(cluster: Cluster, name: str) -> None:
    """West, what waits in this queue."""
    with at(cluster, "west") as west:

        def found() -> list[bytes]:  # the queue of a bridge goes back to where it came from
            there: list[bytes] = []
            for each in ("orders", name):
                with suppress(NotFound):
                    there += bodies(west.queue(each))
            return there

        assert eventually(found) == [b"waits"]


def test_it_stays_without_a_table_and_where_the_command_says_so(cluster: Cluster) -> None:
    started(cluster, "east")
    with at(cluster, "west") as west:
        west.declare_queue("orders", durable=True).publish(b"1")
    assert stop(cluster, "--no-scale-down")[0] == 0
    assert cluster["west"].ends() == 0
    cluster["west"].start().becomes("live")
    assert cluster.bodies("west") == [b"1"]
    with at(cluster, "east") as east:
        assert "orders" not in {each.name for each in east.queues()}


def test_without_another_member_everything_stays(cluster: Cluster) -> None:
    cluster.ports["east"] = 1  # nobody is there
    cluster.add("west", **TO_EAST).start().becomes("live")
    with at(cluster, "west") as west:
        west.declare_queue("orders", durable=True).publish(b"1")
        code, said = stop(cluster)
        assert (code, cluster["west"].ends()) == (1, SOMETHING_STAYED)
        assert "not scaled down: none of tcp://127.0.0.1:1 is up" in said
        west.queue("orders").publish(b"2", confirm="shm")  # as after any stop
    cluster["west"].start().becomes("live")
    assert cluster.bodies("west") == [b"1", b"2"]


def test_whoever_does_not_answer_in_time_does_not_get_it(cluster: Cluster) -> None:
    # it has stopped, and its link is up for a while
    more = {"cluster__town__call_timeout": "200ms", "link_defaults__heartbeat_misses": 100}
    cluster.add("east", **HOPS, link_defaults__heartbeat_misses=100).start().becomes("live")
    cluster.add("west", **TO_EAST, **more).start().becomes("live")
    cluster.sees("west", "east")
    with at(cluster, "west") as west:
        west.declare_queue("orders", durable=True).publish(b"1")
        far = cluster["east"].process
        assert far is not None
        far.stop()
        code, said = stop(cluster)
    assert code == 1
    assert "not scaled down: east: no answer in 0.2 s (call-timeout)" in said
    assert cluster["west"].ends() == SOMETHING_STAYED


@pytest.mark.parametrize("named", [True, False])
def test_only_a_node_of_the_group_gets_it(cluster: Cluster, named: bool) -> None:
    blue = {"ha__scale_down__group_name": "blue"}
    more = {"ha__scale_down__connectors": ["east", "north"]} if named else {}
    cluster.looks_for = ("east", "north")
    cluster.add("east", **HOPS).start().becomes("live")
    cluster.add("north", **LEAVES, **blue).start().becomes("live")
    cluster.add("west", **LEAVES, **blue, **more).start().becomes("live")
    cluster.sees("west", "east", "north")
    with at(cluster, "west") as west, at(cluster, "north") as north:
        west.declare_queue("orders", durable=True).publish(b"1")
        assert stop(cluster)[0] == 0, cluster.story()
        assert bodies(north.queue("orders")) == [b"1"]
    with at(cluster, "east") as east:
        assert "orders" not in {each.name for each in east.queues()}


def test_time_that_is_over_leaves_the_rest_where_it_is(cluster: Cluster) -> None:
    started(cluster, "east", **TO_EAST, ha__scale_down__timeout="10s",
            ha__scale_down__commit_interval=50)  # fmt: skip
    with at(cluster, "east") as east, at(cluster, "west") as west:
        there = east.declare_queue("orders", durable=True, slots=64)  # too small
        here = west.declare_queue("orders", durable=True, slots=1024)
        for body in numbers(0, 500):
            here.publish(body, confirm="shm")
        here.confirm()
        here.pause()
        code, said = stop(cluster)
        assert (code, cluster["west"].ends()) == (1, SOMETHING_STAYED)
        assert "ha.scale-down.timeout (10s) is over" in said
        assert bodies(there) == numbers(0, 64)
        shown = Shell(cluster.vhosts["west"])("status", str(cluster["west"].folder))
        assert "timeout (10s) is over" in shown.out
        file = cluster["west"].folder / FILE  # the second stop is to end in time
        file.write_text(file.read_text().replace('\ntimeout = "10s"', '\ntimeout = "60s"'))
        cluster["west"].start().becomes("live")
        found: list[bytes] = []
        reader = threading.Thread(target=lambda: found.extend(taken(there, 500)))
        reader.start()
        with at(cluster, "west") as again:
            assert again.queue("orders").statistics().is_paused
            again.queue("orders").publish(b"500")
        cluster.sees("west", "east")
        assert stop(cluster)[0] == 0, cluster.story()
        reader.join()
        assert found == numbers(0, 500)
        assert taken(there, 1) == [b"500"]


def test_a_second_stop_ends_it_at_once(cluster: Cluster) -> None:
    started(cluster, "east")
    with at(cluster, "east") as east, at(cluster, "west") as west:
        there = east.declare_queue("orders", durable=True, slots=64)  # too small
        here = west.declare_queue("orders", durable=True)
        for body in numbers(0, 300):
            here.publish(body, confirm="shm")
        here.confirm()
        found: list[tuple[int, str]] = []
        first = threading.Thread(target=lambda: found.append(stop(cluster)))
        first.start()
        until_shown(cluster, lambda told: told.get("messages", 0) >= 64)
        shell, folder = Shell(cluster.vhosts["west"]), str(cluster["west"].folder)
        shown = shell("status", folder).out
        assert "handing over" in shown
        assert "queues, 64 of 300 messages to east" in shown
        assert "peer" not in shown
        assert cluster["west"].stop() == SOMETHING_STAYED
        first.join()
        [(code, said)] = found
        assert code == 1
        assert "stopped before" in said
        kept = bodies(there)
    cluster["west"].start().becomes("live")
    with at(cluster, "west") as west:
        names = [each.name for each in west.queues() if each.name.startswith(("$sf.", "orders"))]
        found_here = [body for name in names for body in bodies(west.queue(name))]
    assert sorted(map(int, kept + found_here)) == list(range(300))


def test_a_second_stop_when_everything_has_gone_keeps_what_waits_for_others(
    cluster: Cluster,
) -> None:
    """What is still here is looked at when the journal is written, and that takes a while."""
    name = "$bridge.one.orders"
    cluster.add("east", **HOPS).start().becomes("live")
    run = cluster.add("west", **TO_EAST)
    waits = run.folder / status.RUN / "waits"
    run.before = lambda: is_never_quiet(waits)
    run.start().becomes("live")
    cluster.sees("west", "east")
    with at(cluster, "west") as west:
        west.declare_queue("orders", durable=True).publish(b"moved")
        west.declare_queue(name, durable=True).publish(b"waits")
    status.signalled(run.folder, signal.SIGTERM, 0)
    until_shown(cluster, lambda told: told.get("state") == "done" and waits.exists())
    assert run.stop() == SOMETHING_STAYED, cluster.story()
    assert run.status.why == "it was stopped before everything was moved"
    run.before = lambda: None
    run.start().becomes("live")
    still_has(cluster, name)


def is_never_quiet(waits: Path) -> None:
    """In the broker: the journal is never written; the file says that somebody waits for that."""

    def quiet(_: Journaler) -> None:
        waits.touch()
        threading.Event().wait()

    Journaler.quiet = quiet  # type: ignore[method-assign]


@pytest.mark.parametrize("victim", ["east", "west"])
def test_each_is_there_once_whoever_is_killed_in_the_middle(cluster: Cluster, victim: str) -> None:
    started(cluster, "east")
    kept = {"durable": True, "max_deliveries": None}
    with at(cluster, "east") as east, at(cluster, "west") as west:
        small = east.declare_queue("orders", slots=128, **kept)  # so that it is in the middle
        here = west.declare_queue("orders", slots=4096, **kept)
        plain = west.declare_queue("plain", slots=1024)
        for body in numbers(0, 1000):
            here.publish(body, confirm="shm")
        for body in numbers(0, 300):
            plain.publish(body)
        here.publish(b"later", deliver_after=3600.0)
        here.confirm()
    run = cluster["west"]
    stopping = threading.Thread(target=lambda: stop(cluster))
    stopping.start()
    until_shown(cluster, lambda told: told.get("messages", 0) >= 128)
    with at(cluster, "east") as east:
        found = taken(east.queue("orders"), 100)
    cluster[victim].kill()
    if victim == "west":
        stopping.join()
        run.start().becomes("live")
        cluster.sees("west", "east")
        stopping = threading.Thread(target=lambda: stop(cluster))
        stopping.start()
    else:
        cluster["east"].start().becomes("live")
    with at(cluster, "east") as east:
        small = east.queue("orders")
        found += taken(small, 1000 - len(found))
        stopping.join()
        assert run.ends() == 0, cluster.story()
        assert found == numbers(0, 1000)
        assert small.statistics().depth == 0
        assert bodies(east.queue("plain")) == numbers(0, 300)
        assert [each.body for each in small.scheduled()] == [b"later"]


def until_shown(cluster: Cluster, holds) -> None:  # type: ignore[no-untyped-def]
    folder = cluster["west"].folder / status.RUN
    watch, late = Watch(folder), time.monotonic() + PATIENCE
    try:
        while not holds(read_whole(folder / "scale-down")):
            assert time.monotonic() < late, cluster.story()
            watch.wait(late - time.monotonic())
    finally:
        watch.close()


def test_what_a_busy_program_was_told_is_safe_is_there(cluster: Cluster) -> None:
    started(cluster, "east")
    confirmed: list[bytes] = []
    begun = threading.Event()

    def publishes() -> None:
        with at(cluster, "west") as west:
            queue = west.declare_queue("orders", durable=True, slots=1 << 14)
            for body in numbers(0, 1 << 14):
                queue.publish(body)
                confirmed.append(body)
                if len(confirmed) == 50:
                    begun.set()

    def run() -> None:
        with suppress(Error):
            publishes()

    program = threading.Thread(target=run)
    program.start()
    assert begun.wait(PATIENCE)
    code, said = stop(cluster)
    program.join()
    assert code == 0, said
    with at(cluster, "east") as east:
        found = bodies(east.queue("orders"))
    assert found == numbers(0, len(found))  # in order, and each once
    assert len(found) >= len(confirmed) >= 50


def test_three_brokers_with_messages_between_them(cluster: Cluster) -> None:
    strict = {**HOPS, "cluster__town__message_load_balancing": "strict"}
    cluster.add("east", **strict).start().becomes("live")
    cluster.add("north", **strict).start().becomes("live")
    cluster.add("west", **{**TO_EAST, **strict}).start().becomes("live")
    cluster.sees("west", "east", "north")
    cluster.sees("north", "east", "west")
    names = ("east", "north", "west")
    for name in names:
        with at(cluster, name) as broker:
            broker.declare_queue("orders", durable=True, slots=1 << 12)
    for name in names:
        cluster.copied(name, lambda queues: {("orders", each, False) for each in names} <= queues)
    stopping = threading.Event()
    sent: dict[str, list[bytes]] = {"north": [], "west": []}

    def publishes(name: str) -> None:
        with suppress(Error), at(cluster, name) as broker:
            queue = broker.queue("orders")
            for number in range(900):
                body = f"{name} {number}".encode()
                queue.publish(body)
                sent[name].append(body)
                if number == 300:
                    stopping.set()

    programs = [threading.Thread(target=publishes, args=(each,)) for each in sent]
    for each in programs:
        each.start()
    assert stopping.wait(PATIENCE)
    code, said = stop(cluster)
    assert code == 0, f"{said}\n{cluster.story()}"
    for each in programs:
        each.join()
    wanted = sent["north"] + sent["west"]
    late = time.monotonic() + PATIENCE
    while True:
        found = cluster.bodies("east") + cluster.bodies("north")
        if set(found) >= set(wanted):
            break
        assert time.monotonic() < late, sorted(set(wanted) - set(found))
        time.sleep(0.05)  # nothing tells that they have arrived
    assert len(found) == len(set(found))


def for_programs(cluster: Cluster, **others: object) -> str:
    """East, with other settings, and west, which is to leave: where programs reach it."""
    ports = {name: free_port() for name in ("east", "west")}
    for name, more in (("east", {**HOPS, **others}), ("west", TO_EAST)):
        cluster.add(
            name, **more,
            acceptors__apps__uri=f"tcp://127.0.0.1:{ports[name]}",
            acceptors__apps__roles=["client"],
            credentials__apps__password=PASSWORD,
            credentials__apps__role="client",
        ).start().becomes("live")  # fmt: skip
    cluster.sees("west", "east")
    return f"tcp://127.0.0.1:{ports['west']}"


def test_programs_on_other_hosts_go_on_at_the_other_node(cluster: Cluster) -> None:
    with shmbroker.connect(for_programs(cluster), user="apps", password=PASSWORD) as remote:
        queue = remote.declare_queue("orders", durable=True)
        queue.publish(b"1")
        assert stop(cluster)[0] == 0, cluster.story()
        queue.publish(b"2")
    assert cluster.bodies("east") == [b"1", b"2"]


def test_programs_on_other_hosts_are_told_where_they_are_to_go(cluster: Cluster) -> None:
    url, told = for_programs(cluster), SimpleQueue[tuple[str, str, str]]()
    with ExitStack() as opened:
        for mode in ("automatic", "application"):  # on a busy machine nobody is taken for lost
            uri = f"failover:({url}?heartbeat-interval=60s)?failover-mode={mode}"
            remote = opened.enter_context(shmbroker.connect(uri, user="apps", password=PASSWORD))
            remote.on_event(lambda event, at, mode=mode: told.put((mode, event.value, at)))
        assert stop(cluster)[0] == 0, cluster.story()
        events = [told.get(timeout=PATIENCE) for _ in range(4)]
    of = {mode: [each[1:] for each in events if each[0] == mode] for mode, *_ in events}
    [(moved, east)] = of["application"]
    assert (moved, east.startswith("tcp://127.0.0.1:"), east != url) == ("moved", True, True)
    assert of["automatic"][0] == ("moving", east)
    assert [event for event, _ in of["automatic"][1:]] == [
        "failure-detected", "failover-completed"
    ]  # fmt: skip


def test_what_is_published_again_at_the_other_node_is_dropped(cluster: Cluster) -> None:
    with (
        shmbroker.connect(for_programs(cluster), user="apps", password=PASSWORD) as far,
        at(cluster, "west") as west,
    ):
        orders = west.declare_queue("orders", durable=True)
        for body in numbers(0, 300):
            orders.publish(body, message_id=body.decode(), confirm="shm")
        assert taken(orders, 200) == numbers(0, 200)
        plain, remote = west.declare_queue("plain"), far.queue("orders")
        remote.publish(b"far", message_id="far")
        for number in (1, 2, 9):
            plain.producer("meter").publish(b"%d" % number, sequence=number)
        assert taken(plain, 3) == [b"1", b"2", b"9"]
        assert stop(cluster)[0] == 0, cluster.story()
        assert remote.publish(b"far", message_id="far") is None
        assert remote.publish(b"anew", message_id="anew") is not None
    wanted = [*numbers(200, 300), b"far", b"anew"]
    for _ in range(2):
        with at(cluster, "east") as east:
            orders, plain = east.queue("orders"), east.queue("plain")
            for each in (0, 199, 200, 299):
                assert orders.publish(b"again", message_id=str(each)) is None
            meter = plain.producer("meter")
            assert (meter.last_sequence, meter.publish(b"9", sequence=9)) == (9, None)
            assert bodies(orders) == wanted
            assert not bodies(plain)
        cluster["east"].kill()
        cluster["east"].start().becomes("live")
    cluster["west"].start().becomes("live")
    with at(cluster, "west") as west:
        anew = west.declare_queue("orders", durable=True)
        assert anew.publish(b"0", message_id="0") is not None, "it begins with nothing"
