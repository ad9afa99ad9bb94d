"""Nobody to ask, and several backups: each begins when the others have let it go ahead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.options import CONTINUE_ALONE
from shmbroker.netbridge.member.said import GoAhead, TakeOver
from shmbroker.netbridge.member.standing import State
from tests.netbridge.member.group import Group, is_told_of_the_death, pair, three

TAKE_OVER = TakeOver(Grant(2, "b", (Copy("b"),)))


def without_their_live(**options: Any) -> Group:
    """Two that were in sync with it, and have met each other."""
    group = three(**options)
    group.dies("a")
    for name in "bc":
        group.reaches(name, State.HELD)
    group.rests(0.1)
    return group


def hears(group: Group, name: str, by: str, what: Any) -> None:
    group.members[name].does(group.machine(name).heard(by, what, group.hosts[name].clock))


def knows_an_old_end(group: Group, name: str, of: str) -> None:
    hello = group.machine(of).hello
    last = replace(hello.last, number=hello.last.number - 1)
    group.machine(name).peers[of] = replace(hello, last=last)


def test_of_two_that_both_go_before_what_the_other_has_said_last_one_begins() -> None:
    group = without_their_live()
    knows_an_old_end(group, "b", of="c")
    knows_an_old_end(group, "c", of="b")
    for name in "cb":
        is_told_of_the_death(group, name)
    assert group.machine("b").claim
    assert group.machine("c").claim
    group.reaches("b", State.LIVE)
    group.reaches("c", State.IN_SYNC)
    assert group.watch.begun == {1: "a", 2: "b"}


def test_who_has_let_another_one_go_ahead_takes_nothing_over() -> None:
    """Its live had handed over to it by a word, which came late."""
    group = without_their_live()
    machine, hello = group.machine("b"), group.machine("c").hello
    hears(group, "b", "c", replace(hello, claim=1))
    hears(group, "b", "a", TAKE_OVER)
    assert group.state("b") is State.HELD
    assert machine.why == "waits for c (epoch 1)"
    hears(group, "b", "c", replace(hello, is_following=True))  # it becomes live
    hears(group, "b", "a", TAKE_OVER)
    assert group.state("b") is State.HELD
    hears(group, "b", "c", hello)
    hears(group, "b", "a", TAKE_OVER)
    group.reaches("b", State.LIVE)


def test_who_takes_over_lets_nobody_go_ahead() -> None:
    group = without_their_live()
    hears(group, "b", "a", TAKE_OVER)
    assert group.state("b") is State.BEGINNING
    hears(group, "b", "c", replace(group.machine("c").hello, claim=1))
    assert not group.machine("b").let_ahead
    group.reaches("b", State.LIVE)


def test_who_runs_on_promote_lets_nobody_go_ahead() -> None:
    group = without_their_live(has_command=True)
    hears(group, "b", "a", TAKE_OVER)
    assert group.state("b") is State.PROMOTING
    hears(group, "b", "c", replace(group.machine("c").hello, claim=1))
    assert not group.machine("b").let_ahead


def test_of_two_claims_that_meet_the_first_member_keeps_its_own() -> None:
    group = without_their_live()
    is_told_of_the_death(group, "b")
    hears(group, "b", "c", replace(group.machine("c").hello, claim=1))
    assert group.machine("b").claim
    assert not group.machine("b").let_ahead


def test_a_claim_that_nobody_needs_is_withdrawn() -> None:
    """What it was made by was old: another one has more."""
    group = without_their_live()
    knows_an_old_end(group, "c", of="b")
    hello = group.machine("b").hello
    newer = replace(hello, last=replace(hello.last, number=hello.last.number + 1))
    is_told_of_the_death(group, "c")
    claim = group.machine("c").claim
    hears(group, "c", "b", newer)
    assert claim
    assert not group.machine("c").claim
    hears(group, "c", "b", GoAhead(claim))
    assert group.state("c") is State.HELD


def test_an_answer_to_an_earlier_claim_is_none() -> None:
    group = without_their_live()
    knows_an_old_end(group, "c", of="b")
    is_told_of_the_death(group, "c")
    hears(group, "c", "b", GoAhead(group.machine("c").claim - 1))
    assert group.state("c") is State.HELD


def test_an_answer_does_not_outlive_its_link() -> None:
    group = without_their_live()
    machine, clock = group.machine("c"), group.hosts["c"].clock
    knows_an_old_end(group, "c", of="b")
    is_told_of_the_death(group, "c")
    machine.let_by = frozenset("b")
    machine.peer_down("b", clock)
    assert not machine.let_by


def test_who_let_another_one_go_ahead_waits_for_it_also_if_it_dies() -> None:
    group = without_their_live()
    hears(group, "b", "c", replace(group.machine("c").hello, claim=1))
    group.dies("c")
    is_told_of_the_death(group, "b")
    group.rests()
    assert group.state("b") is State.HELD
    group.returns("c")
    group.reaches("b", State.LIVE)


def test_with_continue_alone_nobody_waits_for_one_that_is_gone() -> None:
    group = without_their_live()
    machine = group.machine("b")
    machine.options = replace(machine.options, on_partition=CONTINUE_ALONE)
    hears(group, "b", "c", replace(group.machine("c").hello, claim=1))
    group.dies("c")
    group.until(lambda: "c" not in machine.links)
    is_told_of_the_death(group, "b")
    group.reaches("b", State.ALONE)


def test_a_call_without_force_begins_nothing_beside_one_that_is_about_to() -> None:
    group = pair(voters=0, has_command=True, fails_back=False)
    group.dies("a")
    group.reaches("b", State.HELD)
    group.hosts["b"].stands_until = 1e6  # its `on-promote` takes long
    is_told_of_the_death(group, "b")
    assert group.state("b") is State.PROMOTING
    group.returns("a")
    group.reaches("a", State.HELD)
    machine, clock = group.machine("a"), group.hosts["a"].clock
    hears(group, "a", "b", group.machine("b").hello)
    assert machine.rivals == "b"
    group.members["a"].does(machine.command(is_forced=False, now=clock))
    assert group.state("a") is State.HELD
    assert not machine.claim
    group.members["a"].does(machine.command(is_forced=True, now=clock))
    group.reaches("a", State.ALONE)
    assert machine.epoch == 3, "the other one may begin 2"


def test_a_call_without_force_begins_nothing_while_the_live_may_be_there() -> None:
    group = pair(voters=0)
    group.parts("a", "b")
    group.reaches("b", State.HELD)
    group.reaches("a", State.SUSPENDED)
    machine, clock = group.machine("b"), group.hosts["b"].clock
    group.members["b"].does(machine.command(is_forced=False, now=clock))
    assert group.state("b") is State.HELD
    assert machine.unmet == "a"
    is_told_of_the_death(group, "b")
    assert not machine.unmet


def test_a_call_is_let_go_ahead_as_well() -> None:
    group = without_their_live(changes={"activates": False})
    group.stays_down.add("a")
    machine, clock = group.machine("c"), group.hosts["c"].clock
    group.members["c"].does(machine.command(is_forced=False, now=clock))
    assert machine.claim
    group.reaches("c", State.LIVE)
    group.reaches("b", State.IN_SYNC)


def test_with_activation_by_command_nobody_goes_on_by_itself() -> None:
    group = without_their_live(changes={"activates": False})
    for name in "bc":
        is_told_of_the_death(group, name)
    group.rests(1.0)
    assert group.machine("b").why == "waits for shmbroker ha promote"
    machine, clock = group.machine("b"), group.hosts["b"].clock
    group.members["b"].does(machine.command(is_forced=False, now=clock))
    group.reaches("b", State.LIVE)


def test_a_claim_is_said_again_and_is_the_same() -> None:
    """An answer may take longer than the wait between two retries."""
    group = without_their_live()
    group.hosts["b"].stands_until = group.world.now + 1.0
    knows_an_old_end(group, "c", of="b")
    is_told_of_the_death(group, "c")
    claim = group.machine("c").claim
    group.rests(0.25)
    assert claim
    assert group.machine("c").claim == claim
    group.reaches("b", State.LIVE, State.IN_SYNC)
    assert len(group.watch.begun) == 2


def test_one_that_is_refused_by_another_lets_go_ahead() -> None:
    group = without_their_live()
    group.machine("c").state = State.REFUSED
    hears(group, "c", "b", replace(group.machine("b").hello, claim=1))
    assert group.machine("c").let_ahead == {"b"}


def test_on_promote_says_yes_when_somebody_else_was_made_live() -> None:
    group = without_their_live(has_command=True)
    hears(group, "b", "a", TAKE_OVER)
    hello = group.machine("c").hello
    hears(group, "b", "c", replace(hello, serves=True, epoch=2))
    group.members["b"].does(group.machine("b").promoted(True, group.hosts["b"].clock))
    assert group.state("b") is State.HELD
    assert group.machine("b").live == "c", "it asks to follow"
