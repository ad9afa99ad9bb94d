"""What was decided of bindings and turns is carried out, also if that fails at first."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker import Broker
from shmbroker.core import codes
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Error, TooMany
from shmbroker.ipc.instance.leaving import delete_own
from shmbroker.ipc.queue.grouped import ROUTES
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.cluster.balancing import HERE, Member
from shmbroker.netbridge.cluster.grouping import Grouping
from shmbroker.netbridge.clustered import balancing, messages
from shmbroker.netbridge.clustered.looking import Looked
from shmbroker.netbridge.clustered.stand_ins import StandIns, stand_in
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.wire.words import Standing
from tests.netbridge.cluster.talk import Town, node_of
from tests.netbridge.clustered.test_balancing import sets_in


def test_what_could_not_be_carried_out_is_tried_again_and_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuses, tried, changes = [True], [0], [0]
    lines: list[dict[str, Any]] = []
    clock = [100.0]
    monkeypatch.setattr(messages, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def sets(wanted: object) -> None:
        tried[0] += 1
        if refuses[0]:
            raise TooMany("no room")

    def do(work: Any, told: Any) -> None:
        try:
            made = work()
        except Error as error:  # as the worker has it
            made = error
        told(made)

    def changed() -> None:
        changes[0] += 1

    setup: Any = SimpleNamespace(cluster=SimpleNamespace(name="town", hops=1, balancing="strict"))
    made = messages.Messages(
        SimpleNamespace(), SimpleNamespace(do=do), setup,  # type: ignore[arg-type]
        lambda line: lines.append(dict(line)), changed,
    )  # fmt: skip
    faces: Any = SimpleNamespace(
        looks=lambda machine: None, up=frozenset(), made=frozenset(), sets=sets,
        leads_to=frozenset, kept_in_turn=lambda names, settled: frozenset(),
        carries=lambda carried, settled: None, passes_on=lambda turns, holders: None,
        lacking=frozenset(), routes_anew=False, orphans=frozenset(),
    )  # fmt: skip
    stands_in: Any = SimpleNamespace(sets=dict, passes_on=faces.passes_on, lacking=frozenset())
    made._ways = made._topics = made._balancing = faces
    made._stand_ins = stands_in
    machine = Town().add("east")
    made.begins(node_of("east"))
    made.sees(Looked([], [], {}))

    made.looks(machine)
    made.looks(machine)
    assert (tried, changes) == ([1], [1]), "not in a hot loop"
    clock[0] = made.deadline
    made.looks(machine)
    assert tried == [2]
    assert [line["state"] for line in lines] == ["not carried"]
    refuses[0] = False
    clock[0] = made.deadline
    made.looks(machine)
    assert tried == [3]
    clock[0] += 5.0
    made.looks(machine)
    assert tried == [3], "it is done"
    for each in (faces, stands_in):
        each.lacking, made._known, before = frozenset({"orders"}), None, tried[0]
        made.looks(machine)
        clock[0] = made.deadline
        made.looks(machine)
        assert tried == [before + 2], "what lacks is tried again"
        each.lacking = frozenset()
        clock[0] = made.deadline
        made.looks(machine)
    assert made.deadline > clock[0] + 5.0


def test_what_a_node_that_leaves_has_decided_before_is_carried_out_before_it_ends() -> None:
    """Sets are of one thread at a time; and what is set behind that would stay."""
    done: list[str] = []
    went_on = threading.Event()

    def sets() -> None:
        went_on.wait(60.0)
        done.append("sets")

    setup: Any = SimpleNamespace(cluster=SimpleNamespace(name="town", hops=1, balancing="strict"))
    with NetworkThread() as thread:
        worker = Worker(thread.call)
        made = messages.Messages(thread, worker, setup, lambda line: None, lambda: None)
        made._balancing = SimpleNamespace(end=lambda: done.append("end"))  # type: ignore[assignment]
        made._decided.append(sets)
        worker.do(made._carry_out, made._carried)
        leaving = threading.Thread(target=made.leaves)
        leaving.start()
        while not made._is_leaving:
            time.sleep(0.01)  # nothing tells
        went_on.set()
        leaving.join(60.0)
        worker.close()
    assert done == ["sets", "end"]


def test_what_refuses_something_at_the_beginning_is_told_once_and_tried_again(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    """Else the network of a broker would end where a table is full, or a queue is another one."""
    broker.declare_queue(ROUTES, slots=64)
    lines: list[dict[str, Any]] = []
    cluster = SimpleNamespace(
        name="town", hops=1, balancing="strict", allow_direct_connections_only=False,
    )  # fmt: skip
    setup: Any = SimpleNamespace(
        cluster=cluster, vhost=vhost, ways=tmp_path / "ways",
        grouping=Grouping("mine", True, 5.0, None, 30.0),
    )  # fmt: skip
    setup.ours = Identity(bytes(16), bytes(16), "east", Standing.NONE, 0)
    with NetworkThread() as thread:
        worker = Worker(thread.call)
        made = messages.Messages(
            thread, worker, setup, lambda line: lines.append(dict(line)), lambda: None
        )
        made.begins(node_of("east"))
        assert not made.open()
        assert not made.open()
        assert [line["state"] for line in lines] == ["not carried"]
        assert ROUTES in lines[0]["detail"]
        assert made.broker is None
        delete_own(broker, ROUTES)
        assert made.open()
        assert thread.ask(lambda: made.groups) is not None
        made.close()
        worker.close()


def test_a_set_that_cannot_be_had_is_told_once_and_had_later(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[dict[str, Any]] = []
    made = balancing.Balancing(broker, "town", lambda line: lines.append(dict(line)))
    which = {}
    for name in ("orders", "trades"):
        queue = broker.declare_queue(name)
        which[name] = name, int(lib.sb_queue_reference(queue._queue))
    here = (Member(HERE, is_eligible=True),)

    class Full:
        """There is no room for that of orders."""

        def __getattr__(self, name: str) -> Any:
            return getattr(lib, name)

        def sb_queue_balance(self, queue: Any, *given: Any) -> int:
            if lib.sb_queue_reference(queue) == which["orders"][1]:
                return codes.TABLE_FULL
            return int(lib.sb_queue_balance(queue, *given))

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(balancing, "lib", Full())
        for _ in range(2):
            made.sets(dict.fromkeys(which.values(), here))
    assert [line["queue"] for line in lines] == ["orders"]
    assert made.lacking == {which["orders"]}
    assert sets_in(broker) == 1
    made.sets(dict.fromkeys(which.values(), here))
    assert made.lacking == frozenset()
    assert sets_in(broker) == 2


def test_a_stand_in_that_cannot_be_made_is_told_once_and_made_later(broker: Broker) -> None:
    lines: list[dict[str, Any]] = []
    nobody: Any = SimpleNamespace(stands_for={})
    made = StandIns(nobody, broker, nobody, nobody, lambda line: lines.append(dict(line)))
    broker.declare_queue(stand_in("orders"), slots=2)
    for _ in range(2):
        assert made.sets({"orders": (), "trades": ()}).keys() == {
            (stand_in("trades"), lib.sb_queue_reference(made._queues["trades"]._queue))
        }
        assert made.lacking == {"orders"}
    assert [line["queue"] for line in lines] == ["orders"]
    delete_own(broker, stand_in("orders"))
    assert len(made.sets({"orders": (), "trades": ()})) == 2
    assert made.lacking == frozenset()
