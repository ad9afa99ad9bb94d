"""Message groups, and the single active consumer: who gets what, in which order; what moves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

import shmbroker
from shmbroker import aio
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.queue.export import exported, imported


@pytest.fixture
def brokers(vhost: str) -> Iterator[list[shmbroker.Broker]]:
    connected = [shmbroker.connect(f"shm://{vhost}") for _ in range(2)]
    yield connected
    for broker in connected:
        broker.close()


@pytest.fixture
def queues(brokers: list[shmbroker.Broker]) -> list[shmbroker.Queue]:
    """The same queue, of two consumers."""
    brokers[0].declare_queue("q", slots=64, groups=True)
    return [broker.queue("q") for broker in brokers]


@pytest.fixture
def standing(brokers: list[shmbroker.Broker]) -> list[shmbroker.Queue]:
    """A queue where one is active at a time."""
    brokers[0].declare_queue("s", slots=64, single_active=True)
    return [broker.queue("s") for broker in brokers]


def publish(queue: shmbroker.Queue, *bodies: str) -> None:
    """The first letter of a body is its group, - for none."""
    for body in bodies:
        queue.publish(body.encode(), group=None if body[0] == "-" else body[0])


def taken(queue: shmbroker.Queue) -> shmbroker.Message | None:
    try:
        return queue.get(timeout=0)
    except shmbroker.Empty:
        return None


def rest(queue: shmbroker.Queue) -> list[str]:
    return [body.decode() for body in received(queue)]


def received(queue: shmbroker.Queue) -> list[bytes]:
    try:
        return queue.receive_many(timeout=0)
    except shmbroker.Empty:
        return []


# --- groups -----------------------------------------------------------------------------------


def test_a_group_goes_to_who_had_it_first_and_in_order(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    publish(one, "a1", "b1", "a2", "b2", "a3")
    assert one.receive(timeout=0) == b"a1"
    assert other.receive(timeout=0) == b"b1"
    publish(one, "b3", "a4")
    assert rest(other) == ["b2", "b3"]
    assert rest(one) == ["a2", "a3", "a4"]


def test_messages_without_a_group_go_to_anyone(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    publish(one, "a1", "-1", "a2", "-2")
    assert one.receive(timeout=0) == b"a1"
    assert rest(other) == ["-1", "-2"]
    assert rest(one) == ["a2"]


@pytest.mark.parametrize("how", ["get", "get_many", "receive", "consume", "select", "prefetch"])
def test_every_way_of_taking_keeps_to_it(queues: list[shmbroker.Queue], how: str) -> None:
    one, other = queues
    publish(one, "a1", "b1", "a2", "b2")
    held = one.get(timeout=0)
    if how == "get":
        found = [other.get(timeout=0).body, taken(other)]
        assert found[0] == b"b1"
    elif how == "get_many":
        assert [message.body for message in other.get_many(4, timeout=0)] == [b"b1", b"b2"]
    elif how == "receive":
        assert [other.receive(timeout=0) for _ in range(2)] == [b"b1", b"b2"]
        with pytest.raises(shmbroker.Empty):
            other.receive(timeout=0)
    else:
        options: dict[str, object] = {
            "consume": {},
            "select": {"selector": "JMSXGroupID IS NOT NULL"},
            "prefetch": {"prefetch": 8},
        }[how]  # type: ignore[assignment]
        found = [message.body for message in other.consume(timeout=0, **options)]  # type: ignore[arg-type]
        assert found == [b"b1", b"b2"]
    held.ack()


def test_one_that_is_given_back_comes_before_later_ones(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    publish(one, "a1", "a2", "a3")
    first, second = one.get_many(2, timeout=0)
    second.give_back()
    first.give_back()
    assert taken(other) is None
    assert rest(one) == ["a1", "a2", "a3"]


def test_who_leaves_leaves_its_groups_in_order(
    queues: list[shmbroker.Queue], brokers: list[shmbroker.Broker]
) -> None:
    one, other = queues
    publish(one, "a1", "a2", "a3")
    held = other.get_many(2, timeout=0)
    assert taken(one) is None
    brokers[1].close()
    assert rest(one) == ["a1", "a2", "a3"]
    assert len(held) == 2


def test_the_end_of_a_loop_lets_go(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    publish(one, "a1", "a2")
    for message in one.consume(timeout=0):
        assert message.body == b"a1"
        message.ack()
        assert taken(other) is None
        break
    del message
    assert rest(other) == ["a2"]


def test_who_lets_go_with_one_in_hand_is_waited_for(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    publish(one, "a1", "a2", "b1")
    held = one.get(timeout=0)
    assert one.let_go("a") == 1
    assert one.let_go("a") == 0
    assert other.receive(timeout=0) == b"b1"
    assert taken(other) is None
    waits = threading.Timer(0.02, held.ack)
    waits.start()
    assert other.receive(timeout=30) == b"a2"
    waits.join()
    publish(one, "a3")
    assert taken(one) is None


def test_with_a_selector_who_lets_go_is_waited_for_too(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    publish(one, "a1", "a2")
    held = one.get(timeout=0)
    one.let_go()
    waits = threading.Timer(0.02, held.ack)
    waits.start()
    consuming = other.consume(selector="JMSXGroupID = 'a'", timeout=30)
    assert next(consuming).body == b"a2"
    waits.join()


def test_who_waits_is_woken_when_the_owner_leaves(
    queues: list[shmbroker.Queue], brokers: list[shmbroker.Broker]
) -> None:
    one, other = queues
    publish(one, "a1", "a2")
    assert one.receive(timeout=0) == b"a1"
    leaves = threading.Timer(0.02, brokers[0].close)
    leaves.start()
    assert other.receive(timeout=30) == b"a2"
    leaves.join()


def test_a_selector_binds_only_what_it_selects(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    publish(one, "a1", "b1")
    assert [each.body for each in one.consume(selector="JMSXGroupID = 'b'", timeout=0)] == [b"b1"]
    picky = one.consume(selector="JMSXGroupID = 'c'", timeout=0)
    assert list(picky) == []
    assert rest(other) == ["a1"]


def test_nothing_is_taken_while_it_is_paused(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    publish(one, "a1")
    one.pause()
    assert taken(other) is None
    one.resume()
    assert rest(other) == ["a1"]


def test_rebalancing_lets_a_newcomer_have_some(brokers: list[shmbroker.Broker], vhost: str) -> None:
    one = brokers[0].declare_queue("r", slots=64, groups=True, rebalance=True)
    publish(one, "a1", "b1", "a2", "b2")
    held = one.get_many(2, timeout=0)
    other = brokers[1].queue("r")
    assert taken(other) is None  # it has joined; of both groups somebody has one in hand
    assert {info.participant for info in one.groups()} <= {None, 1, 2}
    for message in held:
        message.ack()
    assert other.receive(timeout=0) == b"a2"
    assert one.receive(timeout=0) == b"b2"


def test_several_laps(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    for lap in range(50):
        publish(one, f"a{lap}", f"b{lap}", f"-{lap}")
        if lap == 0:
            assert one.receive(timeout=0) == b"a0"
            assert rest(other) == ["b0", "-0"]
        else:
            assert rest(other) == [f"b{lap}", f"-{lap}"]
            assert rest(one) == [f"a{lap}"]


def test_the_group_is_kept_wherever_a_message_goes(brokers: list[shmbroker.Broker]) -> None:
    broker = brokers[0]
    broker.declare_queue("dead", groups=True)
    queue = broker.declare_queue("k", groups=True, dead_letter="dead")
    copies = broker.declare_queue("copies", groups=True)
    publish(queue, "a1")
    assert [message.group for message in queue.browse()] == ["a"]
    queue.copy_to(copies)
    imported(copies, exported(queue))
    rejected = queue.get(timeout=0)
    assert rejected.group == "a"
    rejected.reject()
    for name in ("dead", "copies"):
        there = [broker.queue(name) for broker in brokers]
        publish(there[0], "a9")
        assert there[1].get(timeout=0).group == "a"
        held = there[1].get(timeout=0)
        assert taken(there[0]) is None
        del held


def test_a_loan_an_exchange_and_a_transaction_have_groups(
    queues: list[shmbroker.Queue], brokers: list[shmbroker.Broker]
) -> None:
    one, other = queues
    exchange = brokers[0].declare_exchange("e", "fanout")
    brokers[0].bind("e", "q")
    with one.loan(4, group="a") as loan:
        loan.view[:] = b"loan"
    exchange.publish(b"routed", group="a")
    with brokers[0].transaction() as transaction:
        transaction.publish(one, b"committed", group="a")
    one.publish(b"property", properties={"JMSXGroupID": "a"})
    held = other.get(timeout=0)
    assert held.body == b"loan"
    assert taken(one) is None
    assert rest(other) == ["routed", "committed", "property"]


def test_what_is_scheduled_has_its_group(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    for body in (b"a1", b"a2"):
        one.publish(body, group="a", deliver_after=1e-9)
    first = one.get(timeout=10)
    assert first.body == b"a1"
    while one.statistics().depth < 2:
        time.sleep(0.001)
    assert taken(other) is None
    assert one.receive(timeout=0) == b"a2"
    first.ack()


def test_what_is_shown(queues: list[shmbroker.Queue]) -> None:
    one, other = queues
    publish(one, "a1", "b1", "b2", "-1")
    held = other.get(timeout=0)
    shown = {info.group: info for info in one.groups()}
    assert (shown["a"].participant, shown["a"].taken) == (other._broker.participant, 1)
    assert (shown["b"].participant, shown["b"].waiting) == (None, 2)
    held.ack()
    purged = one.purge()
    assert purged == 3
    (left,) = one.groups()
    assert (left.group, left.participant) == (None, other._broker.participant)


def test_few_buckets_still_keep_groups_together(brokers: list[shmbroker.Broker]) -> None:
    brokers[0].declare_queue("few", groups=1)
    one, other = (broker.queue("few") for broker in brokers)
    publish(one, "a1", "b1")
    held = one.get(timeout=0)
    assert taken(other) is None
    held.ack()
    assert rest(one) == ["b1"]


def test_in_c() -> None:
    room = ffi.new("unsigned char[]", 400)
    made = lib.sb_group_properties(b"blue", ffi.NULL, 0, room, 400)
    assert ffi.buffer(room, made)[:] == b"\xde\x00\x01\xabJMSXGroupID\xa4blue"
    assert lib.sb_group_properties(b"", ffi.NULL, 0, room, 400) == lib.SB_INVALID
    assert lib.sb_group_properties(b"blue", ffi.NULL, 0, room, 4) == lib.SB_TOO_SMALL


# --- the single active consumer ---------------------------------------------------------------


def test_one_is_active_and_the_others_stand_by(standing: list[shmbroker.Queue]) -> None:
    one, other = standing
    publish(one, "-1", "-2", "-3")
    assert one.receive(timeout=0) == b"-1"
    assert taken(other) is None
    assert one.groups()[0].participant == one._broker.participant
    held = one.get(timeout=0)
    one._broker.close()
    assert rest(other) == ["-2", "-3"]
    assert not held.is_in_hand or held.body == b"-2"


def test_rebalancing_is_about_groups(brokers: list[shmbroker.Broker]) -> None:
    """Who stands by does not become active because it has come."""
    one = brokers[0].declare_queue("s", slots=64, single_active=True, rebalance=True)
    publish(one, "-1", "-2")
    assert one.receive(timeout=0) == b"-1"
    assert taken(brokers[1].queue("s")) is None
    assert one.receive(timeout=0) == b"-2"


def test_the_higher_priority_takes_over_when_nothing_is_in_hand(
    standing: list[shmbroker.Queue],
) -> None:
    one, other = standing
    publish(one, "-1", "-2", "-3")
    held = one.get(timeout=0)
    higher = other.consume(priority=5, timeout=30)
    waits = threading.Timer(0.02, held.ack)
    waits.start()
    second = next(higher)
    assert second.body == b"-2"
    waits.join()
    assert taken(one) is None
    lower = one.consume(priority=4, timeout=0)
    assert list(lower) == []
    second.ack()
    higher.close()
    assert rest(one) == ["-3"]


def test_an_exclusive_consumer_is_alone(standing: list[shmbroker.Queue]) -> None:
    one, other = standing
    publish(one, "-1", "-2")
    alone = one.consume(exclusive=True, timeout=0)
    assert next(alone).body == b"-1"
    with pytest.raises(shmbroker.InUse, match="another active consumer"):
        next(other.consume(exclusive=True, timeout=0))
    assert list(other.consume(priority=100, timeout=0)) == []
    alone.close()
    assert next(other.consume(exclusive=True, timeout=0)).body == b"-1"


# --- asyncio ----------------------------------------------------------------------------------


@pytest.mark.parametrize("selector", [None, "JMSXGroupID = 'a'"])
def test_a_coroutine_is_woken(vhost: str, selector: str | None) -> None:
    async def main() -> list[bytes]:
        async with aio.connect(f"shm://{vhost}") as one, aio.connect(f"shm://{vhost}") as other:
            queue = await one.declare_queue("q", groups=True)
            for body in (b"a1", b"a2", b"a3"):
                await queue.publish(body, group="a")
            held = await queue.get()
            await queue.let_go("a")
            asyncio.get_running_loop().call_later(0.02, held.ack)
            theirs = await other.queue("q")
            found = []
            async with asyncio.timeout(30):
                async for message in theirs.consume(selector=selector, timeout=30):
                    found.append(message.body)
                    if len(found) == 2:
                        break
            return found

    assert asyncio.run(main()) == [b"a2", b"a3"]


def test_a_coroutine_that_stands_by_takes_over(vhost: str) -> None:
    async def main() -> bytes:
        async with aio.connect(f"shm://{vhost}") as one, aio.connect(f"shm://{vhost}") as other:
            queue = await one.declare_queue("s", single_active=True)
            await queue.publish(b"1")
            await queue.publish(b"2")
            active = aiter(queue.consume())
            first = await anext(active)
            theirs = await other.queue("s")
            standing_by = asyncio.create_task(anext(aiter(theirs.consume(timeout=30))))
            await asyncio.sleep(0.02)
            first.ack()
            del first, active
            return (await standing_by).body

    assert asyncio.run(main()) == b"2"


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"groups": True, "priorities": True}, "groups and priorities exclude each other"),
        ({"single_active": True, "priorities": 2}, "single_active and priorities exclude"),
        ({"groups": 4, "single_active": True}, "groups and single_active exclude each other"),
        ({"groups": 257}, "a number of buckets up to 256"),
        ({"groups": "all"}, "a number of buckets up to 256"),
        ({"single_active": 1}, "single_active is True or False"),
    ],
)
def test_settings_that_cannot_be(
    brokers: list[shmbroker.Broker], settings: dict[str, object], reason: str
) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match=reason):
        brokers[0].declare_queue("bad", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("group", ["", "x" * 256, 7, b"a"])
def test_what_is_no_group(queues: list[shmbroker.Queue], group: object) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="a group is a text of 1 to 255 bytes"):
        queues[0].publish(b"", group=group)  # type: ignore[arg-type]
    with pytest.raises(shmbroker.InvalidArgument, match="a group is a text of 1 to 255 bytes"):
        queues[0].let_go(group)  # type: ignore[arg-type]


def test_two_groups_at_once(queues: list[shmbroker.Queue]) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="JMSXGroupID is 'b', and the group is 'a'"):
        queues[0].publish(b"", group="a", properties={"JMSXGroupID": "b"})


@pytest.mark.parametrize("group", [7, "", "x" * 256, None])
def test_a_property_that_is_no_group_is_a_property(
    queues: list[shmbroker.Queue], group: object
) -> None:
    one, other = queues
    one.publish(b"1", properties={"JMSXGroupID": group})
    one.publish(b"2", properties={"JMSXGroupID": group})
    held = one.get(timeout=0)
    assert other.receive(timeout=0) == b"2"
    held.ack()


@pytest.mark.parametrize("priority", [-1, 101, 1.5, True, 1 << 80])
def test_what_is_no_priority(standing: list[shmbroker.Queue], priority: object) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="the priority of a consumer is a number"):
        next(standing[0].consume(priority=priority, timeout=0))  # type: ignore[arg-type]


def test_what_a_plain_queue_cannot(brokers: list[shmbroker.Broker]) -> None:
    queue = brokers[0].declare_queue("plain")
    queue.publish(b"1", group="a")  # a property, and nothing else
    assert queue.groups() == []
    with pytest.raises(shmbroker.InvalidArgument, match="declared with single_active"):
        next(queue.consume(priority=1, timeout=0))
    with pytest.raises(shmbroker.InvalidArgument, match="declared with single_active"):
        next(queue.consume(exclusive=True, timeout=0))
    with pytest.raises(shmbroker.InvalidArgument, match="has no groups"):
        queue.let_go()
    assert [message.group for message in queue.consume(timeout=0)] == ["a"]


def test_an_observer_lets_nobody_go(queues: list[shmbroker.Queue], vhost: str) -> None:
    queues[0].publish(b"1", group="anna")
    queues[0].publish(b"2", group="anna")
    with queues[0].get(timeout=0), shmbroker.connect(f"shm://{vhost}", observe=True) as looks:
        with pytest.raises(shmbroker.InvalidArgument, match="only observes"):
            looks.queue("q").let_go()
        with pytest.raises(shmbroker.InvalidArgument, match="only observes"):
            next(iter(looks.queue("q").consume(timeout=0)))
    with pytest.raises(shmbroker.Empty):
        queues[1].get(timeout=0)
    assert queues[0].receive(timeout=0) == b"2"
