"""To which node the messages of a group go: one decides, all others ask it and remember."""

from __future__ import annotations

from collections import Counter

import pytest

from shmbroker.netbridge.cluster.arbiter import UNSEEN_SECONDS, Arbiter
from shmbroker.netbridge.cluster.group import Drop, Group, Holder, Keep, Tell, TellAll
from shmbroker.netbridge.cluster.option import OFF, ON_DEMAND, STRICT
from shmbroker.netbridge.cluster.proposer import TOGETHER
from shmbroker.netbridge.cluster.said import Decides, Ends, Proposes
from tests.netbridge.cluster.grouped import Towns
from tests.netbridge.cluster.talk import node_of

A, B, C = (node_of(name) for name in "abc")
ANNA = Group("orders", "anna")


def three(**of_remotes: float) -> Towns:
    """a decides; each has the queue, with a consumer."""
    towns = Towns()
    towns.starts("a", local=True)
    for name in "bc":
        towns.starts(name, **of_remotes)  # type: ignore[arg-type]
    towns.meet()
    for name in "abc":
        towns.has(name, "orders")
    return towns


def test_all_send_a_group_to_one_node_whoever_published_first() -> None:
    towns = three()
    first = towns.wants("b", "anna")
    assert first is not None
    assert {towns.wants(name, "anna") for name in "abc"} == {first}
    assert towns.places["a"].kept == {ANNA: first}


def test_at_once_from_all_the_first_proposal_counts() -> None:
    towns = three()
    towns.is_slow = True
    assert [towns.wants(name, "anna") for name in "abc"] == [None, None, None]
    while towns.passes():
        pass
    assert {*towns.handlers["b"].routes, *towns.handlers["c"].routes} == set(), "not durable yet"
    assert towns.places["a"].kept == {}
    towns.keeps_at("a")
    while towns.passes():
        pass
    [route] = towns.places["a"].kept.values()
    assert [towns.handlers[name].routes for name in "abc"] == [{ANNA: route}] * 3


def test_many_groups_are_spread_over_those_who_consume() -> None:
    towns = three()
    towns.has("c", "orders", consumed=False)
    found = Counter(towns.wants(name, f"{name}{each}") for name in "abc" for each in range(20))
    assert found == {A: 30, B: 30}


@pytest.mark.parametrize(("mode", "wanted"), [(STRICT, {A: 4, B: 4, C: 4}), (OFF, {B: 12})])
def test_in_each_mode_a_group_is_balanced_as_a_message_would_be(
    mode: str, wanted: dict[bytes, int]
) -> None:
    towns = three()
    other = Towns(mode)
    other.starts("a", local=True)
    for name in "bc":
        other.starts(name)
    other.meet()
    for name in "abc":
        other.has(name, "orders", consumed=False)
    assert Counter(other.wants("b", str(each)) for each in range(12)) == wanted
    assert towns.wants("b", "anna") is not None


def test_the_arbiter_answers_a_better_node_which_is_proposed_then() -> None:
    towns = three()
    towns.has("b", "orders", consumed=False)
    towns.has("c", "orders", consumed=False)
    towns.cut("a", "b")
    assert towns.wants("c", "anna") == A, "where somebody consumes"
    towns.has("a", "orders", consumed=False)
    towns.has("b", "orders")  # which the arbiter does not reach
    assert towns.wants("c", "berta") == B
    towns.has("c", "orders")
    before = towns.handlers["c"].counters.rejections
    assert [towns.wants("c", f"{each}") for each in range(4)] == [C] * 4
    assert towns.handlers["c"].counters.rejections == before + 2


def test_the_route_stays_when_its_consumer_leaves_and_when_its_node_is_down() -> None:
    towns = three()
    route = towns.wants("b", "anna")
    name = {A: "a", B: "b", C: "c"}[route or b""]
    towns.has(name, "orders", consumed=False)
    assert towns.wants("c", "anna") == route
    towns = three()
    towns.has("a", "orders", consumed=False)
    towns.has("b", "orders", consumed=False)
    assert towns.wants("b", "anna") == C
    towns.dies("c")
    towns.later(3600.0)
    assert towns.wants("a", "anna") == C
    assert towns.wants("b", "anna") == C


def test_it_ends_when_the_queue_is_deleted() -> None:
    towns = three()
    towns.has("a", "orders", consumed=False)
    towns.has("b", "orders", consumed=False)
    assert {towns.wants(name, "anna") for name in "ab"} == {C}
    towns.has("c", "orders", consumed=None)
    assert [towns.handlers[name].routes for name in "abc"] == [{}, {}, {}]
    assert towns.places["a"].kept == {}
    assert towns.wants("b", "anna") in (A, B)


def test_a_queue_that_was_proposed_before_its_arbiter_knew_of_it_has_to_come() -> None:
    towns = three()
    towns.places["b"].untold.add("bills")
    towns.has("b", "bills")
    assert towns.wants("b", "anna", "bills") == B
    towns.later(UNSEEN_SECONDS - 0.1)
    assert towns.handlers["b"].routes == {Group("bills", "anna"): B}
    towns.later(0.1)
    assert towns.handlers["b"].routes == {}
    assert towns.wants("b", "anna", "bills") == B
    towns.places["b"].untold.clear()
    towns.looks()
    towns.later(2 * UNSEEN_SECONDS)
    assert towns.handlers["b"].routes == {Group("bills", "anna"): B}


@pytest.mark.parametrize("is_down", [True, False])
def test_it_ends_when_its_node_is_forgotten(is_down: bool) -> None:
    towns = three()
    towns.has("a", "orders", consumed=False)
    towns.has("b", "orders", consumed=False)
    assert {towns.wants(name, "anna") for name in "ab"} == {C}
    towns.dies("c")
    if is_down:
        towns.cut("a", "b")
    towns.forget("c")
    towns.meet()
    assert towns.wants("b", "anna") in (A, B)
    assert towns.places["a"].kept[ANNA] in (A, B)


@pytest.mark.parametrize("heir", ["a", "b"])
def test_it_leads_to_whoever_has_the_messages_of_a_node_that_was_scaled_down(heir: str) -> None:
    towns = three()
    groups = [f"{each}" for each in range(9)]
    for each in groups:
        towns.wants("b", each)
    there = {group.name for group, node in towns.places["a"].kept.items() if node == C}
    assert len(there) == 3
    towns.leaves("c", heir)
    for name in "ab":
        assert {each: towns.wants(name, each) for each in there} == {
            each: node_of(heir) for each in there
        }
    assert {towns.places["a"].kept[Group("orders", each)] for each in there} == {node_of(heir)}
    assert len(towns.handlers["b"].routes) == 9


def test_an_arbiter_that_learns_late_of_a_node_that_left_is_understood() -> None:
    towns = three()
    towns.has("a", "orders", consumed=False)
    towns.has("b", "orders", consumed=False)
    assert towns.wants("b", "anna") == C
    nodes, queues = [A, B], {A: ["orders"], B: ["orders"]}
    knows = towns.handlers["b"]
    for action in list(knows.looks(nodes, {C: A}, queues, {}, 0.0)):
        towns.do("b", action)
    assert knows.routes == {ANNA: A}
    assert list(knows.heard(A, Decides("orders", "anna", C, False), 0.0)) == []
    assert knows.routes == {ANNA: A}
    list(knows.heard(A, Decides("orders", "bert", C, True), 0.0))
    assert knows.routes[Group("orders", "bert")] == A


def test_without_its_arbiter_what_is_known_goes_on_and_what_is_new_times_out() -> None:
    towns = three(timeout=10.0)
    route = towns.wants("b", "anna")
    towns.dies("a")
    assert towns.handlers["b"].state == "not reached"
    assert towns.wants("b", "anna") == route
    assert towns.wants("b", "berta") is None
    towns.later(9.9)
    assert towns.places["b"].timeouts == []
    towns.later(0.2)
    assert towns.places["b"].timeouts == [Group("orders", "berta")]
    assert towns.handlers["b"].counters.timeouts == 1


def test_an_arbiter_that_comes_back_in_time_is_asked_and_knows_what_was_decided() -> None:
    towns = three(timeout=10.0)
    route = towns.wants("b", "anna")
    towns.dies("a")
    assert towns.wants("c", "berta") is None
    towns.later(5.0)
    towns.starts("a", local=True)
    towns.meet()
    assert towns.handlers["c"].routes[Group("orders", "berta")] in (A, B, C)
    assert towns.wants("c", "anna") == route
    towns.later(20.0)
    assert towns.places["c"].timeouts == []


def test_what_was_not_durable_was_said_to_nobody() -> None:
    towns = three()
    towns.is_slow = True
    towns.wants("b", "anna")
    while towns.passes():
        pass
    towns.dies("a")
    towns.is_slow = False
    towns.has("b", "orders", consumed=False)
    towns.starts("a", local=True)
    towns.meet()
    assert {towns.wants(name, "anna") for name in "abc"} == {towns.places["a"].kept[ANNA]}


def test_an_arbiter_that_has_lost_its_routes_learns_them_from_those_that_use_them() -> None:
    towns = three()
    count = 3 * TOGETHER
    routes = [towns.wants("b", str(each)) for each in range(count)]
    towns.dies("a")
    towns.places["a"].kept.clear()
    towns.starts("a", local=True)
    towns.meet()
    assert [towns.wants("c", str(each)) for each in range(count)] == routes


def test_without_a_local_handler_new_groups_time_out_and_one_line_says_so() -> None:
    towns = Towns()
    for name in "bc":
        towns.starts(name)
    towns.meet()
    towns.has("b", "orders")
    for each in range(3):
        assert towns.wants("b", str(each)) is None
    towns.later(5.0)
    assert len(towns.places["b"].timeouts) == 3
    assert towns.lines == [("b", "nobody decides")]
    assert towns.handlers["b"].state == "nobody decides"


def test_a_queue_that_nobody_has_is_waited_for() -> None:
    towns = three()
    assert towns.wants("b", "anna", "bills") is None
    towns.has("c", "bills")
    towns.later(1.0)
    assert towns.handlers["b"].routes == {Group("bills", "anna"): C}


def test_of_two_that_decide_it_is_the_lower_node_id_and_the_other_says_so() -> None:
    towns = Towns()
    towns.starts("a", local=True)
    towns.starts("b", local=True)
    towns.starts("c")
    towns.link("b", "c")
    for name in "abc":
        towns.has(name, "orders")
    first = towns.wants("c", "anna")
    assert first in (B, C)
    towns.meet()
    assert towns.handlers["a"].state == "decides"
    assert towns.handlers["b"].state == "error: two local handlers"
    assert towns.handlers["c"].state == "asks"
    assert sorted(towns.lines) == [("a", "two local handlers"), ("b", "two local handlers")]
    assert {towns.wants(name, "anna") for name in "abc"} == {first}
    towns.dies("a")  # still not the other one: a has routes that it does not know
    assert towns.wants("c", "berta") is None
    towns.forget("a")
    assert towns.handlers["b"].state == "decides"


@pytest.mark.parametrize(
    ("timeout", "group_timeout", "of_local", "state"),
    [
        (2.4, None, None, "timeout is short"),
        (2.5, None, None, ""),
        (5.0, None, 100.0, "group-timeout differs"),
        (5.0, 49.0, 100.0, "group-timeout differs"),
        (5.0, 101.0, 100.0, "group-timeout differs"),
        (5.0, 50.0, 100.0, ""),
        (5.0, 100.0, 100.0, ""),
        (5.0, 100.0, None, ""),
    ],
)
def test_times_that_do_not_go_together_are_a_warning(
    timeout: float, group_timeout: float | None, of_local: float | None, state: str
) -> None:
    towns = Towns()
    towns.starts("a", local=True, group_timeout=of_local)
    towns.starts("b", timeout=timeout, group_timeout=group_timeout)
    towns.meet()
    towns.cut("a", "b")
    towns.meet()
    assert towns.lines == ([("b", state)] if state else [])


def test_handlers_with_different_names_do_not_go_together() -> None:
    towns = Towns()
    towns.starts("a", local=True, handler="yours")
    towns.starts("b")
    towns.meet()
    assert towns.lines == [("b", "another handler")]
    assert towns.handlers["b"].state == "nobody decides"


def forgetting() -> Towns:
    towns = Towns()
    towns.starts("a", local=True, group_timeout=100.0)
    towns.starts("b", group_timeout=60.0)
    towns.meet()
    towns.has("a", "orders", consumed=False)
    towns.has("b", "orders")
    return towns


def test_a_group_that_is_not_used_is_forgotten() -> None:
    towns = forgetting()
    assert towns.wants("b", "anna") == B
    towns.later(59.0, steps=59)
    assert towns.handlers["b"].routes == {ANNA: B}
    towns.later(31.0, steps=31)
    assert towns.handlers["b"].routes == {}
    assert towns.places["a"].kept == {ANNA: B}
    towns.later(59.0, steps=59)  # it may have been used since somebody told of it
    assert towns.places["a"].kept == {ANNA: B}
    towns.later(32.0, steps=32)
    assert towns.places["a"].kept == {}
    towns.has("b", "orders", consumed=None)
    towns.has("a", "orders")
    assert towns.wants("b", "anna") == A


def test_a_group_that_is_used_anywhere_is_not_forgotten() -> None:
    towns = forgetting()
    assert towns.wants("b", "anna") == B
    for _ in range(100):
        towns.handlers["b"].used(ANNA, towns.now)
        towns.later(10.0, steps=5)
    assert towns.places["a"].kept == {ANNA: B}
    [(group, node, used)] = towns.arbiter("a").routes
    assert (group, node) == (ANNA, B)
    assert used >= towns.now - 30.0


def test_a_group_is_not_forgotten_before_its_time_because_a_use_was_told_late() -> None:
    """The program tells once in 25 s, and so does its broker: it was used 49 s later than told."""
    towns = forgetting()
    assert towns.wants("b", "anna") == B
    towns.later(149.0, steps=149)
    assert towns.places["a"].kept == {ANNA: B}


def test_uses_are_told_in_time_whatever_the_reapers_period_is() -> None:
    towns = Towns()
    towns.starts("a", local=True, group_timeout=20.0)
    towns.starts("b", group_timeout=20.0)
    towns.meet()
    towns.has("b", "orders")
    assert towns.wants("b", "anna") == B
    for _ in range(20):
        towns.handlers["b"].used(ANNA, towns.now)
        towns.later(10.0, steps=10)
    assert towns.places["a"].kept == {ANNA: B}


def test_a_forgotten_node_has_no_groups_though_the_arbiter_is_not_reached() -> None:
    towns = three()
    towns.has("a", "orders", consumed=False)
    towns.has("b", "orders", consumed=False)
    assert towns.wants("b", "anna") == C
    for name in "ac":
        towns.dies(name)
    before = towns.handlers["b"].counters.proposals
    towns.forget("c")
    assert towns.wants("b", "anna") is None
    towns.later(1.0, steps=10)
    assert towns.handlers["b"].counters.proposals == before, "there is nobody to ask"


def test_what_is_decided_anew_waits_for_its_own_writing() -> None:
    arbiter = Arbiter(ON_DEMAND, None, 30.0, {}, 0.0)
    both = {A: ["orders"], B: ["orders"]}
    consumed = [Holder(A, is_consumed=True, is_up=True)]
    proposes = Proposes("orders", "anna", A, False)
    assert list(arbiter.looks(both, {}, both, 0.0)) == []
    assert list(arbiter.proposed(B, proposes, consumed, 0.0)) == [Keep(1, ANNA, A)]
    ended = [Drop(ANNA), TellAll(Ends("orders", "anna", A))]
    assert list(arbiter.looks(both, {}, {A: [], B: ["orders"]}, 1.0)) == ended
    list(arbiter.looks(both, {}, both, 2.0))
    assert list(arbiter.proposed(B, proposes, consumed, 2.0)) == [Keep(2, ANNA, A)]
    assert list(arbiter.kept(1, ANNA)) == []
    assert list(arbiter.kept(2, ANNA)) == [Tell(B, Decides("orders", "anna", A, True))]


def test_what_could_not_be_written_is_decided_anew() -> None:
    arbiter = Arbiter(ON_DEMAND, None, 30.0, {}, 0.0)
    both = {A: ["orders"], B: ["orders"]}
    consumed = [Holder(A, is_consumed=True, is_up=True), Holder(B, is_consumed=True, is_up=True)]
    list(arbiter.looks(both, {}, both, 0.0))
    proposes = Proposes("orders", "anna", A, False)
    assert list(arbiter.proposed(B, proposes, consumed, 0.0)) == [Keep(1, ANNA, A)]
    arbiter.not_kept(1, ANNA)
    proposes = Proposes("orders", "anna", B, False)
    assert list(arbiter.proposed(B, proposes, consumed, 1.0)) == [Keep(2, ANNA, B)]
    arbiter.not_kept(1, ANNA)
    assert list(arbiter.kept(2, ANNA)) == [Tell(B, Decides("orders", "anna", B, True))]


def test_only_the_one_that_decides_answers_and_is_believed() -> None:
    towns = Towns()
    towns.starts("a", local=True)
    towns.starts("b", local=True)
    towns.starts("c")
    towns.meet()
    towns.has("c", "orders")
    assert towns.wants("c", "anna") == C
    proposes = Proposes("orders", "berta", C, False)
    assert list(towns.handlers["b"].heard(C, proposes, 0.0)) == []
    assert list(towns.handlers["c"].heard(B, Ends("orders", "anna", C), 0.0)) == []
    assert towns.handlers["c"].routes == {ANNA: C}
