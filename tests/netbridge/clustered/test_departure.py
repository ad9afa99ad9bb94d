"""To whom a node that leaves may give what it has, and what is said if there is nobody."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

import shmbroker
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.instance import moving
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.leaving import count_in, that_go
from shmbroker.ipc.instance.store import begin_history, history_of
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.cluster.said import Answers, Leaving, Makes
from shmbroker.netbridge.cluster.scale_down import ScaleDown
from shmbroker.netbridge.clustered import departure
from shmbroker.netbridge.clustered.departure import Departure, Lost
from shmbroker.netbridge.clustered.home import Home
from shmbroker.netbridge.clustered.setup import Setup, _group_name, setup
from shmbroker.netbridge.clustered.towards import towards
from shmbroker.netbridge.config.config import load
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.serving.travelling import name_of, opened
from shmbroker.netbridge.wire.words import Standing
from tests.netbridge.cluster.talk import node_of


def test_who_is_up_by_another_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connector here may have another name of a host than that one tells itself."""
    monkeypatch.setattr(departure, "FOUND_SECONDS", 0.0)
    members: Any = SimpleNamespace(reached=lambda: [(node_of("east"), "tcp://east:1")])
    wanted = ScaleDown(("tcp://10.0.0.1:1",), "", None, None)
    lines: list[Any] = []
    left = Departure(members, "town", wanted, lines.append, lambda *_: None).run(
        lambda *_: None, lambda *_: []
    )
    assert left.why == (
        "not scaled down: none of tcp://10.0.0.1:1 is up, and these are, by their own connectors: "
        "tcp://east:1"
    )
    members.reached = list
    left = Departure(members, "town", wanted, lines.append, lambda *_: None).run(
        lambda *_: None, lambda *_: []
    )
    assert left.why == "not scaled down: none of tcp://10.0.0.1:1 is up"


@pytest.mark.parametrize(
    ("by_scale_down", "by_replication", "group"),
    [("blue", "red", "blue"), ("", "red", "red"), (None, "red", "red"), ("", None, "")],
)
def test_a_broker_is_in_the_group_that_one_of_its_tables_says(
    by_scale_down: str | None, by_replication: str | None, group: str
) -> None:
    network: Any = SimpleNamespace(scale_down=None, replication=None)
    if by_scale_down is not None:
        network.scale_down = SimpleNamespace(group=by_scale_down)
    if by_replication is not None:
        network.replication = SimpleNamespace(group_name=by_replication)
    assert _group_name(network) == group


@pytest.mark.parametrize(
    "name", ["$sf.town.west", "$sf.town.AB", "$sf.town.00", towards("town.new", node_of("west"))]
)
def test_what_is_in_a_queue_that_only_looks_like_one_towards_a_node_is_not_waited_for(
    broker: shmbroker.Broker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It leads to nobody.  That it is still here is told at the end, as of all that stays."""
    monkeypatch.setattr(departure, "LOST_SECONDS", 0.0)
    east = node_of("east")
    broker.declare_queue(towards("town", east))
    broker.declare_queue(name).publish(b"")
    messages = SimpleNamespace(
        standing=0, is_up=lambda node: node == east, goes_home=lambda node: False
    )
    members: Any = SimpleNamespace(messages=messages, name_of=lambda node: node.hex())
    wanted = ScaleDown((), "", None, None)
    leaves = Departure(members, "town", wanted, lambda line: None, lambda *_: None)
    leaves._drain(broker, [], east)


def test_what_is_moved_and_waits_for_room_is_waited_for(broker: shmbroker.Broker) -> None:
    east = node_of("east")
    transaction = broker.transaction()
    transaction.publish(broker.declare_queue(towards("town", east)), b"")

    def is_up(node: bytes) -> bool:
        with suppress(shmbroker.TransactionEnded):
            transaction.rollback()
        return node == east

    messages = SimpleNamespace(standing=0, is_up=is_up, goes_home=lambda node: False)
    members: Any = SimpleNamespace(messages=messages, name_of=lambda node: node.hex())
    wanted = ScaleDown((), "", None, None)
    leaves = Departure(members, "town", wanted, lambda line: None, lambda *_: None)
    leaves._drain(broker, [], east)
    with pytest.raises(shmbroker.TransactionEnded):
        transaction.rollback()


def east(folder: Path, role: str = "client", *, is_restored: bool = False) -> Setup:
    there = "tcp://127.0.0.1:2"
    create(folder, {
        "instance.name": "east", "instance.vhost": "east",
        "cluster.town.connector": "east", "cluster.town.user": "town",
        "cluster.town.password": "correct horse", "cluster.town.static-connectors": ["west"],
        "connectors.east.uri": "tcp://127.0.0.1:1", "connectors.west.uri": "tcp://127.0.0.1:3",
        "acceptors.town.uri": "tcp://127.0.0.1:1", "acceptors.town.roles": ["cluster"],
        "acceptors.others.uri": there, "acceptors.others.roles": [role],
        "credentials.site.password": "correct horse", "credentials.site.role": role,
    })  # fmt: skip
    config, network = load(folder)
    known, _ = credentials(network)
    if is_restored:
        config.store.mkdir(exist_ok=True)
        begin_history(config.store)
    found = setup(config, Given(network, known), there)
    assert found is not None
    return found


@pytest.mark.parametrize(("role", "told"), [("client", True), ("viewer", True), ("peering", False)])
def test_no_programs_are_sent_to_a_broker_that_admits_none(
    tmp_path: Path, role: str, told: bool
) -> None:
    assert east(tmp_path / "east", role).programs == ("tcp://127.0.0.1:2" if told else "")


def test_a_node_ships_in_the_history_of_its_store(tmp_path: Path) -> None:
    """After a backup was restored positions are used again: the others drop nothing as known."""
    assert east(tmp_path / "new").ours.history == 0
    restored = east(tmp_path / "restored", is_restored=True)
    assert restored.ours.history == history_of(restored.config.store) != 0


# --- what is acknowledged in transactions of programs on other hosts ------------------------------

WEST, EAST, NORTH = node_of("west"), node_of("east"), node_of("north")
SESSION = b"s" * 16
HELD = name_of(SESSION, 1, "orders")
ROW = {"held": SESSION, "number": 1, "queues": {"orders": [0]}}


class Successors:
    """In the place of the members of the cluster: what each of them was told."""

    def __init__(self, broker: shmbroker.Broker) -> None:
        self.told: dict[bytes, list[Any]] = {EAST: [], NORTH: []}
        self.lost: set[bytes] = set()
        self.meanwhile: Callable[[], object] = lambda: None
        """What programs do while others look at what is here."""
        self.messages = SimpleNamespace(
            broker=broker, standing=0, is_up=lambda node: node not in self.lost,
            goes_home=lambda node: False, leaves=lambda: None, stays=lambda go: None,
        )  # fmt: skip

    def looks(self, then: Any) -> None:
        self.meanwhile()
        then()

    def asks(self, node: bytes, word: Any) -> Answers:
        said: Leaving = word(1)
        if node in self.lost:
            return Answers(1, "the link to it was lost", "")
        if isinstance(said, Makes):
            self.told[node] += msgpack.unpackb(said.rows)
        return Answers(1, "", "")

    def name_of(self, node: bytes) -> str:
        return node.hex()


@pytest.fixture
def leaves(broker: shmbroker.Broker, tmp_path: Path) -> Iterator[tuple[Departure, Successors]]:
    """What is held of `orders` is here."""
    folder = tmp_path / "journal"
    folder.mkdir()
    with Journaler(folder, node=b"n" * 16) as journaler:
        journaler.start(broker, 1)
        members: Any = Successors(broker)
        wanted = ScaleDown((), "", None, None)
        for node in (EAST, NORTH):
            broker.declare_queue(towards("town", node))
        broker.declare_queue("orders")
        opened(broker, HELD).publish(b"held")
        yield Departure(members, "town", wanted, lambda _: None, lambda *_: None), members


def test_transactions_go_to_the_next_node_if_the_first_is_lost_before_anything_went(
    leaves: tuple[Departure, Successors], broker: shmbroker.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    departs, members = leaves
    ended: list[Any] = []
    monkeypatch.setattr(departs, "_arrives", lambda node, _, held: ended.append((node, held)))

    def ends(node: bytes, name: str, uri: str) -> list[Any]:
        members.lost.add(EAST)
        return [ROW]

    with pytest.raises(Lost):
        departs._programs_go(EAST, "tcp://east", broker, lambda *_: None, ends)
    departs._programs_go(NORTH, "tcp://north", broker, lambda *_: None, ends)
    assert ended == [(NORTH, [ROW])]
    departs._programs_go(NORTH, "tcp://north", broker, lambda *_: None, ends)
    assert ended[1:] == [(NORTH, [])], "some of it went there"


def test_what_programs_make_until_they_go_is_moved(
    leaves: tuple[Departure, Successors], broker: shmbroker.Broker
) -> None:
    departs, members = leaves
    url = f"shm://{broker.vhost}"
    with shmbroker.connect(url) as program, shmbroker.connect(url) as ours:

        def work() -> None:
            program.declare_queue("late").publish(b"confirmed")

        def parts(uri: str, remains: shmbroker.Broker) -> None:
            moving.departs(broker.vhost, uri, ours, remains)

        members.meanwhile = work
        departs._programs_go(EAST, "", broker, parts, lambda *_: [])
        for each in (broker, ours):
            found = {queue.name: count_in(queue) for queue in that_go(each)}
            assert found == {HELD: 1, "late": 1, "orders": 0}
    moving.serves(broker.vhost)


def test_what_is_paused_stays_so_until_it_is_elsewhere(
    leaves: tuple[Departure, Successors], broker: shmbroker.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a stop that goes on to another node, or that fails."""
    monkeypatch.setattr(departure, "AHEAD", 1)
    departs, members = leaves
    orders = broker.queue("orders")
    orders.pause()
    for body in (b"1", b"2"):
        orders.publish(body)
    assert departs._moves(orders, broker.queue(towards("town", EAST))) == 1
    assert orders.statistics().is_paused
    departs._told_of(NORTH, broker)
    [told] = [each for each in members.told[NORTH] if each.get("queue") == "orders"]
    assert told["paused"]


def test_what_has_expired_in_a_paused_queue_is_not_waited_for(
    leaves: tuple[Departure, Successors], broker: shmbroker.Broker
) -> None:
    """It is not moved, and nobody else expires it: it would be waited for without end."""
    departs, _ = leaves
    bills = broker.declare_queue("bills", expiry_queue="late")
    bills.pause()
    bills.publish(b"late", ttl=1e-6)
    bills.publish(b"in time")
    late, _ = bills.browse()
    while time.monotonic_ns() <= late.expires_ns:
        pass
    assert departs._moves(bills, broker.queue(towards("town", EAST))) == 1
    assert count_in(bills) == 0
    assert [each.body for each in broker.queue("late").browse()] == [b"late"]
    assert bills.statistics().is_paused


def test_what_is_held_goes_to_its_queue_at_a_node_to_which_no_programs_come(
    leaves: tuple[Departure, Successors], broker: shmbroker.Broker
) -> None:
    """Nobody asks for it there, and nobody looks whether somebody does."""
    departs, _ = leaves
    departs._programs_go(EAST, "", broker, lambda *_: None, lambda *_: [])
    held = broker.queue(HELD)
    assert departs._moves(held, broker.queue(towards("town", EAST))) == 1
    west = Identity(WEST, bytes(16), "west", Standing.LIVE, 0)
    there = Home(broker, EAST, towards("town", EAST), west, lambda _: None, lambda _: None)
    try:
        with broker.queue("orders").get(timeout=60) as message:
            assert message.body == b"held"
    finally:
        there.close()
