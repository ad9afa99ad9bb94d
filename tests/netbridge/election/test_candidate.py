"""Who asks voters: every subset of voters missing, doubt, ballots, and attempts of others."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from shmbroker.netbridge.election.candidate import (
    STEPS,
    Action,
    Ask,
    Candidate,
    Electorate,
    Lost,
    Patience,
    Phase,
    Postponed,
    Taken,
    Won,
)
from shmbroker.netbridge.election.question import Answer, Ballot, Copy, Grant, Listed, Step, Verdict

NODE = b"N" * 16
WANTED = Grant(2, "b", (Copy("b"),))
OTHERS = Grant(2, "a", (Copy("a"),))
VOTERS = ("v1", "v2", "v3")
PATIENCE = Patience(retries=1, retry_wait=1.0, vote_wait=5.0)


def candidate(voters: tuple[str, ...] = VOTERS) -> Candidate:
    electorate = Electorate(voters, len(voters) // 2 + 1)
    return Candidate(NODE, "b", WANTED, electorate, PATIENCE, life="1")


def answered(
    asking: Candidate,
    voter: str,
    said: Verdict = Verdict.YES,
    *,
    accepted: tuple[Ballot, Grant] | None = None,
    known: Listed | None = None,
    ballot: Ballot | None = None,
    now: float = 0.0,
) -> list[Action]:
    step = STEPS.get(asking.phase, Step.WOULD)
    if said is Verdict.YES and step is not Step.WOULD and ballot is None:
        ballot = asking.ballot
    answer = Answer(NODE, step, asking.attempt, said, "", ballot, accepted, known)
    return list(asking.answered(voter, answer, now))


@pytest.mark.parametrize(
    "there", [each for count in range(4) for each in combinations(VOTERS, count)]
)
def test_with_every_subset_of_voters_missing(there: tuple[str, ...]) -> None:
    asking = candidate()
    list(asking.begin(0.0))
    done: list[Action] = []
    for _ in range(3):
        for voter in there:
            done += answered(asking, voter)
    for now in (5.0, 6.0, 11.0, 12.0):
        done += asking.tick(now)
    ends = [each for each in done if not isinstance(each, Ask)]
    if len(there) >= 2:
        assert ends == [Won(WANTED)]
    else:
        [lost] = ends
        assert isinstance(lost, Lost)
        assert [voter for voter, _ in lost.answers] == list(VOTERS)


def test_a_vote_ends_as_soon_as_its_result_is_certain() -> None:
    asking = candidate()
    list(asking.begin(0.0))
    answered(asking, "v1", Verdict.NO)
    assert asking.phase is Phase.WOULD
    answered(asking, "v2", Verdict.NO)
    assert asking.phase is Phase.PAUSE


def test_nobody_promises_before_a_majority_would() -> None:
    asking = candidate()
    steps = [each.question.step for each in asking.begin(0.0) if isinstance(each, Ask)]
    steps += [each.question.step for each in answered(asking, "v1") if isinstance(each, Ask)]
    assert set(steps) == {Step.WOULD}
    asked = answered(asking, "v2")
    assert {each.question.step for each in asked if isinstance(each, Ask)} == {Step.PREPARE}


def promising(voters: tuple[str, ...] = VOTERS) -> Candidate:
    """A majority would say yes."""
    asking = candidate(voters)
    list(asking.begin(0.0))
    for voter in voters[: asking.electorate.needed]:
        answered(asking, voter)
    return asking


def proposed(actions: list[Action]) -> set[Grant]:
    return {
        each.question.grant
        for each in actions
        if isinstance(each, Ask) and each.question.step is Step.ACCEPT
    }


def test_an_answer_counts_if_a_voter_gives_it_to_this_attempt_of_this_node() -> None:
    asking = candidate(("v1",))
    list(asking.begin(0.0))
    yes = Answer(NODE, Step.WOULD, asking.attempt, Verdict.YES)
    assert not list(asking.answered("v9", yes, 0.0))
    assert not list(asking.answered("v1", replace(yes, node=b"M" * 16), 0.0))
    assert not list(asking.answered("v1", replace(yes, attempt=asking.attempt + 1), 0.0))
    assert list(asking.answered("v1", yes, 0.0))


def test_a_yes_of_another_step_is_no_promise_and_none_in_the_pause() -> None:
    asking = promising()
    would = Answer(NODE, Step.WOULD, asking.attempt, Verdict.YES)
    assert not list(asking.answered("v3", would, 0.0))
    assert not answered(asking, "v1")
    late = Answer(NODE, Step.PREPARE, asking.attempt, Verdict.YES, ballot=asking.ballot)
    for voter in ("v2", "v3"):
        answered(asking, voter, Verdict.NO)
    assert asking.phase is Phase.PAUSE
    for voter in VOTERS:
        assert not list(asking.answered(voter, late, 0.1))


def test_what_was_said_to_a_ballot_says_nothing_in_the_pause() -> None:
    asking = promising()
    answered(asking, "v1")
    for voter in ("v2", "v3"):
        answered(asking, voter, Verdict.NO)
    assert not answered(asking, "v2"), "v1 has promised, and was not asked since"
    assert answered(asking, "v1")


def test_a_yes_before_the_pause_counts_in_it() -> None:
    asking = candidate()
    list(asking.begin(0.0))
    answered(asking, "v1")
    for voter in ("v2", "v3"):
        answered(asking, voter, Verdict.NO)
    assert asking.phase is Phase.PAUSE
    assert answered(asking, "v3")
    assert asking.phase is Phase.PREPARE


def test_a_voter_that_is_up_again_is_asked_what_it_has_not_answered() -> None:
    asking = candidate()
    assert not list(asking.connected("v1")), "it has not begun"
    list(asking.begin(0.0))
    [asked] = asking.connected("v1")
    assert isinstance(asked, Ask)
    assert (asked.voter, asked.question.step) == ("v1", Step.WOULD)
    answered(asking, "v1")
    assert not list(asking.connected("v1"))
    assert not list(asking.connected("v9")), "it is no voter"


def test_nothing_ends_before_its_time() -> None:
    asking = candidate()
    list(asking.begin(0.0))
    assert not list(asking.tick(4.9))
    assert asking.phase is Phase.WOULD
    list(asking.tick(5.0))
    assert asking.phase is Phase.PAUSE
    assert not list(asking.tick(5.9))
    assert list(asking.tick(6.0))


def test_what_is_only_asked_has_no_ballot() -> None:
    asking = promising()
    for voter in VOTERS:
        answered(asking, voter, Verdict.NO)
    asks = [each.question for each in asking.tick(1.0) if isinstance(each, Ask)]
    assert {each.ballot for each in asks} == {None}


def test_who_said_what_is_told_when_it_is_lost() -> None:
    asking = candidate()
    for now in (0.0, 6.0):
        list(asking.begin(now))
        answered(asking, "v1", Verdict.NO)
        said = Answer(NODE, Step.WOULD, asking.attempt, Verdict.NO, "it sees a")
        ends = list(asking.answered("v2", said, now))
    assert ends == [Lost((("v1", "no"), ("v2", "no: it sees a"), ("v3", "no answer")))]


def test_it_is_not_postponed_if_a_yes_of_all_in_doubt_would_not_be_enough() -> None:
    """Of a cluster whose other lives are not all known yet."""
    asking = candidate()
    asking.next_electorate = Electorate(VOTERS, 4)
    list(asking.begin(0.0))
    assert not answered(asking, "v1", Verdict.LATER)
    assert asking.failures == 1


def test_a_no_collides_with_another_ballot_if_it_names_one_and_a_ballot_was_asked_for() -> None:
    asking = candidate(("v1",))
    list(asking.begin(0.0))
    answered(asking, "v1", Verdict.NO, ballot=Ballot(7, "a"))
    assert (asking.collisions, asking.failures, asking.until) == (0, 1, PATIENCE.retry_wait)
    asking = promising()
    answered(asking, "v1")
    answered(asking, "v2", Verdict.NO)
    answered(asking, "v3", Verdict.NO)
    assert (asking.collisions, asking.failures) == (0, 1)


def test_later_is_not_a_no() -> None:
    asking = candidate(("v1",))
    list(asking.begin(0.0))
    assert answered(asking, "v1", Verdict.LATER) == [Postponed()]
    for attempt in range(20):
        list(asking.tick(asking.until))
        assert not answered(asking, "v1", Verdict.LATER, now=asking.until), attempt
    list(asking.tick(asking.until))
    answered(asking, "v1")
    assert answered(asking, "v1") == [Won(WANTED)]


def test_a_no_that_becomes_a_yes_is_taken_in_the_pause() -> None:
    asking = candidate(("v1",))
    list(asking.begin(0.0))
    answered(asking, "v1", Verdict.NO)
    assert asking.phase is Phase.PAUSE
    answered(asking, "v1")
    assert asking.phase is Phase.AT_ONCE


def test_the_only_voter_promises_and_accepts_at_once() -> None:
    asking = candidate(("v1",))
    list(asking.begin(0.0))
    [asked] = answered(asking, "v1")
    assert isinstance(asked, Ask)
    assert asked.question.step is Step.AT_ONCE
    assert asked.question.ballot == Ballot(1, "b 1")
    assert not asking.may_be_dropped, "the voter may have accepted it"
    assert answered(asking, "v1") == [Won(WANTED)]


def test_one_that_may_have_accepted_is_asked_for_a_promise_first() -> None:
    asking = candidate(("v1",))
    list(asking.begin(0.0))
    answered(asking, "v1")
    list(asking.tick(5.0))  # no answer
    list(asking.tick(6.0))
    [asked] = answered(asking, "v1")
    assert isinstance(asked, Ask)
    assert asked.question.step is Step.PREPARE
    assert asked.question.ballot == Ballot(2, "b 1")
    assert answered(asking, "v1", accepted=(Ballot(1, "b 1"), WANTED)) == [Won(WANTED)]


def test_somebody_elses_epoch_is_the_end_of_it() -> None:
    asking = candidate()
    list(asking.begin(0.0))
    assert answered(asking, "v1", Verdict.NO, known=Listed(OTHERS, 0)) == [Taken(OTHERS)]


def test_an_attempt_that_may_have_won_is_brought_to_its_end() -> None:
    asking = candidate()
    list(asking.begin(0.0))
    answered(asking, "v1")
    answered(asking, "v2")
    answered(asking, "v1", accepted=(Ballot(1, "a"), OTHERS))
    answered(asking, "v2")
    assert asking.phase is Phase.PREPARE  # v3 could say that a majority has accepted it
    asked = list(asking.tick(asking.until))
    assert {each.question.grant for each in asked if isinstance(each, Ask)} == {OTHERS}
    answered(asking, "v1")
    assert answered(asking, "v2") == [Taken(OTHERS)]


def test_an_attempt_that_cannot_have_won_is_replaced() -> None:
    asking = candidate()
    list(asking.begin(0.0))
    answered(asking, "v1")
    answered(asking, "v2")
    answered(asking, "v1", accepted=(Ballot(1, "a"), OTHERS))
    answered(asking, "v2")
    answered(asking, "v3")
    assert asking.phase is Phase.ACCEPT
    answered(asking, "v1")
    assert answered(asking, "v2") == [Won(WANTED)]


THIRD = Grant(2, "c", (Copy("c"),))


def test_of_two_attempts_the_newer_one_may_be_decided() -> None:
    asking = promising()
    answered(asking, "v1", accepted=(Ballot(1, "a"), OTHERS))
    answered(asking, "v2", accepted=(Ballot(2, "c"), THIRD))
    assert asking.phase is Phase.PREPARE, "v3 could say that it was decided"
    assert proposed(list(asking.tick(asking.until))) == {THIRD}


def test_each_attempt_is_counted_by_itself() -> None:
    asking = promising()
    answered(asking, "v1", accepted=(Ballot(1, "a"), OTHERS))
    answered(asking, "v2", accepted=(Ballot(2, "c"), THIRD))
    assert proposed(answered(asking, "v3")) == {WANTED}


def test_what_a_voter_has_accepted_that_does_not_promise_is_not_taken_for_the_newest() -> None:
    """It may accept more; what those have accepted that promise cannot change."""
    asking = promising()
    answered(asking, "v1", accepted=(Ballot(1, "a"), OTHERS))
    answered(asking, "v3", Verdict.NO, accepted=(Ballot(9, "c"), THIRD))
    assert proposed(answered(asking, "v2")) == {OTHERS}


def test_one_that_wants_the_same_is_not_waited_for() -> None:
    asking = promising()
    answered(asking, "v1", accepted=(Ballot(0, "b 0"), WANTED))
    assert proposed(answered(asking, "v2")) == {WANTED}


def test_others_are_waited_for_as_long_as_all_of_them_could_make_a_majority() -> None:
    asking = promising(("v1", "v2", "v3", "v4", "v5"))
    answered(asking, "v1", accepted=(Ballot(1, "a"), OTHERS))
    answered(asking, "v2")
    assert not answered(asking, "v3")
    assert proposed(answered(asking, "v4")) == {WANTED}


def test_a_later_ballot_is_met_with_a_still_later_one() -> None:
    asking = candidate(("v1",))
    list(asking.begin(0.0))
    answered(asking, "v1")
    answered(asking, "v1", Verdict.NO, ballot=Ballot(7, "a"))
    assert asking.until < PATIENCE.retry_wait  # soon, and it does not count as lost
    list(asking.tick(asking.until))
    asked = answered(asking, "v1")
    [question] = [each.question for each in asked if isinstance(each, Ask)]
    assert question.ballot == Ballot(8, "b 1")


def test_what_was_promised_is_asked_for_though_a_newer_ballot_is_heard_of() -> None:
    """Nobody has promised it the round that it has heard of: a voter would accept after all what it
    has promised another one not to."""
    asking = candidate()
    list(asking.begin(0.0))
    answered(asking, "v1")
    answered(asking, "v2")
    answered(asking, "v1")
    answered(asking, "v2", Verdict.NO, ballot=Ballot(3, "a"))
    asks = [each.question for each in answered(asking, "v3") if isinstance(each, Ask)]
    assert {(each.step, each.ballot) for each in asks} == {(Step.ACCEPT, Ballot(1, "b 1"))}


def test_a_promise_for_an_earlier_ballot_of_an_attempt_is_none_for_the_later_one() -> None:
    """Since then its voter may have accepted what another one asked."""
    asking = candidate()
    list(asking.begin(0.0))
    for said in (Verdict.YES, Verdict.NO):  # they do not see the live, and then they do again
        answered(asking, "v1", said)
        answered(asking, "v2", said)
    assert (asking.phase, asking.ballot) == (Phase.PAUSE, Ballot(1, "b 1"))
    answered(asking, "v1")
    answered(asking, "v2")
    assert (asking.phase, asking.ballot) == (Phase.PREPARE, Ballot(2, "b 1"))
    answered(asking, "v3", ballot=Ballot(1, "b 1"))
    answered(asking, "v1")
    assert asking.phase is Phase.PREPARE
    answered(asking, "v2")
    assert asking.phase is Phase.ACCEPT


def test_voters_that_are_learned_while_it_asks_are_asked_anew() -> None:
    asking = candidate(("v1",))
    asking.electorate = asking.next_electorate = Electorate((), 1 << 30)
    assert not [each for each in asking.begin(0.0) if isinstance(each, Ask)]
    asked = list(asking.voters_are(Electorate(VOTERS, 2), 0.1))
    assert [each.voter for each in asked if isinstance(each, Ask)] == list(VOTERS)
    assert asking.failures == 1


def test_an_attempt_that_has_gone_so_far_ends_with_its_own_voters() -> None:
    asking = candidate(VOTERS)
    list(asking.begin(0.0))
    for voter in VOTERS[:2]:
        answered(asking, voter)
    assert asking.phase is Phase.PREPARE
    assert not list(asking.voters_are(Electorate((*VOTERS, "v4"), 3), 0.1))
    assert asking.electorate == Electorate(VOTERS, 2)
    list(asking.tick(5.0))
    list(asking.tick(6.0))
    assert asking.electorate == Electorate((*VOTERS, "v4"), 3)


def test_what_one_voter_knows_the_others_are_told_in_the_next_attempt() -> None:
    asking = candidate()
    list(asking.begin(0.0))
    newest = Listed(Grant(1, "a", (Copy("a"), Copy("b"))), 3)
    for voter, version in (("v1", 2), ("v2", 3), ("v3", 1)):
        answered(asking, voter, Verdict.NO, known=replace(newest, version=version))
    answered(asking, "v1", Verdict.NO)
    asked = [each for each in asking.tick(1.0) if isinstance(each, Ask)]
    assert [each.question.told for each in asked] == [newest] * 3
