"""`replicate`: what a member that takes over has of queues, exchanges and bindings."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, InvalidArgument, Unconfirmed
from shmbroker.ipc.broker.applier import Applier
from shmbroker.ipc.broker.journaler import Journaler
from tests.cli.command import Shell
from tests.netbridge.replicated.conftest import PATIENCE, Made, Node
from tests.netbridge.replicated.test_losing import JOINS, MANY
from tests.netbridge.replicated.test_starting import QUICK
from tests.netbridge.replicated.test_witness import guarded, witness  # noqa: F401  # a fixture
from tests.support.witness import Place

VALUES = ("all", "configuration", "none")
EVERYTHING = {"all", "configuration", "none", "unsaid", "memory"}
LATER = 3600.0
SLOW: dict[str, object] = {
    "ha.replication.replica-timeout": "1m",
    "link-defaults.heartbeat-interval": "60s",
}
"""A replica that stands still is waited for as long as a test lasts."""


def filled(node: Node, name: str = "a") -> Broker:
    """Queues and exchanges of each value, bound to each other, and messages in all queues."""
    broker = node.connected(name)
    for value in VALUES:
        broker.declare_queue(value, durable=True, replicate=value)
    broker.declare_queue("unsaid", durable=True)
    broker.declare_queue("memory")
    broker.declare_exchange("sales", "fanout")
    broker.declare_exchange("kept", "fanout", replicate="configuration")
    broker.declare_exchange("local", "fanout", replicate="none")
    broker.declare_exchange("front", "fanout", alternate="local")
    for queue in EVERYTHING:
        broker.bind("sales", queue)
    broker.bind("kept", "configuration")
    broker.bind("kept", "none")
    broker.bind("local", "all")
    broker.bind("sales", "local", to="exchange")
    for queue in sorted(EVERYTHING):
        to = broker.queue(queue)
        for body in MANY:
            to.publish(body, timeout=PATIENCE)
        to.publish(b"later", deliver_after=LATER, timeout=PATIENCE)
    return broker


def has_all(node: Node, name: str, others: set[str] = EVERYTHING) -> None:
    with shmbroker.connect(f"shm://{node.vhosts[name]}", observe=True) as broker:
        for queue in others - {"memory"}:
            found = broker.queue(queue)
            assert [message.body for message in found.browse()] == MANY, queue
            assert len(list(found.scheduled())) == 1, queue
        bound = {(each.exchange, each.destination) for each in broker.bindings()}
        assert bound >= {("kept", "none"), ("local", "all"), ("sales", "local")}


def has_what_is_replicated(node: Node, name: str) -> None:
    with shmbroker.connect(f"shm://{node.vhosts[name]}", observe=True) as broker:
        assert {each.name for each in broker.queues()} == {"all", "configuration", "unsaid"}
        for queue, bodies in (("all", MANY), ("configuration", []), ("unsaid", MANY)):
            found = broker.queue(queue)
            assert [message.body for message in found.browse()] == bodies, queue
            assert len(list(found.scheduled())) == bool(bodies), queue
        bound = {(each.exchange, each.destination) for each in broker.bindings()}
        assert bound == {
            ("sales", "all"), ("sales", "configuration"), ("sales", "unsaid"),
            ("kept", "configuration"),
        }  # fmt: skip
        exchanges = {each.name: (each.alternate, each.replicate) for each in broker.exchanges()}
        assert exchanges == {
            "sales": (None, "all"),
            "kept": (None, "configuration"),
            "front": (None, "all"),
        }


def serves(broker: Broker, name: str) -> None:
    """The queue that was made anew is like any other."""
    queue = broker.queue(name)
    queue.publish(b"new", timeout=PATIENCE)
    broker.exchange("kept").publish(b"routed", confirm="disk", timeout=PATIENCE)
    for body in (b"new", b"routed"):
        message = queue.get(timeout=PATIENCE)
        assert message.body == body
        message.ack()
    assert queue.confirm(timeout=PATIENCE) == "disk"


def test_a_takeover_keeps_what_is_replicated(node: Made) -> None:
    two = node().up()
    filled(two)
    has_all(two, "a")
    two["a"].kill()
    two["b"].becomes("live")
    has_what_is_replicated(two, "b")
    serves(two.connected("b"), "configuration")


def test_whoever_is_live_again_alone_loses_nothing(node: Made) -> None:
    two = node()
    two["a"].start().becomes("live")
    filled(two)
    two["a"].kill()
    two["a"].start().becomes("live")
    has_all(two, "a")
    assert two["a"].stop() == 0
    two["a"].start().becomes("live")
    has_all(two, "a")


def test_a_live_that_is_killed_with_its_backup_loses_nothing(
    node: Made,
    witness: Place,  # noqa: F811
) -> None:
    two = guarded(node, witness).up()
    filled(two)
    two.are_killed("b", "a")
    two["a"].start().becomes("live")
    has_all(two, "a")


def test_failback_does_the_same_on_the_way_back(node: Made) -> None:
    two = node({"ha.replication.check-for-live-server": True, "ha.allow-failback": False}).up()
    filled(two)
    two["a"].kill()
    two["b"].becomes("live")
    two["a"].start()
    two.says("a", "in sync")
    broker = two.connected("b")
    broker.declare_queue("none", durable=True, replicate="none").publish(b"b's", timeout=PATIENCE)
    broker.queue("configuration").publish(b"b's", timeout=PATIENCE)
    assert two.orders("b", {"verb": "handover"}) == ""
    two["a"].becomes("live")
    two.says("b", "in sync")
    has_what_is_replicated(two, "a")


def killed_at(take: type, verb: str, *, after: bool) -> Callable[[], None]:
    """For the process of a member: it is killed when it does that for the first time."""

    def before() -> None:
        does = getattr(take, verb)

        def dies(*given: Any, **named: Any) -> None:
            if after:
                does(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(take, verb, dies)

    return before


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param((Applier, "finish", False), id="before-anything-is-left-out"),
        pytest.param((Applier, "finish", True), id="after-it-and-before-the-journal-says-so"),
        pytest.param((Journaler, "start", True), id="after-the-first-frame"),
    ],
)
def test_a_takeover_that_is_killed_half_way_is_finished(
    node: Made, moment: tuple[type, str, bool]
) -> None:
    two = node(JOINS | SLOW)
    two["b"].before = killed_at(moment[0], moment[1], after=moment[2])
    two.up()
    filled(two)
    two["a"].kill()
    two["b"].ends()
    two["b"].before = lambda: None
    two["b"].start().becomes("live")
    has_what_is_replicated(two, "b")
    two["a"].start()
    two.says("b", "in sync")


@pytest.mark.parametrize("after", [False, True])
def test_the_former_live_is_live_after_a_takeover_that_was_killed(
    node: Made,
    witness: Place,  # noqa: F811
    *,
    after: bool,
) -> None:
    """It loses nothing, as nobody was live in between; or the frame was there, and all is done."""
    two = guarded(node, witness)
    two["b"].before = killed_at(Applier, "finish", after=after)
    two.up()
    filled(two)
    two["a"].kill()
    two["b"].ends()
    two["b"].before = lambda: None
    two["a"].start()
    two["b"].start()
    two["b"].becomes("live")
    has_what_is_replicated(two, "b")


def test_confirms_of_what_is_not_replicated_wait_for_no_replica(node: Made) -> None:
    two = node(SLOW).up()
    broker = two.connected("a")
    queues = {value: broker.declare_queue(value, durable=True, replicate=value) for value in VALUES}
    assert queues["all"].publish(b"first", timeout=PATIENCE) == 0
    assert queues["all"].confirm(timeout=PATIENCE) == "disk+replicated"
    two.stands_still("b")
    with pytest.raises(Unconfirmed):
        queues["all"].publish(b"x", timeout=0.2)
    for value in ("configuration", "none"):
        queue = queues[value]
        assert queue.level == "disk"
        assert queue.publish(b"x", timeout=PATIENCE) == 0
        assert queue.confirm(timeout=PATIENCE) == "disk"
        assert queue.publish(b"y", confirm="disk", timeout=PATIENCE) == 1
        assert queue.get(timeout=PATIENCE).body == b"x", "delivered without a replica"
        queue.publish(b"later", deliver_after=LATER, timeout=PATIENCE)
        broker.declare_exchange("e", "fanout")
        broker.bind("e", value)
        assert broker.exchange("e").publish(b"z", confirm="disk", timeout=PATIENCE) >= 1
    with broker.transaction() as both:
        both.publish(queues["none"], b"t")
        both.publish(queues["configuration"], b"t")
    assert both.confirm(timeout=PATIENCE) == "disk"
    with pytest.raises(InvalidArgument, match="replicate 'all'"):
        both.confirm(level="replicated", timeout=PATIENCE)
    mixed = broker.transaction()
    mixed.publish(queues["none"], b"t")
    mixed.publish(queues["all"], b"t")
    mixed.commit(confirm="shm")
    with pytest.raises(Unconfirmed):
        mixed.confirm(timeout=0.2)
    two.goes_on("b")
    assert mixed.confirm(timeout=PATIENCE) == "disk+replicated"


@pytest.mark.parametrize("level", ["replicated", "disk+replicated"])
def test_a_level_that_no_replica_gives_is_refused(node: Made, level: Any) -> None:
    two = node().up()
    for broker in (two.connected("a"), two.program()):
        for value in ("configuration", "none"):
            queue = broker.declare_queue(value, durable=True, replicate=value)
            before = queue.statistics().published
            why = f"has replicate '{value}'.*ask for 'disk'"
            with pytest.raises(InvalidArgument, match=why):
                queue.publish(b"x", confirm=level, timeout=PATIENCE)
            assert queue.statistics().published == before
            with pytest.raises(InvalidArgument, match=why):
                queue.confirm(0, level=level, timeout=PATIENCE)


def test_a_suspended_live_confirms_none_of_it(node: Made) -> None:
    """Another one may be live: then this member has nothing that anybody waits for."""
    two = node(QUICK).up()
    queue = two.connected("a").declare_queue("none", durable=True, replicate="none")
    queue.publish(b"x", timeout=PATIENCE)
    two.stands_still("b")
    two.says("a", "suspended")
    for level in (None, "disk"):
        with pytest.raises(Unconfirmed, match="may not serve"):
            queue.publish(b"y", confirm=level, timeout=0.2)
    two.goes_on("b")
    two.says("a", "in sync")
    assert queue.confirm(timeout=PATIENCE) == "disk"


def test_programs_on_other_hosts_do_not_wait_either(node: Made) -> None:
    two = node({**SLOW, **JOINS}).up()
    program = two.program()
    queue = program.declare_queue("none", durable=True, replicate="none")
    two.stands_still("b")
    assert queue.publish(b"x", timeout=PATIENCE) == 0
    assert queue.confirm(timeout=PATIENCE) == "disk"
    one = program.transaction()
    one.publish(queue, b"t")
    one.commit(timeout=PATIENCE)
    with pytest.raises(InvalidArgument, match="replicate 'all'"):
        one = program.transaction()
        one.publish(queue, b"t")
        one.commit(confirm="replicated")
    two.goes_on("b")


def test_a_queue_may_page_if_its_messages_are_not_replicated(node: Made) -> None:
    """Pages are not in the journal, so one with `all` would drop the replica."""
    two = node(JOINS | SLOW).up()
    names = {"configuration", "none"}
    for live, other in (("a", "b"), ("b", "a")):
        broker = two.connected(live)
        for name in names:
            paging = broker.declare_queue(
                name, slots=16, durable=True, when_full="page", replicate=name
            )
            for body in MANY * 20:
                paging.publish(body, timeout=PATIENCE)
            paging.confirm(timeout=PATIENCE)
            assert [message.body for message in paging.browse()][: len(MANY)] == MANY
        orders = broker.declare_queue("orders", durable=True)
        orders.publish(live.encode(), confirm="replicated", timeout=PATIENCE)
        two.says(other, "in sync")
        two[live].kill()
        two[other].becomes("live")
        there = two.connected(other)
        assert {each.name for each in there.queues()} == {"configuration", "orders"}
        assert there.queue("configuration").statistics().depth == 0
        two[live].start()
        two.says(live, "in sync")
        two.says(other, "in sync")
    assert two.bodies("a") == [b"a", b"b"]


def test_dead_letters_are_replicated_as_their_queue(node: Made) -> None:
    two = node().up()
    broker = two.connected("a")
    for value in VALUES:
        broker.declare_queue(value, durable=True, dead_letter=f"dead.{value}", replicate=value)
        assert broker.queue(f"dead.{value}").explain()["replicate"].value == value


@pytest.mark.parametrize("default", ["configuration", "none"])
def test_the_default_of_a_node(node: Made, default: str) -> None:
    two = node({"ha.replicate": default}).up()
    broker = two.connected("a")
    broker.declare_exchange("sales", "fanout")
    broker.declare_exchange("said", "fanout", replicate="all")
    for name, given in (("unsaid", None), ("said", "all")):
        named = {} if given is None else {"replicate": given}
        broker.declare_queue(name, durable=True, **named).publish(b"x", timeout=PATIENCE)
    explained = broker.queue("unsaid").explain()["replicate"]
    assert (explained.value, explained.source) == (default, "default")
    two["a"].kill()
    two["b"].becomes("live")
    there = two.connected("b")
    kept = {"said", "unsaid"} if default == "configuration" else {"said"}
    assert {each.name for each in there.queues()} == kept
    exchanges = {each.name for each in there.exchanges()}
    assert exchanges == ({"said", "sales"} if default == "configuration" else {"said"})
    assert [message.body for message in there.queue("said").browse()] == [b"x"]


def test_on_the_command_line(node: Made) -> None:
    two = node().up()
    shell = Shell(two.vhosts["a"])
    shell.does("queue", "declare", "orders", "--durable", "--replicate", "none")
    shell.does("queue", "declare", "usual", "--durable")
    shell.does("queue", "declare", "memory")
    shell.does("exchange", "declare", "local", "fanout", "--replicate", "none")
    shell.does("exchange", "declare", "sales", "fanout")
    for name, value in (("orders", "none"), ("usual", "all"), ("memory", "none")):
        assert shell.does("queue", "stat", name, "--json").json["replicate"] == value
    exchanges = shell.does("exchange", "list", "--json").json
    assert {each["name"]: each["replicate"] for each in exchanges} == {
        "local": "none",
        "sales": "all",
    }
    for words, why in (
        (("queue", "declare", "x", "--replicate", "all"), "not durable"),
        (("queue", "declare", "x", "--replicate", "configuration"), "not durable"),
        (("queue", "declare", "usual", "--durable", "--replicate", "none"), "replicate is 'all'"),
        (("exchange", "declare", "local", "fanout", "--replicate", "all"), "another replicate"),
        (("pub", "orders", "x", "--confirm", "replicated"), "replicate 'none'"),
    ):
        refused = shell(*words)
        assert (refused.code, why in refused.said) == (1, True), refused
    for words in (
        ("queue", "declare", "x", "--durable", "--replicate", "some"),
        ("exchange", "declare", "x", "fanout", "--replicate", "some"),
        ("settings", "set", "x", "--replicate", "some"),
    ):
        assert shell(*words).code == 2
