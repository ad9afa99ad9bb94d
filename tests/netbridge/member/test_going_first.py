"""Who of the members on the list goes first where nobody can be asked, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import Promote
from shmbroker.netbridge.member.said import GoAhead, Hello
from shmbroker.netbridge.member.standing import Position, State
from shmbroker.netbridge.member.written import number_of
from tests.netbridge.member.driven import (
    NEWER,
    NOBODY,
    NODE,
    OLDER,
    SAME,
    WITNESS,
    A,
    Driven,
    backup,
    begun,
    following,
    lines,
    meets,
    put,
    serves,
    told,
)

OF_ANOTHER = b"M" * 16


def waiting(electorate: Electorate | None = NOBODY, **options: Any) -> Driven:
    """It waits for b, with which it was in sync."""
    driven = backup(electorate, **options)
    driven.machine.becomes(State.HELD, "waits for b")
    return driven


def goes(driven: Driven) -> list[Any]:
    driven.machine._goes_first(driven.now)
    return driven.does(driven.machine.done())


# --- comparing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("copies", "boot"), [
    ((Copy("b"), Copy("a", "boot a")), "boot a"), ((Copy("b", "boot b"), A), ""),
    ((Copy("b"), A), ""),
])  # fmt: skip
def test_what_it_is_granted_is_for_this_boot_as_its_copy_is(
    copies: tuple[Copy, ...], boot: str
) -> None:
    machine = waiting().machine
    machine.copies = copies
    assert machine.alone_grant == Grant(2, "a", (Copy("a", boot),))


def test_without_whom_it_does_not_begin() -> None:
    machine = waiting().machine
    assert machine.awaited == "b"
    machine.copies = (A,)
    assert machine.awaited == "its voters"


def test_a_proof_of_death_is_none_where_voters_are() -> None:
    machine = following(WITNESS).machine
    machine.proven.add("b")
    assert not machine.dead
    machine = following(NOBODY).machine
    machine.proven.add("b")
    assert machine.dead == {"b"}


@pytest.mark.parametrize(("hello", "all_met"), [
    ({}, True), ({"last": NEWER, "is_listed": False}, True), ({"last": NEWER}, False),
    ({"serves": True}, False), ({"is_following": True}, False), ({"epoch": 2}, False),
    ({"node": OF_ANOTHER}, False),
])  # fmt: skip
def test_all_are_met_if_nobody_has_more_or_gets_more(hello: dict[str, Any], all_met: bool) -> None:
    driven = backup(NOBODY)
    driven.machine.state = State.BEGINNING  # it does nothing now
    meets(driven, **hello)
    assert driven.machine.has_met_all is all_met


def test_who_is_not_there_is_not_ahead() -> None:
    driven = waiting(WITNESS)
    assert not driven.machine.is_behind("b")
    meets(driven, last=NEWER)
    assert driven.machine.is_behind("b")


@pytest.mark.parametrize(("electorate", "hello", "is_so"), [
    (WITNESS, {}, True), (WITNESS, {"epoch": 2}, False), (WITNESS, {"last": SAME}, False),
    (NOBODY, {"last": SAME}, True), (NOBODY, {"last": SAME, "is_parked": True}, False),
    (NOBODY, {"last": SAME, "serves": True}, False),
])  # fmt: skip
def test_who_parked_it_is_here_and_waits_as_well(
    electorate: Electorate | None, hello: dict[str, Any], is_so: bool
) -> None:
    driven = backup(electorate)
    machine = driven.machine
    machine.peers["b"] = Hello(
        **({"node": NODE, "last": OLDER, "serves": False, "epoch": 1} | hello)
    )
    assert not machine.is_parked_for_nothing
    machine.is_parked = True
    assert machine.is_parked_for_nothing is is_so


def test_it_may_go_on_alone_if_not_all_are_here_and_nobody_is_about_to_be_live() -> None:
    driven = waiting(on_partition="continue-alone")
    machine = driven.machine
    machine.state = State.BEGINNING
    machine.copies = (Copy("b"), Copy("c"), Copy("a"))
    assert machine.may_split
    meets(driven, "c", is_following=True)
    assert not machine.may_split
    meets(driven, "c")
    assert machine.may_split
    meets(driven, "c", node=OF_ANOTHER, serves=True)
    assert not machine.may_split
    meets(driven, "c")
    meets(driven, "b")
    assert not machine.may_split, "all are here"


def test_who_is_of_another_node_is_no_partner() -> None:
    driven = waiting()
    driven.machine.state = State.BEGINNING
    meets(driven, "b")
    meets(driven, "c", node=OF_ANOTHER)
    assert [each.node for each in driven.machine.partners] == [NODE]


# --- letting another one go ahead ---------------------------------------------------------------


def lets(driven: Driven, **hello: Any) -> bool:
    return GoAhead(3) in told(meets(driven, claim=3, **hello), "b")


def test_who_has_all_that_was_confirmed_is_let_ahead() -> None:
    driven = waiting()
    assert lets(driven)
    assert driven.machine.let_ahead == {"b"}


@pytest.mark.parametrize("hello", [
    {"epoch": 0, "last": NEWER}, {"node": OF_ANOTHER}, {"is_eligible": False},
])  # fmt: skip
def test_who_has_less_or_is_of_another_node_is_not(hello: dict[str, Any]) -> None:
    assert not lets(waiting(), **hello)


@pytest.mark.parametrize("changes", [
    {"copies": (Copy("c"), Copy("a"))}, {"claim": 1}, {"handed_to": "a"},
    {"state": State.BEGINNING},
])  # fmt: skip
def test_nobody_is_by_one_that_goes_itself(changes: dict[str, Any]) -> None:
    driven = waiting()
    put(driven.machine, changes)
    assert not lets(driven)


def test_nobody_is_where_voters_are() -> None:
    assert not lets(waiting(WITNESS))


@pytest.mark.parametrize("changes", [{"handed_to": "b"}, {"copies": (Copy("b"),)}])
def test_who_was_handed_over_to_is_and_everybody_by_one_that_is_not_listed(
    changes: dict[str, Any],
) -> None:
    driven = waiting()
    put(driven.machine, changes)
    assert lets(driven, is_eligible=False)


# --- going first --------------------------------------------------------------------------------


def test_it_takes_over_with_its_command_and_begins_again_without() -> None:
    driven = waiting(has_command=True)
    assert Promote() in goes(driven)
    driven = waiting(has_command=True)
    driven.machine.last = Position(1, "a", number_of(1, 5), 0)
    assert begun(goes(driven)), "it was live before"
    driven = waiting(has_command=True)
    driven.machine.last, driven.machine.is_called = Position(1, "a", number_of(1, 5), 0), True
    assert Promote() in goes(driven), "a person wants it"


def test_after_a_no_of_its_command_it_waits_unless_it_was_live_or_is_called() -> None:
    driven = waiting()
    driven.machine.refused_until = 12.0
    assert not goes(driven)
    driven.machine.is_called = True
    assert begun(goes(driven))
    driven = waiting()
    driven.machine.refused_until = 12.0
    driven.machine.last = Position(1, "a", number_of(1, 5), 0)
    assert begun(goes(driven))
    driven = waiting()
    driven.machine.refused_until = 10.0
    assert begun(goes(driven))


def test_who_is_isolated_does_not_go() -> None:
    driven = waiting()
    driven.machine.isolation = "no peer"
    assert not begun(goes(driven))
    assert driven.machine.why == "no peer"
    driven = backup(NOBODY)
    driven.machine.state = State.BEGINNING
    meets(driven)
    driven.machine.becomes(State.HELD, "waits for b")
    driven.machine.isolation = "no peer"
    goes(driven)
    assert driven.machine.claim == 0


def test_by_command_only_it_waits_for_that_unless_it_was_handed_over_to() -> None:
    driven = waiting(activates=False)
    assert not begun(goes(driven))
    assert driven.machine.why == "waits for shmbroker ha promote"
    driven = waiting(activates=False)
    driven.machine.is_called = True
    assert begun(goes(driven))
    driven = waiting(activates=False)
    driven.machine.handed_to = "a"
    assert begun(goes(driven))
    driven = waiting(activates=False)
    driven.machine.handed_to, driven.machine.boot = "a", "boot 2"
    assert not begun(goes(driven)), "and lacks what its host has lost"


def claiming() -> Driven:
    """Its claim is with b."""
    driven = backup(NOBODY)
    driven.machine.state = State.BEGINNING
    meets(driven)
    driven.machine.becomes(State.HELD, "waits for b")
    driven.did.clear()
    goes(driven)
    assert driven.machine.claim == 1
    return driven


def test_it_claims_the_epoch_of_those_that_are_here_and_waits_for_their_answer() -> None:
    driven = claiming()
    assert driven.machine.state is State.HELD
    assert "held" not in lines(driven.did), "it is so already"
    assert not driven.hears("b", GoAhead(7)), "of another claim"
    assert begun(driven.hears("b", GoAhead(1)))


def test_who_was_handed_over_to_claims_nothing() -> None:
    driven = backup(NOBODY)
    driven.machine.state = State.BEGINNING
    meets(driven)
    driven.machine.becomes(State.HELD)
    driven.machine.handed_to = "a"
    assert begun(goes(driven))


def test_an_answer_without_a_claim_is_none() -> None:
    driven = waiting()
    driven.machine.let_by = frozenset("c")
    assert not driven.hears("b", GoAhead(0))
    assert driven.machine.let_by == {"c"}


def test_an_answer_counts_while_all_are_here_or_it_may_split_or_is_called() -> None:
    for changes, goes_on in (({}, False), ({"is_called": True}, True)):
        driven = claiming()
        put(driven.machine, changes)
        driven.machine.copies = (Copy("b"), Copy("c"), Copy("a", "boot a"))
        assert begun(driven.hears("b", GoAhead(1))) is goes_on
        assert driven.machine.claim == 0
    driven = claiming()
    driven.machine.peers["b"] = Hello(NODE, NEWER, False, 1)
    assert not begun(driven.hears("b", GoAhead(1)))


def test_a_claim_that_is_withdrawn_is_told_and_none_is_not() -> None:
    driven = claiming()
    driven.machine._withdraws()
    assert told(driven.machine.done(), "b") == [driven.machine.hello]
    driven.machine._withdraws()
    assert not driven.machine.done()


# --- rivals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("electorate", "hello", "is_held"), [
    (NOBODY, {"serves": True, "epoch": 2}, True), (NOBODY, {"epoch": 2}, False),
    (NOBODY, {"serves": True, "epoch": 2, "node": OF_ANOTHER}, False),
    (NOBODY, {"serves": True, "epoch": 1}, False), (WITNESS, {"serves": True, "epoch": 2}, False),
])  # fmt: skip
def test_beside_a_live_of_a_higher_epoch_it_does_not_go(
    electorate: Electorate | None, hello: dict[str, Any], is_held: bool
) -> None:
    driven = backup(electorate)
    driven.machine.state = State.BEGINNING
    meets(driven, **hello)
    assert bool(driven.machine._why_held_back()) is is_held


@pytest.mark.parametrize(("electorate", "hello", "is_rival"), [
    (NOBODY, {"serves": True}, True), (NOBODY, {"is_following": True}, True), (NOBODY, {}, False),
    (NOBODY, {"node": OF_ANOTHER, "serves": True}, True), (NOBODY, {"node": OF_ANOTHER}, False),
    (NOBODY, {"node": OF_ANOTHER, "is_following": True}, False),
    (WITNESS, {"serves": True}, False),
])  # fmt: skip
def test_who_is_a_rival(
    electorate: Electorate | None, hello: dict[str, Any], is_rival: bool
) -> None:
    driven = backup(electorate)
    driven.machine.state = State.BEGINNING
    meets(driven, **hello)
    assert driven.machine.rivals == ("b" if is_rival else "")


def test_of_another_node_one_that_is_not_on_the_list_is_none() -> None:
    driven = backup(NOBODY)
    driven.machine.state = State.BEGINNING
    serves(driven, "c", node=OF_ANOTHER)
    assert driven.machine.rivals == ""
    serves(driven, "d")
    assert driven.machine.rivals == "d"


def test_who_may_be_live_unheard() -> None:
    assert backup(NOBODY, activates=False).machine.unmet == "", "a person says who is"
    assert backup(WITNESS).machine.unmet == ""
    alone = backup(NOBODY, on_partition="continue-alone").machine
    assert alone.unmet == ""
    handed = backup(NOBODY).machine
    assert handed.unmet == "b"
    handed.handed_to = "a"
    assert handed.unmet == ""
