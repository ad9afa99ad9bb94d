"""A reader that the catalog is changed under at any step; a changer that dies at any step."""

from __future__ import annotations

import msgpack
import pytest

from shmbroker.core import layout
from shmbroker.core.codes import NOT_FOUND
from tests.core.interpreted import ROOM_AT, ROOM_BYTES, Interpreted, Killed

QUEUES, EXCHANGES, BINDINGS = layout.QUEUES, layout.EXCHANGES, layout.BINDINGS


def put_queue(machine: Interpreted, index: int, name: bytes, slots: int) -> int:
    made: int = machine.queue_put(
        0, index, machine.place(name), len(name), slots, slots, slots, slots, slots
    )
    assert made > 0
    return made


def put_exchange(machine: Interpreted, index: int, kind: int, alternate: int = 0) -> int:
    made: int = machine.exchange_put(0, index, layout.CATALOG_BYTES, 0, kind, 0, alternate)
    assert made > 0
    return made


def put_binding(machine: Interpreted, source: int, queue: int, key: bytes, target: int = 0) -> int:
    made: int = machine.binding_put(
        0, 0, source, QUEUES, queue, 0, machine.place(key), len(key), 0, 0, target
    )
    assert made > 0
    return made


def test_an_entry_is_read_whole() -> None:
    machine = Interpreted()
    buffer = machine.place(bytes(layout.ENTRY_BYTES))
    names = {3: b"a" * 40, 4: b"b" * 40}
    put_queue(machine, 0, names[3], 3)

    def read() -> int:
        reference: int = machine.row_copy(0, QUEUES, 0, buffer)
        return reference

    for step in range(machine.steps(read)):
        made = {3: machine.row_reference(0, QUEUES, 0)}

        def change(made: dict[int, int] = made) -> None:
            machine.row_remove(0, QUEUES, 0)
            made[4] = put_queue(machine, 0, names[4], 4)

        reference = machine.interrupted(step, change, read)
        entry = machine.read(buffer, layout.ENTRY_BYTES)
        slots = entry[layout.QUEUE_SLOTS_AT]
        assert reference == made[slots]
        assert entry[layout.QUEUE_IDENTITY_LOW_AT] == slots
        assert entry[layout.ENTRY_NAME_AT :].startswith(names[slots])
        machine.row_remove(0, QUEUES, 0)
        put_queue(machine, 0, names[3], 3)
        machine._room = buffer + layout.ENTRY_BYTES


@pytest.mark.parametrize("kind", [layout.DIRECT, layout.TOPIC, layout.FANOUT])
def test_a_route_is_of_before_or_of_after(kind: int) -> None:
    """The binding's row is used again for another exchange and queue."""
    machine = Interpreted()
    right, wrong = put_queue(machine, 0, b"right", 3), put_queue(machine, 1, b"wrong", 4)
    ours, theirs = put_exchange(machine, 0, kind), put_exchange(machine, 1, kind)
    key = machine.place(b"a.b")
    visited = machine.place(bytes(layout.ROUTE_VISITED_BYTES))
    found = machine.place(bytes(64))
    room = machine._room

    def search() -> int:
        count: int = machine.route(0, 0, key, 3, 0, 0, visited, found, 8)
        return count

    def change() -> None:
        machine.row_remove(0, BINDINGS, 0)
        put_binding(machine, theirs, wrong, b"a.b")

    put_binding(machine, ours, right, b"a.b")
    outcomes = set()
    for step in range(machine.steps(search)):
        count = machine.interrupted(step, change, search)
        assert count in (0, 1)
        if count:
            assert int.from_bytes(machine.read(found, 8), "little") == right
        outcomes.add(count)
        machine.row_remove(0, BINDINGS, 0)
        put_binding(machine, ours, right, b"a.b")
        machine._room = room
    assert outcomes == {0, 1}


def test_a_target_is_that_of_the_binding_that_took() -> None:
    """The row of a user's binding is used again for one of the cluster, in the same place."""
    machine = Interpreted()
    queue, way = put_queue(machine, 0, b"queue", 3), put_queue(machine, 1, b"$sf.c.n", 4)
    exchange, key = put_exchange(machine, 0, layout.TOPIC), machine.place(b"a.b")
    visited = machine.place(bytes(layout.ROUTE_VISITED_BYTES))
    found = machine.place(bytes(8 * layout.ROUTE_WORDS))
    room = machine._room

    def search() -> int:
        count: int = machine.route(0, 0, key, 3, 0, 0, visited, found, 1)
        return count

    def change() -> None:
        machine.row_remove(0, BINDINGS, 0)
        put_binding(machine, exchange, way, b"a.b", 7)

    put_binding(machine, exchange, queue, b"a.b")
    outcomes = set()
    for step in range(machine.steps(search)):
        if machine.interrupted(step, change, search):
            words = [machine.read(found + 8 * each, 8) for each in range(layout.ROUTE_WORDS)]
            outcomes.add(tuple(int.from_bytes(each, "little") for each in words))
        machine.row_remove(0, BINDINGS, 0)
        put_binding(machine, exchange, queue, b"a.b")
        machine._room = room
    assert outcomes == {(queue, 0), (way, 7)}


def test_an_exchange_is_searched_as_it_was_or_as_it_is() -> None:
    """Its row is used again for an exchange that has an alternate; neither has a binding."""
    machine = Interpreted()
    queue = put_queue(machine, 0, b"queue", 3)
    alternate = put_exchange(machine, 1, layout.FANOUT)
    put_binding(machine, alternate, queue, b"")
    put_exchange(machine, 0, layout.TOPIC)
    visited = machine.place(bytes(layout.ROUTE_VISITED_BYTES))
    found = machine.place(bytes(64))

    def search() -> int:
        count: int = machine.route(0, 0, 0, 0, 0, 0, visited, found, 8)
        return count

    def change() -> None:
        machine.row_remove(0, EXCHANGES, 0)
        put_exchange(machine, 0, layout.DIRECT, alternate)

    outcomes = []
    for step in range(machine.steps(search)):
        outcomes.append(machine.interrupted(step, change, search))
        machine.row_remove(0, EXCHANGES, 0)
        put_exchange(machine, 0, layout.TOPIC)
    assert set(outcomes) == {0, 1}
    assert outcomes == sorted(outcomes, reverse=True), "once it was looked at, it is the old one"


def test_a_queue_is_there_or_not_wherever_its_maker_dies() -> None:
    machine = Interpreted()
    name = machine.place(b"orders")

    def put() -> int:
        made: int = machine.queue_put(0, 0, name, 6, 16, 0, 1, 2, 3)
        return made

    def die() -> None:
        raise Killed

    put()  # so that high is raised already
    machine.row_remove(0, QUEUES, 0)
    outcomes = []
    for step in range(machine.steps(put)):
        machine.row_remove(0, QUEUES, 0)
        with pytest.raises(Killed):
            machine.interrupted(step, die, put)
        found = machine.row_find(0, QUEUES, name, 6)
        assert found in (0, NOT_FOUND)
        assert machine.row_free(0, QUEUES) == (0 if found == NOT_FOUND else 1)
        outcomes.append(found)
    assert outcomes == sorted(outcomes), "once there, it is there"
    assert set(outcomes) == {0, NOT_FOUND}


def test_a_new_table_survives_a_death_at_every_step() -> None:
    """As above, in a table that was never used: its rows must not be hidden by `high`."""
    for step in range(200):
        machine = Interpreted()
        name = machine.place(b"orders")

        def put(machine: Interpreted = machine, name: int = name) -> int:
            made: int = machine.queue_put(0, 0, name, 6, 16, 0, 1, 2, 3)
            return made

        def die() -> None:
            raise Killed

        try:
            machine.interrupted(step, die, put)
        except Killed:
            live = machine.row_reference(0, QUEUES, 0) > 0
            assert (machine.row_find(0, QUEUES, name, 6) == 0) == live
        else:
            return
    pytest.fail("the kernel has more steps than we tried")


def test_arguments_that_are_replaced_while_they_are_read_lead_nowhere_else() -> None:
    """The row of a binding is used again for another one, whose bytes end elsewhere."""
    machine = Interpreted()
    packed = msgpack.packb({"region": "us"})
    properties = machine.place(packed)
    ours = msgpack.packb({"x-match": "any", "region": "eu", "size": 300})
    theirs = msgpack.packb({"t": b"\xc1" * 60})[: len(ours)]
    at = machine._room = ROOM_AT + ROOM_BYTES - len(ours)  # behind them is no memory

    def change(arguments: bytes = theirs) -> None:
        machine._room = at
        machine.place(arguments)

    def match() -> int:
        held: int = machine.headers_match(at, len(ours), properties, len(packed), 1)
        return held

    change(ours)
    for step in range(machine.steps(match)):
        change(ours)
        assert machine.interrupted(step, change, match) in (0, 1)
