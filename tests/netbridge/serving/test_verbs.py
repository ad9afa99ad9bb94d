"""What else a program may ask of a session."""

from __future__ import annotations

import time

import msgpack
import pytest

from shmbroker import (
    DeclaredDifferently,
    DeliveryRevoked,
    InUse,
    InvalidArgument,
    NoReply,
    NotAllowed,
    NotFound,
    QueueFull,
    RequesterLeft,
    SelectorError,
    TransactionEnded,
)
from shmbroker.core.codes import OK
from shmbroker.ipc._native import lib
from shmbroker.ipc.message import outgoing
from shmbroker.ipc.message.properties import unpack
from shmbroker.ipc.request.request import CORRELATION, REPLY_TO
from shmbroker.netbridge.remote.body import PASSED_OVER, asked
from shmbroker.netbridge.remote.outcome import Outcome
from shmbroker.netbridge.wire.words import Demand, Role, Verb
from tests.support.program import Program, answered, bodies, ok, publish
from tests.support.records import record, stream
from tests.support.serving import Site


def contents(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_declaring_and_binding(at: Site) -> None:
    program = at.program()
    made = answered(program.ask(Verb.DECLARE, queue="q", slots=64, settings={"ttl": 60.0}))
    assert (made["slots"], made["durable"]) == (64, False)
    with pytest.raises(DeclaredDifferently):
        program.ask(Verb.DECLARE, queue="q", slots=128)
    assert answered(program.ask(Verb.DECLARE, queue="q", opens=True))["slots"] == 64
    assert answered(program.ask(Verb.DECLARE, exchange="x", kind="topic")) == {"kind": "topic"}
    program.ask(Verb.BIND, exchange="x", destination="q", key="a.#")
    producer = program.producer(exchange="x")
    assert program.publish(producer, b"no key").value == 0
    one = stream([b"there"], key=b"a.b")
    done = ok(program.call(Verb.PUBLISH, target=producer, body=one))
    assert done.value == 1
    assert at.broker.queue("q").receive_many() == [b"there"]
    program.ask(Verb.UNBIND, exchange="x", destination="q", key="a.#")
    program.ask(Verb.SETTINGS, pattern="new.#", settings={"max_messages": 5})
    found = answered(program.ask(Verb.LOOK, at="patterns"))["found"]
    assert [each["pattern"] for each in found] == ["new.#"]
    program.ask(Verb.SETTINGS, pattern="new.#", removes=True)
    program.ask(Verb.DELETE, exchange="x", force=True)
    program.ask(Verb.DELETE, queue="q", force=True)
    for wrong in ({}, {"queue": 7}, {"queue": "a/b"}, {"queue": "q", "settings": {"tll": 1}}):
        with pytest.raises(InvalidArgument):
            program.ask(Verb.DECLARE, **wrong)
    with pytest.raises(NotFound):
        program.ask(Verb.DELETE, queue="q")
    assert at.broker.queues() == []


def test_looking_and_browsing(at: Site) -> None:
    queue = at.broker.declare_queue("q", slots=64)
    queue.publish_many(contents(10))
    queue.publish(b"k", key="k", properties={"n": 7}, ttl=50)
    program = at.program()

    def look(**of: object) -> object:
        return answered(program.ask(Verb.LOOK, **of))["found"]

    assert look(queue="q", at="length") == 11
    assert look(queue="q", at="statistics")["published"] == 11  # type: ignore[index]
    assert look(queue="q", at="published") == 11
    for what in ("queues", "exchanges", "bindings", "subscriptions", "participants", "errors"):
        assert isinstance(look(at=what), list)
    for what in ("explain", "gates", "origins", "groups", "scheduled"):
        look(queue="q", at=what)
    for wrong in ({"at": "vhost"}, {"at": "queue", "queue": "q"}, {"queue": "q"}):
        with pytest.raises(InvalidArgument):
            look(**wrong)
    page = program.ask(Verb.BROWSE, queue="q")
    assert bodies(page.body) == [b"0"]
    page = ok(
        program.call(
            Verb.BROWSE, count=100, body=msgpack.packb({"queue": "q", "position": page.value})
        )
    )
    assert bodies(page.body) == [*contents(10)[1:], b"k"]
    some = program.ask(Verb.BROWSE, queue="q", selector="n = 7")
    assert bodies(some.body) == [b"k"]
    with pytest.raises(SelectorError):
        program.ask(Verb.BROWSE, queue="q", selector="n = = 7")
    assert len(queue) == 11


def test_operating(at: Site) -> None:
    queue, other = at.broker.declare_queue("q"), at.broker.declare_queue("other")
    queue.publish_many(contents(10))
    program = at.program()

    def operate(does: str, **more: object) -> Outcome:
        return program.ask(Verb.OPERATE, queue="q", does=does, **more)

    assert operate("move_to", other="other", limit=4).value == 4
    assert operate("copy_to", other="other").value == 6
    assert len(other) == 10
    operate("pause")
    assert queue.is_paused
    operate("resume")
    assert operate("expire").value == 0
    assert operate("retry").value == 0
    assert operate("purge").value == 6
    with pytest.raises(InvalidArgument, match="none of"):
        operate("explode")


def test_scheduled_messages(at: Site) -> None:
    queue = at.broker.declare_queue("q")
    program = at.program()

    def schedule(number: int, **of: object) -> Outcome:
        return ok(program.call(Verb.SCHEDULE, value=number, body=asked(queue="q", **of)))

    number = schedule(1, body=b"later", after=100.0).value
    assert [each.id for each in queue.scheduled()] == [number]
    gone = program.call(Verb.CANCEL_SCHEDULED, value=number, body=msgpack.packb({"queue": "q"}))
    assert (ok(gone).code, queue.scheduled()) == (1, [])
    schedule(2, body=b"soon", after=0.01, key="k")
    assert queue.receive(timeout=60) == b"soon"
    for number, wrong in ((0, {"after": 1.0}), (3, {}), (3, {"after": 1.0, "at": 1.0})):
        with pytest.raises(InvalidArgument):
            schedule(number, body=b"x", **wrong)
    assert schedule(3, body=b"over", at=1.0).value == 0
    assert queue.receive(timeout=60) == b"over"


def test_requests_and_replies(at: Site) -> None:
    queue = at.broker.declare_queue("q")
    asking, answering = at.program(), at.program()
    call = asking.begin(
        Verb.REQUEST, wait_ms=5000, body=msgpack.packb({"queue": "q", "body": b"?"})
    )
    asking.turn(0.01)
    first, (question,) = answering.get("q", wait=5)
    message = next(iter(queue.browse()))
    to, correlation = message.properties[REPLY_TO], message.properties[CORRELATION]
    assert question == b"?"
    answering.ask(Verb.REPLY, queue=to, correlation=correlation, body=b"!", properties={"n": 1})
    answering.settle(Verb.ACK, first)
    answer = answered(ok(asking.outcome(call)))
    assert answer["body"] == b"!"
    assert unpack(answer["properties"])["n"] == 1
    with pytest.raises(NoReply):
        ok(asking.call(Verb.REQUEST, wait_ms=20, body=msgpack.packb({"queue": "q", "body": b"?"})))
    with pytest.raises(RequesterLeft):
        answering.ask(Verb.REPLY, queue="tmp.gone", correlation="1", body=b"!")


def test_a_temporary_queue_goes_with_its_session(at: Site) -> None:
    program = at.program()
    made = answered(program.ask(Verb.TEMPORARY_QUEUE, 7, slots=64))
    queue = at.broker.queue(made["name"])
    queue.publish(b"for it")
    assert program.get(made["name"])[1] == [b"for it"]
    left = answered(program.ask(Verb.TEMPORARY_QUEUE, 8))["name"]
    ok(program.call(Verb.LEAVE, target=8))
    with pytest.raises(NotFound):
        at.broker.queue(left)
    program.close()
    late = time.monotonic() + 5
    while at.broker.queues() and time.monotonic() < late:
        time.sleep(0.01)
    assert at.broker.queues() == []


def test_one_of_a_given_name_is_temporary_and_nobody_elses(at: Site) -> None:
    at.broker.declare_queue("orders")
    at.broker.declare_queue("tmp.orders")
    others = at.broker.temporary_queue().name
    program = at.program()
    for name, refusal in (
        ("orders", InvalidArgument), ("$sink.marks", InvalidArgument),
        ("tmp.orders", DeclaredDifferently), (others, InUse),
    ):  # fmt: skip
        with pytest.raises(refusal):
            program.ask(Verb.TEMPORARY_QUEUE, 7, name=name)
        program.call(Verb.LEAVE, target=7)
    for _ in range(2):  # an answer may be lost
        assert answered(program.ask(Verb.TEMPORARY_QUEUE, 7, name="tmp.x"))["name"] == "tmp.x"
    found = {each.name for each in at.broker.queues()}
    assert found == {"orders", "tmp.orders", "tmp.x", others}


def test_subscriptions_see_each_message(at: Site) -> None:
    queue = at.broker.declare_queue("q", slots=64)
    queue.publish_many(contents(40))
    program = at.program()
    program.consumer(16, queue="q", looks=True, start="earliest")
    assert program.handed(16) == contents(16)
    assert queue.receive_many() == contents(40)
    with pytest.raises(QueueFull):
        queue.publish_many(contents(40), timeout=0)  # the ring keeps what it has not acknowledged
    program.settle(Verb.ACK, 0, 16)
    assert program.handed(32) == contents(32)
    program.settle(Verb.ACK, 16, 16)
    assert program.handed(48)[:48] == [*contents(40), *contents(8)]
    named = program.consumer(
        4, subscription="s", exchange=at.broker.declare_exchange("x", "fanout").name
    )
    at.broker.exchange("x").publish(b"to all")
    program.until(lambda: program.hands[-1].consumer == named)
    ok(program.call(Verb.LEAVE, target=named))
    assert at.broker.subscriptions() == []


def test_selectors(at: Site) -> None:
    queue = at.broker.declare_queue("q")
    for number in range(6):
        queue.publish(b"%d" % number, properties={"n": number})
    program = at.program()
    assert program.get("q", 3, selector="n > 3")[1] == [b"4", b"5"]
    program.consumer(0, queue="q", selector="n > 99")  # it has no room yet
    program.consumer(10, queue="q", selector="n = 1 OR n > 8")
    assert program.handed(1) == [b"1"]
    queue.publish(b"9", properties={"n": 9})
    assert program.handed(2) == [b"1", b"9"]
    reference = lib.sb_queue_reference(queue._queue)
    told = at.broker._participants.taken([reference])  # to other nodes of a cluster
    assert told[reference] == {"n > 3", "n > 99", "n = 1 OR n > 8"}
    assert [queue.receive() for _ in range(3)] == [b"0", b"2", b"3"]


def commit(program: Program, number: int, *operations: object, **fields: object) -> Outcome:
    program.client.work(number)
    return program.call(Verb.COMMIT, value=number, body=msgpack.packb(operations), **fields)


def test_a_transaction_happens_as_a_whole(at: Site) -> None:
    q, r = at.broker.declare_queue("q", slots=64), at.broker.declare_queue("r", slots=64)
    q.publish_many(contents(3))
    program = at.program()
    first, _ = program.get("q", 2)
    ok(commit(program, 1, ["queue", "r", stream([b"a", b"b"])], ["ack", first, 2]))
    assert r.receive_many() == [b"a", b"b"]
    assert len(q) == 1
    assert program.settle(Verb.ACK, first).code < OK
    r.publish_many(contents(64))
    second, _ = program.get("q")
    with pytest.raises(QueueFull):
        ok(commit(program, 2, ["queue", "r", stream([b"c"])], ["ack", second, 1], wait_ms=20))
    assert q.receive() == b"2"  # it has come back
    with pytest.raises(DeliveryRevoked):
        ok(commit(program, 3, ["ack", second, 1]))
    program.client.work(4)
    waiting = program.begin(
        Verb.COMMIT, value=4, body=msgpack.packb([["queue", "r", stream([b"d"])]])
    )
    program.turn(0.05)
    assert r.receive_many(1) == [b"0"]
    assert program.outcome(waiting).code == OK
    for number in (1, 2):  # as after a loss
        program.client.work(number)
    assert ok(program.call(Verb.COMMIT, value=1, repeated=True)).code == OK
    with pytest.raises(TransactionEnded):
        ok(program.call(Verb.COMMIT, value=2, repeated=True))
    for wrong in (b"", b"\xc1", msgpack.packb([["queue", "r"]]), msgpack.packb([["ack", "x", 1]])):
        program.client.work(5)
        with pytest.raises(InvalidArgument):
            ok(program.call(Verb.COMMIT, value=5, body=wrong))


@pytest.mark.parametrize("to", ["queue", "exchange"])
def test_properties_that_are_no_map_are_refused(at: Site, to: str) -> None:
    queue = at.broker.declare_queue("all", slots=64)
    at.broker.declare_exchange("all", "fanout")
    at.broker.bind("all", "all")
    program = at.program()
    bad = publish(program.producer(**{to: "all"}), b"bad", properties=b"\x81\xa1a\xd9\xff")
    with pytest.raises(InvalidArgument, match="properties are a MessagePack map"):
        ok(program.call(Verb.PUBLISH, **bad))
    assert len(queue) == 0


def test_a_number_that_is_known_with_a_record_that_is_no_message_is_refused(at: Site) -> None:
    at.broker.declare_exchange("all", "fanout")
    at.broker.declare_queue("all", durable=True)
    at.broker.bind("all", "all")
    program = at.program()
    known = publish(program.producer(exchange="all"), b"first") | {"value": 1}
    ok(program.call(Verb.PUBLISH, **known))
    short = known | {"body": record(0, bytes(8)), "demand": Demand.DISK}
    with pytest.raises(InvalidArgument, match="no message"):
        ok(program.call(Verb.PUBLISH, **short))
    assert answered(program.ask(Verb.DECLARE, queue="all", opens=True))["durable"]


def test_a_message_id_counts_once(at: Site) -> None:
    queue = at.broker.declare_queue("q", duplicate_ids=100)
    program = at.program()
    producer = program.producer(queue="q")
    once = publish(producer, b"once", properties={"JMSMessageID": "me"})
    assert ok(program.call(Verb.PUBLISH, **once)).code == OK
    assert ok(program.call(Verb.PUBLISH, **once)).code == PASSED_OVER
    assert len(queue) == 1


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        (Verb.OPERATE, {"queue": "q", "does": "confirm", "position": "x"}),
        (Verb.OPERATE, {"queue": "q", "does": "confirm", "position": 0, "level": []}),
        (Verb.TRANSACTIONS, {"open": [[float("inf"), [float("inf")]]]}),
        (Verb.TRANSACTIONS, {"open": [["9" * 30, [0]]]}),
        (Verb.TRANSACTIONS, {"open": [[1, [1 << 63]]]}),
        (Verb.REQUEST, {"queue": "q", "body": b"", "properties": 5}),
    ],
)
def test_an_argument_of_another_type_is_refused_and_ends_nothing(
    at: Site, verb: Verb, fields: dict[str, object]
) -> None:
    at.broker.declare_queue("q", slots=64)
    with pytest.raises(InvalidArgument):
        at.program().ask(verb, **fields)
    assert answered(at.program().ask(Verb.LOOK, queue="q", at="length"))["found"] == 0


@pytest.mark.parametrize("position", [1 << 63, -1, 0.5])
def test_a_position_that_is_none_does_not_wait_behind_others(at: Site, position: float) -> None:
    """The broker ended when its turn came."""
    at.broker.declare_queue("q", durable=True)
    program = at.program()
    asks = asked(queue="q", does="confirm", position=0, level="disk")
    program.begin(Verb.OPERATE, wait_ms=60_000, body=asks)
    wrong = asked(queue="q", does="confirm", position=position, level="disk")
    with pytest.raises(InvalidArgument):
        ok(program.call(Verb.OPERATE, wait_ms=100, body=wrong))


DEEP = b"\x91" * 1000 + b"\xc0"
"""Lists in lists: deeper than Python shows them, and not too deep for MessagePack."""
DEEP_CORRELATION = b"\x81" + msgpack.packb(CORRELATION) + DEEP


@pytest.mark.parametrize("verb", [Verb.ORDER, Verb.LOOK, Verb.DECLARE, Verb.OPERATE])
def test_lists_in_lists_are_refused_and_end_nothing(at: Site, verb: Verb) -> None:
    """Also by who only looks."""
    at.broker.declare_queue("q", slots=64)
    for field in (b"queue", b"verb", b"noun", b"at", b"does"):
        told = b"\x81" + msgpack.packb(field.decode()) + DEEP
        with pytest.raises((InvalidArgument, NotAllowed)):
            ok(at.program(Role.VIEWER).call(verb, body=told))
    assert answered(at.program().ask(Verb.LOOK, queue="q", at="length"))["found"] == 0


@pytest.mark.parametrize("wrong", [b"\x81\xa1\xff\x00", DEEP_CORRELATION], ids=["no text", "deep"])
def test_a_reply_with_properties_that_cannot_be_read_is_passed_over(
    at: Site, monkeypatch: pytest.MonkeyPatch, wrong: bytes
) -> None:
    queue = at.broker.declare_queue("q", slots=64)
    program = at.program()
    call = program.begin(Verb.REQUEST, body=asked(queue="q", body=b"?"))
    with queue.get(timeout=60) as request:
        replies = at.broker.queue(str(request.properties[REPLY_TO]))
        with monkeypatch.context() as changed:  # as a program in C may write them
            changed.setattr(outgoing, "pack", lambda _: wrong)
            replies.publish(b"", properties={"a": 1})
        request.reply(b"!")
        request.ack()
    assert ok(program.outcome(call)).body


def test_a_producer_that_was_left_is_not_found(at: Site) -> None:
    """So who publishes by it, while another thread deletes its queue, opens the next one."""
    at.broker.declare_queue("q")
    program = at.program()
    producer = program.producer(queue="q")
    ok(program.call(Verb.LEAVE, target=producer))
    with pytest.raises(NotFound):
        program.publish(producer, b"x")


def test_a_viewer_only_looks(at: Site) -> None:
    queue = at.broker.declare_queue("q")
    queue.publish(b"there")
    program = at.program(Role.VIEWER)
    assert bodies(program.ask(Verb.BROWSE, queue="q").body) == [b"there"]
    with pytest.raises(NotAllowed, match="only the role client subscribes"):
        program.consumer(4, queue="q", looks=True, start="earliest")
    at.broker.declare_queue("kept", non_destructive=True).publish(b"kept")
    program.consumer(4, queue="kept", looks=True, start="earliest")
    assert program.handed(1) == [b"kept"]
    for verb in (Verb.GET, Verb.PRODUCER, Verb.DELETE, Verb.OPERATE, Verb.ORDER):
        with pytest.raises(NotAllowed, match="a viewer only looks"):
            program.ask(verb, queue="q")
    assert len(queue) == 1


def test_a_slow_consumer_loses_its_session_and_makes_another(at: Site) -> None:
    queue = at.broker.declare_queue(
        "q", slow_consumer_threshold=1e6, slow_consumer_policy="disconnect"
    )
    queue.publish_many(contents(3))
    program = at.program()
    program.consumer(1, queue="q")
    assert program.handed(1) == [b"0"]
    for _ in range(4):
        at.broker.repair_for(0)
    assert program.settle(Verb.ACK, 0, queue="q", positions=[0]).code < OK
    program.until(lambda: "failover-completed" in program.events)
    program.until(lambda: len(program.hands) == 2)
    assert bodies(program.hands[1].body) == [b"0"]


def test_a_slow_one_without_a_consumer_makes_another_session_with_its_next_verb(at: Site) -> None:
    queue = at.broker.declare_queue(
        "q", slow_consumer_threshold=1e6, slow_consumer_policy="disconnect"
    )
    queue.publish_many(contents(2))
    program = at.program()
    producer = program.producer(queue="q")
    assert program.get("q") == (0, [b"0"])
    for _ in range(4):
        at.broker.repair_for(0)
    assert program.settle(Verb.ACK, 0, queue="q", positions=[0]).code < OK
    assert "failover-completed" not in program.events
    assert program.publish(producer, b"2").value == 2
    assert "failover-completed" in program.events
    assert program.get("q", 3)[1] == [b"0", b"1", b"2"]


def test_a_message_that_is_larger_than_a_frame(at: Site) -> None:
    queue = at.broker.declare_queue("q")
    program = at.program()
    producer = program.producer(queue="q")
    large = bytes(range(256)) * (40 << 10)
    program.publish(producer, large)
    program.consumer(1, queue="q")
    assert program.handed(1) == [large]
    assert len(queue) == 1
