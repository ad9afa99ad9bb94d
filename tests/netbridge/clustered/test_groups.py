"""What the grouping handler of a live keeps, without other nodes."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shmbroker import Broker, QueueFull
from shmbroker.ipc.queue.grouped import ROUTES, TIMEOUT
from shmbroker.ipc.queue.queue import Queue
from shmbroker.netbridge.cluster.address import Addresses
from shmbroker.netbridge.cluster.advert import Queue as QueueThere
from shmbroker.netbridge.cluster.group import Drop, Group, Holder, Keep, Routed, Tell, Unrouted
from shmbroker.netbridge.cluster.grouping import Grouping
from shmbroker.netbridge.cluster.option import ON_DEMAND
from shmbroker.netbridge.cluster.redistribution import Here
from shmbroker.netbridge.cluster.said import Decides, Proposes
from shmbroker.netbridge.clustered.former import KEPT
from shmbroker.netbridge.clustered.groups import Groups, key_of
from shmbroker.netbridge.clustered.looking import Looked
from shmbroker.netbridge.clustered.messages import Messages
from tests.netbridge.cluster.talk import Town, node_of

ME = b"m" * 16
ANNA = Group("orders", "anna")


def made(
    broker: Broker, told: list[Any], address: str = "", group_timeout: float | None = None
) -> Groups:
    cluster = SimpleNamespace(balancing=ON_DEMAND, name="town", addresses=Addresses.parse(address))
    grouping = Grouping("mine", True, 5.0, group_timeout, 30.0)
    setup = SimpleNamespace(grouping=grouping, cluster=cluster)
    return Groups(cast(Any, None), broker, cast(Any, setup), ME, told.append, lambda: None)


def test_what_is_no_route_is_passed_over(broker: Broker) -> None:
    """Programs may publish to these queues, which are durable: no broker would begin any more."""
    made(broker, [])
    junk = (b"junk", b"ab", b"$sf.town.junk", b"$sf.town.ab", b"\xff\xfe")
    for name in (KEPT, ROUTES):
        for number, body in enumerate(junk):
            broker.queue(name).publish(body, key=f"orders\x01{number}", confirm="shm")
        for key in ("orders\x01", "orders\x01" + "x" * 300, "\x01x"):
            broker.queue(name).publish(ME.hex().encode(), key=key, confirm="shm")
    handler = made(broker, []).handler
    assert handler.arbiter is not None
    assert list(handler.arbiter.routes) == []
    assert set(handler.routes.values()) == {ME}


def test_a_route_for_which_there_was_no_room_is_kept_once_there_is(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be undecided for ever, and each publish of its group fail."""
    told: list[Any] = []
    groups = made(broker, told)
    now = time.monotonic()
    holders = {"orders": [Holder(ME, is_consumed=True, is_up=True)]}
    groups._does(groups.handler.looks([ME], {}, {ME: ["orders"]}, holders, now))
    write = groups._write

    def full(queue: Queue, key: str, value: str) -> int | None:
        return None if queue.name == KEPT else write(queue, key, value)

    monkeypatch.setattr(groups, "_write", full)
    groups._wants(ANNA)
    monkeypatch.setattr(groups, "_write", write)
    assert groups._kept.value(key_of(ANNA)) is None
    groups._does(groups.handler.tick(now + 1.0))  # it is proposed again
    kept = groups._kept.value(key_of(ANNA))
    assert kept is not None
    assert bytes(kept.body).decode() == ME.hex()
    assert told == []


def test_a_route_that_leads_to_an_heir_is_kept_once_there_is_room(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends the group goes on to the heir by itself, so nobody may get another node."""
    left, heir, other = b"l" * 16, b"h" * 16, b"o" * 16
    made(broker, [])._does([Keep(1, ANNA, left)])
    groups, now = made(broker, []), time.monotonic()
    arbiter = groups.handler.arbiter
    assert arbiter is not None
    queues = {each: ["orders"] for each in (ME, heir, other)}
    holders = [Holder(each, is_consumed=True, is_up=True) for each in queues]
    full = Full(monkeypatch)
    groups._does(groups.handler.looks(queues.keys(), {left: heir}, queues, {}, now))
    proposes = Proposes("orders", "anna", other, is_used=False)
    assert list(arbiter.proposed(other, proposes, holders, now)) == []
    full.is_full = False
    groups.tick(groups.deadline)
    kept = groups._kept.value(key_of(ANNA))
    assert kept is not None
    assert bytes(kept.body).decode() == heir.hex()
    [number] = [each.number for each in arbiter._routes.values()]
    decides = Decides("orders", "anna", heir, is_accepted=False)
    assert list(arbiter.kept(number, ANNA)) == [Tell(other, decides)]


def test_a_group_of_a_queue_that_is_no_part_of_the_cluster_is_forgotten_like_others(
    broker: Broker,
) -> None:
    """Else the table of routes fills, and no group has room any more."""
    ben = Group("local.orders", "ben")
    for timeout in (100.0, None):
        groups = made(broker, [], "!local", timeout)
        assert ben not in groups.handler.routes, "it concerns nobody else"
        groups._wants(ben)
        route = groups._routes.value(key_of(ben))
        assert route is not None
        assert bytes(route.body) == b"local.orders"
        assert bool(route.expires_ns) == (timeout is not None)


def test_a_node_that_is_talked_to_again_gets_groups_again(broker: Broker) -> None:
    """Its link and the way there are made one after the other: nothing else changes then."""
    town, west = Town(), node_of("west")
    town.add("east", statics=("tcp://west:1",))
    town.add("west")
    town.shows("west", QueueThere("orders", is_durable=True, is_consumed=True))
    town.meet()
    ways: Any = SimpleNamespace(
        looks=lambda machine: None, up=frozenset(), made=frozenset([west]), routes_anew=False,
        orphans=frozenset(),
    )  # fmt: skip
    setup: Any = SimpleNamespace(
        cluster=SimpleNamespace(name="town", hops=1, balancing=ON_DEMAND)
    )  # fmt: skip
    nobody = cast(Any, None)
    messages = Messages(nobody, nobody, setup, lambda line: None, lambda: None)
    groups, end = made(broker, []), cast(Any, SimpleNamespace(say=lambda frame: None))
    messages._ways, messages._groups = ways, groups
    messages.begins(ME)
    messages.sees(Looked([], [Here("orders", is_consumed=False, delay=None)], {}))
    for up, reached in (([west], [west]), ([], []), ([west], []), ([west], [west])):
        ways.up = frozenset(up)
        groups.reaches(dict.fromkeys(reached, end))
        messages.looks(town.members["east"])
    groups._wants(ANNA)
    kept = groups._kept.value(key_of(ANNA))
    assert kept is not None
    assert bytes(kept.body).decode() == west.hex(), "it has the consumer"


class Full:
    """A queue of the handler, while there is no room in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full, self.tried = True, 0
        publish = Queue.publish

        def publishes(queue: Queue, *given: Any, **more: Any) -> Any:
            if queue.name.startswith(ROUTES) and self.is_full:
                self.tried += 1
                raise QueueFull("no room")
            return publish(queue, *given, **more)

        monkeypatch.setattr(Queue, "publish", publishes)


def test_a_route_that_ends_while_there_is_no_room_ends_later(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else programs go on by it, and the next arbiter would keep it."""
    told: list[Any] = []
    groups, now = made(broker, told), time.monotonic()
    ben = Group("orders", "ben")
    for group in (ANNA, ben):
        groups._does([Keep(1, group, ME), Routed(group, ME)])
    full = Full(monkeypatch)
    groups._does([Drop(ANNA), Unrouted(ANNA), Drop(ben)])
    groups.tick(now + 0.1)
    assert full.tried == 3, "not at once again"
    groups.tick(groups.deadline)
    assert full.tried == 4, "one that finds no room is enough"
    assert [line["state"] for line in told] == ["too many groups"]
    full.is_full = False
    groups._does([Keep(2, ben, ME)])
    groups.tick(groups.deadline)
    for queue in (groups._kept, groups._routes):
        value = queue.value(key_of(ANNA))
        assert value is None or not value.body
    newer = groups._kept.value(key_of(ben))
    assert newer is not None, "what is older ends nothing that is newer"
    assert newer.body
    assert groups.deadline > now + 60.0


def test_a_route_that_found_no_room_is_not_written_when_there_is_another_one(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = made(broker, [])
    full = Full(monkeypatch)
    groups._does([Routed(ANNA, ME)])
    groups._does([Routed(ANNA, b"w" * 16)])  # to which there is no queue yet
    full.is_full = False
    groups.tick(groups.deadline)
    value = groups._routes.value(key_of(ANNA))
    assert value is None or not value.body
    groups._made = frozenset({b"w" * 16})
    groups._does([Routed(ANNA, b"w" * 16)])
    value = groups._routes.value(key_of(ANNA))
    assert value is not None
    assert bytes(value.body).decode().endswith((b"w" * 16).hex())


def test_a_handler_begins_while_there_is_no_room(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Full(monkeypatch)
    groups = made(broker, [])
    full.is_full = False
    assert groups._routes.value(TIMEOUT) is None
    groups.tick(groups.deadline)
    assert groups._routes.value(TIMEOUT) is not None
