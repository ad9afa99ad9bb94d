"""Which bindings elsewhere become bindings here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from shmbroker.netbridge.cluster.advert import Binding, Queue
from shmbroker.netbridge.cluster.adverts import Copy
from shmbroker.netbridge.cluster.balancing import HERE, TURNS, Member, members
from shmbroker.netbridge.cluster.redistribution import Here
from shmbroker.netbridge.cluster.topics import NO_HEIRS, Carried, Topics

EAST, WEST = b"east", b"west"
EMPTY = b"\x80"


def bound(
    queue: str, key: str = "eu.#", exchange: str = "prices", kind: str = "topic", **more: bool
) -> Binding:
    return Binding(
        exchange, kind, queue, more.get("is_to_exchange", False), key, EMPTY, False, False
    )


def has(*bindings: Binding, consumed: Iterable[str] = (), own: Iterable[str] = ()) -> Copy:
    """A node with these bindings, and their queues; `own`: these are of one place."""
    names = {each.destination for each in bindings if not each.is_to_exchange}
    queues = [Queue(name, True, name in consumed, name not in own) for name in names]
    return Copy({each.name: each for each in queues}, set(bindings))


def carried(
    there: Mapping[bytes, Copy],
    *,
    here: Iterable[Here] = (),
    bindings: Iterable[Binding] = (),
    mode: str = "on-demand",
    kind: str = "topic",
    heirs: Mapping[bytes, bytes] = NO_HEIRS,
    in_turn: frozenset[str] = frozenset(),
) -> frozenset[Carried]:
    topics = Topics(mode, tuple(here), bindings, there, heirs, in_turn=in_turn)
    return topics.carried({"prices": kind, "feeds": kind})


def to(node: bytes, queue: str = "", key: str = "eu.#", exchange: str = "prices") -> Carried:
    return Carried(exchange, key, EMPTY, False, node, queue)


def local(name: str, *, balanced: bool = True) -> Here:
    return Here(name, False, None, 1, balanced)


def test_one_for_each_node_and_key_whatever_the_number_of_queues() -> None:
    there = {
        EAST: has(bound("a"), bound("b"), bound("c", "us.#")),
        WEST: has(bound("d")),
    }
    assert carried(there) == {to(EAST), to(EAST, key="us.#"), to(WEST)}


@pytest.mark.parametrize("mode", ["off", "strict", "on-demand", "off-with-redistribution"])
def test_in_every_mode(mode: str) -> None:
    assert carried({EAST: has(bound("a"))}, mode=mode) == {to(EAST)}


def test_only_what_is_published_to_here_and_of_the_same_kind() -> None:
    there = {EAST: has(bound("a", exchange="others"))}
    assert carried(there) == frozenset()
    assert carried({EAST: has(bound("a"))}, kind="direct") == frozenset()


def test_bindings_between_exchanges_are_of_their_node() -> None:
    there = {EAST: has(bound("feeds", is_to_exchange=True))}
    assert carried(there) == frozenset()


def test_behind_an_exchange_that_leads_to_another_each_queue_is_named() -> None:
    """It may be reached twice, and gets one copy."""
    chain = [bound("feeds", is_to_exchange=True)]
    there = {EAST: has(bound("a"), bound("b"), bound("a", "#", exchange="feeds"))}
    assert carried(there, bindings=chain) == {
        to(EAST, "a"),
        to(EAST, "b"),
        to(EAST, "a", "#", "feeds"),
    }


def test_a_balanced_queue_that_is_bound_at_all_nodes_has_its_turns_and_no_more() -> None:
    there = {EAST: has(bound("orders")), WEST: has(bound("orders"))}
    assert carried(there, here=[local("orders")], bindings=[bound("orders")]) == frozenset()


def test_a_binding_of_a_balanced_queue_elsewhere_holds_here() -> None:
    there = {EAST: has(bound("orders", "us.#"))}
    found = carried(there, here=[local("orders")], bindings=[bound("orders")])
    assert found == {to(HERE, "orders", "us.#")}
    assert carried(there, here=[local("orders")]) == {to(HERE, "orders", "us.#")}


def test_beside_a_balanced_queue_the_others_of_that_node_are_named() -> None:
    """With the exchange as target, that node would give the balanced one a second copy."""
    there = {EAST: has(bound("orders"), bound("a")), WEST: has(bound("b"))}
    found = carried(there, here=[local("orders")], bindings=[bound("orders")])
    assert found == {to(EAST, "a"), to(WEST)}
    # also before it is bound there: what is on its way then must not be a second copy
    there = {EAST: Copy({"orders": Queue("orders", True, False)}, has(bound("a")).bindings)}
    assert carried(there, here=[local("orders")], bindings=[bound("orders")]) == {to(EAST, "a")}


@pytest.mark.parametrize("mode", ["off", "off-with-redistribution"])
def test_where_nothing_is_balanced_each_has_its_copy(mode: str) -> None:
    there = {EAST: has(bound("orders")), WEST: has(bound("orders"))}
    found = carried(there, here=[local("orders")], bindings=[bound("orders")], mode=mode)
    assert found == {to(EAST), to(WEST)}


def test_what_is_of_one_place_has_its_copy_at_each() -> None:
    own = ("latest",)
    there = {EAST: has(bound("latest"), own=own), WEST: has(bound("latest"), own=own)}
    found = carried(there, here=[local("latest", balanced=False)], bindings=[bound("latest")])
    assert found == {to(EAST), to(WEST)}


@pytest.mark.parametrize("mode", ["strict", "on-demand"])
def test_a_balanced_queue_that_is_not_here_goes_to_those_that_have_it_in_turn(mode: str) -> None:
    there = {EAST: has(bound("orders")), WEST: has(bound("orders"), bound("orders", "us.#"))}
    assert carried(there, mode=mode) == {to(TURNS, "orders"), to(TURNS, "orders", "us.#")}
    beside = {EAST: has(bound("orders"), bound("a")), WEST: has(bound("orders"))}
    assert carried(beside, mode=mode) == {to(TURNS, "orders"), to(EAST, "a")}


def test_a_queue_that_more_nodes_may_have_than_are_known_keeps_its_turns() -> None:
    """Else what is published meanwhile goes to its stand-in, and to the node that is known."""
    there = {EAST: has(bound("orders"), bound("a"), bound("latest"), own=("latest",))}
    in_turn = frozenset({"orders", "bills"})
    found = {to(TURNS, "orders"), to(EAST, "a"), to(EAST, "latest")}
    assert carried(there, in_turn=in_turn) == found
    assert carried(there, mode="off", in_turn=in_turn) == {to(EAST)}


def test_who_has_turns_with_it() -> None:
    there = {
        EAST: has(bound("orders"), bound("a")).queues,
        WEST: has(bound("orders"), consumed=["orders"]).queues,
    }
    both, up = frozenset({EAST, WEST}), frozenset({EAST})
    assert members("strict", "orders", there, up) == (Member(EAST, True), Member(WEST, True))
    assert members("on-demand", "orders", there, both) == (
        Member(EAST, False),
        Member(WEST, True),
    )
    assert members("on-demand", "orders", there, up) == (Member(EAST, False), Member(WEST, False))
    assert members("on-demand", "a", there, both) == (Member(EAST, False),)


# --- while a node leaves --------------------------------------------------------------------------


def test_what_crosses_for_other_queues_does_not_reach_one_that_comes_there() -> None:
    there = {EAST: has(bound("other")), WEST: has(bound("old"))}
    assert carried(there, heirs={WEST: EAST}) == {to(EAST, "other"), to(WEST, "old")}
    there[EAST] = has(bound("other"), bound("old"))
    assert carried(there, heirs={WEST: EAST}, mode="off") == {to(EAST)}, "it has told of it"


def test_the_heir_publishes_to_the_queue_that_it_has() -> None:
    there = {WEST: has(bound("old"))}
    assert carried(there, heirs={WEST: HERE}, mode="off") == {to(WEST, "old")}
    here = [local("old")]
    assert carried(there, heirs={WEST: HERE}, mode="off", here=here) == {to(HERE, "old")}
    bindings = [bound("old")]
    assert not carried(there, heirs={WEST: HERE}, mode="off", here=here, bindings=bindings)
