"""A voter: each rule by which it says yes, no or later (§3.6)."""

from __future__ import annotations

from dataclasses import replace

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import (
    Answer,
    Ballot,
    Copy,
    Grant,
    Listed,
    Question,
    Release,
    Renew,
    Renewed,
    Stale,
    Step,
    Verdict,
)
from shmbroker.netbridge.election.voter import Action, Keep, Say, Voter

NODE = b"N" * 16
LEASE = 1.0
BOTH = Grant(1, "a", (Copy("a"), Copy("b", "boot 1")))


def voter(**changes: object) -> Voter:
    """It knows a as the live of epoch 1, with b in sync; a's lease ends at 1.0."""
    made = Voter(LEASE, {NODE: Ledger(BOTH, 1)}, 0.0)
    made.linked(NODE, "a")
    made.linked(NODE, "b")
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def synced(machine: Voter, actions: list[Action]) -> list[Action]:
    """What is said when all of it is on the disk."""
    said = [each for each in actions if isinstance(each, Say)]
    for keep in [each for each in actions if isinstance(each, Keep)]:
        said += [each for each in machine.kept(keep.number) if isinstance(each, Say)]
    return list(said)


def question(
    holder: str = "b", epoch: int = 2, step: Step = Step.WOULD, *, asker: str = "", boot: str = ""
) -> Question:
    ballot = None if step is Step.WOULD else Ballot(1, asker or holder)
    grant = Grant(epoch, holder, (Copy(holder),))
    return Question(NODE, step, 1, asker or holder, grant, boot or "boot 1", ballot)


def answer(machine: Voter, asked: Question, now: float) -> Answer:
    [said] = synced(machine, list(machine.heard(asked.asker, asked, now)))
    assert isinstance(said, Say)
    assert isinstance(said.what, Answer)
    return said.what


def verdict(machine: Voter, asked: Question, now: float) -> tuple[Verdict, str]:
    said = answer(machine, asked, now)
    return said.verdict, said.reason


def renewed(machine: Voter, now: float) -> None:
    synced(machine, list(machine.heard("a", Renew(NODE, BOTH, 1, 1), now)))


def test_yes_to_a_backup_when_the_live_is_not_seen_and_its_lease_is_over() -> None:
    assert verdict(voter(), question(), 1.5) == (Verdict.YES, "")


def test_no_to_a_backup_while_the_lease_runs() -> None:
    assert verdict(voter(), question(), 0.5) == (Verdict.NO, "it sees a")


def test_no_to_a_backup_while_it_has_a_link_to_the_live() -> None:
    machine = voter()
    renewed(machine, 0.5)
    assert verdict(machine, question(), 9.0) == (Verdict.NO, "it sees a")


def test_no_becomes_yes_when_the_live_is_not_seen_any_more() -> None:
    machine = voter()
    renewed(machine, 0.5)
    assert verdict(machine, question(), 0.6)[0] is Verdict.NO
    assert not list(machine.unlinked(NODE, "a", is_closed=False, now=0.7))
    assert machine.deadline == 1.5
    [said] = synced(machine, list(machine.tick(1.5)))
    assert isinstance(said, Say)
    assert isinstance(said.what, Answer)
    assert said.what.verdict is Verdict.YES


def test_a_connection_that_the_hosts_kernel_closed_is_a_release() -> None:
    machine = voter()
    renewed(machine, 0.5)
    assert verdict(machine, question(), 0.6)[0] is Verdict.NO
    [said] = synced(machine, list(machine.unlinked(NODE, "a", is_closed=True, now=0.7)))
    assert isinstance(said, Say)


def test_a_lease_that_is_given_back_is_over() -> None:
    machine = voter()
    renewed(machine, 0.5)
    synced(machine, list(machine.heard("a", Release(NODE, 1), 0.6)))
    assert verdict(machine, question(), 0.7)[0] is Verdict.YES


def test_a_lease_is_given_back_by_its_live_for_its_epoch_and_by_nobody_else() -> None:
    machine = voter()
    renewed(machine, 0.5)
    list(machine.heard("a", Release(b"M" * 16, 1), 0.6))
    list(machine.heard("a", Release(NODE, 7), 0.6))
    list(machine.heard("b", Release(NODE, 1), 0.6))
    list(machine.unlinked(NODE, "b", is_closed=True, now=0.6))
    list(machine.unlinked(b"M" * 16, "a", is_closed=True, now=0.6))
    list(machine.unlinked(NODE, "a", is_closed=False, now=0.6))
    assert verdict(machine, question(), 1.4) == (Verdict.NO, "it sees a")
    assert verdict(machine, question(), 1.5)[0] is Verdict.YES


def test_after_a_restart_a_live_has_a_whole_lease() -> None:
    machine = Voter(LEASE, {NODE: Ledger(BOTH, 1)}, 100.0)
    assert verdict(machine, question(), 100.5)[0] is Verdict.NO
    assert verdict(machine, question(), 101.1)[0] is Verdict.YES


def test_no_to_who_is_not_on_the_list() -> None:
    assert verdict(voter(), question("c"), 1.5) == (Verdict.NO, "c is not in sync")


def test_no_to_a_replica_whose_host_was_restarted() -> None:
    asked = question(boot="boot 2")
    assert verdict(voter(), asked, 1.5) == (Verdict.NO, "b is not in sync")


def test_the_boot_does_not_count_if_all_on_the_list_were_met() -> None:
    asked = replace(question(boot="boot 2"), has_met_all=True)
    assert verdict(voter(), asked, 1.5)[0] is Verdict.YES
    asked = replace(question("c"), has_met_all=True)
    assert verdict(voter(), asked, 1.5) == (Verdict.NO, "c is not in sync")


def test_yes_to_a_live_that_has_a_link() -> None:
    assert verdict(voter(), question("a"), 0.1) == (Verdict.YES, "")


def test_no_to_a_live_that_has_none() -> None:
    machine = voter(links=set())
    assert verdict(machine, question("a"), 0.1) == (Verdict.NO, "it has no link to a")


def test_yes_to_a_live_that_hands_over_whatever_its_lease() -> None:
    machine = voter()
    renewed(machine, 0.0)
    assert verdict(machine, question("b", asker="a"), 0.1) == (Verdict.YES, "")
    accept = question("b", step=Step.ACCEPT, asker="a")
    assert verdict(machine, accept, 0.1) == (Verdict.YES, "")


def test_a_live_hands_over_to_one_that_is_in_sync_whatever_its_own_boot() -> None:
    machine = voter()
    assert verdict(machine, question("b", asker="a", boot="boot 9"), 0.1)[0] is Verdict.YES
    assert verdict(machine, question("c", asker="a"), 0.1) == (Verdict.NO, "c is not in sync")


def accepted_of_b(machine: Voter) -> Voter:
    """It has accepted b at epoch 2, and does not know whether that is decided."""
    accept = question(step=Step.ACCEPT)
    assert verdict(machine, accept, 1.5)[0] is Verdict.YES
    return machine


def test_one_that_cannot_begin_its_epoch_gives_it_back_to_who_was_in_sync_before() -> None:
    machine = accepted_of_b(voter())
    assert verdict(machine, question("a", 3, asker="b"), 1.6)[0] is Verdict.YES
    assert verdict(machine, question("c", 3, asker="b"), 1.6) == (Verdict.NO, "c is not in sync")
    assert verdict(machine, question("a", 3, asker="c"), 1.6) == (Verdict.NO, "a is not in sync")


def test_one_that_was_granted_an_epoch_hands_the_next_one_over() -> None:
    machine = voter()
    accept = replace(question(step=Step.ACCEPT), grant=Grant(2, "b", (Copy("b"), Copy("c"))))
    assert verdict(machine, accept, 1.5)[0] is Verdict.YES
    assert verdict(machine, question("c", 3, asker="b"), 1.6)[0] is Verdict.YES


def test_what_may_be_decided_is_accepted_of_one_that_is_off_the_list() -> None:
    machine = voter(ledgers={NODE: Ledger(Grant(1, "a", (Copy("a"),)), 2)})
    accept = question(step=Step.ACCEPT)
    assert verdict(machine, accept, 1.5) == (Verdict.NO, "b is not in sync")
    assert verdict(machine, replace(accept, is_adopted=True), 1.5)[0] is Verdict.YES


def test_nothing_is_accepted_while_the_lease_of_another_runs() -> None:
    machine = voter()
    said = (Verdict.NO, "the lease of a is not over")
    for is_adopted in (False, True):
        accept = replace(question(step=Step.ACCEPT), is_adopted=is_adopted)
        assert verdict(machine, accept, 0.9) == said
    assert verdict(machine, question("a", step=Step.ACCEPT), 0.9)[0] is Verdict.YES


def test_what_it_has_accepted_it_would_accept_again() -> None:
    """Also after a restart, when the live of before has a lease again, and whatever the boot."""
    machine = accepted_of_b(voter())
    again = Voter(LEASE, machine.ledgers, 20.0)
    for step in (Step.WOULD, Step.PREPARE, Step.AT_ONCE):
        assert verdict(again, question(boot="boot 2", step=step), 20.1) == (Verdict.YES, "")
    assert verdict(again, question("a"), 20.1) == (Verdict.NO, "it has no link to a")


def test_no_to_an_epoch_that_somebody_else_has() -> None:
    machine = voter()
    assert verdict(machine, question(step=Step.PREPARE), 1.5)[0] is Verdict.YES
    assert verdict(machine, question(step=Step.ACCEPT), 1.5)[0] is Verdict.YES
    held = Grant(2, "b", (Copy("b"),))
    synced(machine, list(machine.heard("b", Renew(NODE, held, 0, 1), 1.6)))
    assert verdict(machine, question("a"), 1.7) == (Verdict.NO, "epoch 2 was granted to b")


def test_yes_to_who_has_the_epoch_and_no_to_one_of_before() -> None:
    machine = accepted_of_b(voter())
    assert verdict(machine, question("b", 2), 1.6) == (Verdict.YES, "")
    assert verdict(machine, question("b", 1), 1.6) == (Verdict.NO, "epoch 2 was granted to b")
    held = Grant(2, "b", (Copy("b"),))
    synced(machine, list(machine.heard("b", Renew(NODE, held, 0, 1), 1.6)))
    assert verdict(machine, question("b", 2), 1.7) == (Verdict.YES, "")
    assert verdict(machine, question("b", 1), 1.7) == (Verdict.NO, "epoch 2 was granted to b")


def test_no_to_an_epoch_below_one_that_was_accepted() -> None:
    machine = voter()
    assert verdict(machine, question("b", 3, Step.ACCEPT), 1.5)[0] is Verdict.YES
    for step in (Step.WOULD, Step.PREPARE):
        asked = question("a", 2, step)
        assert verdict(machine, asked, 1.6) == (Verdict.NO, "epoch 3 was granted to b")


def test_a_promise_for_a_later_epoch_outlives_a_late_question_for_one_that_is_decided() -> None:
    held = Grant(2, "b", (Copy("b"),))
    machine = voter(ledgers={NODE: Ledger(held, 0)})
    newer = replace(question("b", 3, Step.PREPARE), ballot=Ballot(5, "b"))
    assert verdict(machine, newer, 1.5)[0] is Verdict.YES
    assert verdict(machine, question("b", 2, Step.ACCEPT), 1.5)[0] is Verdict.YES
    assert machine.ledgers[NODE].promised == (3, Ballot(5, "b"))
    assert machine.ledgers[NODE].accepted is None


def test_who_waits_for_an_epoch_hears_that_another_has_it() -> None:
    machine = voter()
    renewed(machine, 0.5)
    assert verdict(machine, question(), 0.6)[0] is Verdict.NO
    held = Grant(2, "c", (Copy("c"),))
    machine.linked(NODE, "c")
    synced(machine, list(machine.heard("c", Renew(NODE, held, 0, 1), 0.7)))
    assert machine.deadline == 1.7
    [said] = machine.tick(1.7)
    assert isinstance(said, Say)
    assert isinstance(said.what, Answer)
    assert (said.to, said.what.reason) == ("b", "epoch 2 was granted to c")
    assert machine.deadline == float("inf")


def test_nothing_is_due_while_a_live_is_there() -> None:
    machine = voter()
    renewed(machine, 0.5)
    assert verdict(machine, question(), 0.6)[0] is Verdict.NO
    assert machine.deadline == float("inf")


def test_a_yes_is_repeated() -> None:
    machine = voter()
    for _ in range(2):
        assert verdict(machine, question(step=Step.ACCEPT), 1.5)[0] is Verdict.YES


def test_later_while_it_is_itself_in_doubt() -> None:
    assert verdict(voter(is_in_doubt=True), question(), 1.5)[0] is Verdict.LATER


def test_later_tells_what_it_knows_if_that_is_synced() -> None:
    said = answer(voter(is_in_doubt=True), question(), 1.5)
    assert (said.verdict, said.known) == (Verdict.LATER, Listed(BOTH, 1))


def test_no_to_a_node_that_it_does_not_know() -> None:
    machine = Voter(LEASE, {}, 0.0)
    assert verdict(machine, question(), 9.0) == (Verdict.NO, "it knows nothing of this node")


def test_nothing_is_told_before_it_is_synced() -> None:
    machine = voter()
    actions = list(machine.heard("b", question(step=Step.ACCEPT), 1.5))
    assert [type(each) for each in actions] == [Keep]
    # what else is asked meanwhile may not tell either
    assert not list(machine.heard("b", question(), 1.5))
    assert len(list(machine.kept(1))) == 2


def test_what_is_synced_is_told_and_no_more() -> None:
    machine = voter()
    list(machine.heard("b", question(step=Step.PREPARE), 1.5))
    list(machine.heard("b", question(step=Step.ACCEPT), 1.5))
    [said] = machine.kept(1)
    assert isinstance(said, Say)
    assert isinstance(said.what, Answer)
    assert said.what.step is Step.PREPARE
    assert machine.synced[NODE].accepted is None
    assert len(list(machine.kept(2))) == 1
    assert machine.synced[NODE] == machine.ledgers[NODE]


def test_a_promise_is_no_acceptance_and_a_question_is_no_promise() -> None:
    machine = voter()
    assert verdict(machine, question(), 1.5)[0] is Verdict.YES
    assert machine.ledgers[NODE] == Ledger(BOTH, 1)
    assert verdict(machine, question(step=Step.PREPARE), 1.5)[0] is Verdict.YES
    assert machine.ledgers[NODE] == Ledger(BOTH, 1, (2, Ballot(1, "b")))


def test_a_newer_ballot_is_promised_beside_another() -> None:
    machine = voter()
    assert verdict(machine, question("a", step=Step.PREPARE), 0.1)[0] is Verdict.YES
    assert verdict(machine, question("b", step=Step.PREPARE), 1.5)[0] is Verdict.YES


def test_at_once_no_promise_of_an_earlier_epoch_counts() -> None:
    machine = voter()
    assert verdict(machine, question("a", step=Step.PREPARE), 0.1)[0] is Verdict.YES
    assert verdict(machine, question("b", 3, Step.AT_ONCE), 1.5)[0] is Verdict.YES


def test_a_no_tells_what_was_promised_for_that_epoch() -> None:
    machine = voter()
    newer = replace(question("b", 3, Step.PREPARE), ballot=Ballot(5, "b"))
    assert answer(machine, newer, 1.5).ballot == Ballot(5, "b")
    older = question("b", 3, Step.PREPARE)
    assert answer(machine, older, 1.5).ballot == Ballot(5, "b")
    assert answer(machine, question("b", 2, Step.PREPARE), 1.5).ballot is None


def test_an_older_ballot_is_not_accepted() -> None:
    machine = voter()
    later = question("b", step=Step.PREPARE)
    newer = Question(NODE, Step.PREPARE, 2, "b", later.grant, "boot 1", Ballot(5, "b"))
    assert verdict(machine, newer, 1.5)[0] is Verdict.YES
    older = question(step=Step.ACCEPT)
    assert verdict(machine, older, 1.6) == (Verdict.NO, "somebody has asked later")


def test_at_once_it_promises_and_accepts_with_one_sync() -> None:
    machine = voter()
    asked = question(step=Step.AT_ONCE)
    assert verdict(machine, asked, 1.5) == (Verdict.YES, "")
    assert machine.ledgers[NODE].promised == (2, Ballot(1, "b"))
    assert machine.ledgers[NODE].accepted == (Ballot(1, "b"), asked.grant)
    assert machine._kept == 1
    assert verdict(machine, asked, 1.6) == (Verdict.YES, ""), "the answer was lost"


def test_nothing_is_accepted_at_once_beside_another_ballot() -> None:
    """Else two candidates would both have it."""
    for step in (Step.PREPARE, Step.AT_ONCE):
        machine = voter()
        assert verdict(machine, question("a", step=step), 0.1)[0] is Verdict.YES
        later = question(step=Step.AT_ONCE)
        assert later.ballot is not None
        assert later.ballot > Ballot(1, "a")
        assert verdict(machine, later, 1.5) == (Verdict.NO, "somebody has asked before")


def test_at_once_counts_the_list_the_links_and_the_lease() -> None:
    machine = voter()
    asked = question(step=Step.AT_ONCE)
    assert verdict(machine, asked, 0.5) == (Verdict.NO, "it sees a")
    assert verdict(machine, question("c", step=Step.AT_ONCE), 1.5)[0] is Verdict.NO
    assert machine.ledgers[NODE].accepted is None


def test_what_was_denied_at_once_is_only_asked_about_again() -> None:
    """The candidate may want it no more by then."""
    machine = voter()
    renewed(machine, 0.5)
    assert verdict(machine, question(step=Step.AT_ONCE), 0.6)[0] is Verdict.NO
    [said] = machine.unlinked(NODE, "a", is_closed=True, now=0.7)
    assert isinstance(said, Say)
    assert isinstance(said.what, Answer)
    assert (said.what.step, said.what.verdict) == (Step.WOULD, Verdict.YES)
    assert machine.ledgers[NODE].promised is None


def test_a_live_of_an_older_epoch_is_stale() -> None:
    machine = voter()
    verdict(machine, question(step=Step.ACCEPT), 1.5)
    [said] = synced(machine, list(machine.heard("a", Renew(NODE, BOTH, 1, 1), 1.6)))
    assert isinstance(said, Say)
    assert said.what == Stale(NODE, 1, Grant(2, "b", (Copy("b"),)), is_decided=False)


def test_an_older_epoch_is_stale_also_of_who_has_the_newer_one() -> None:
    machine = voter()
    assert verdict(machine, question("a", step=Step.ACCEPT), 0.5)[0] is Verdict.YES
    newer = Grant(2, "a", (Copy("a"),))
    said = synced(machine, list(machine.heard("a", Renew(NODE, BOTH, 1, 1), 0.6)))
    assert said == [Say("a", Stale(NODE, 1, newer, is_decided=False))]


def test_two_do_not_hold_one_epoch() -> None:
    machine = voter()
    other = Renew(NODE, replace(BOTH, holder="b"), 1, 1)
    said = synced(machine, list(machine.heard("b", other, 0.1)))
    assert said == [Say("b", Stale(NODE, 1, BOTH, is_decided=True))]


def test_a_renewal_decides_what_was_accepted() -> None:
    machine = accepted_of_b(voter())
    held = Grant(2, "b", (Copy("b"),))
    [keep] = machine.heard("b", Renew(NODE, held, 0, 1), 1.6)
    assert isinstance(keep, Keep)
    assert keep.ledger.known == held
    list(machine.kept(keep.number))
    nothing_new = list(machine.heard("b", Renew(NODE, held, 0, 2), 1.7))
    assert [type(each) for each in nothing_new] == [Say]


def test_a_list_is_told_by_its_version() -> None:
    machine = voter()
    alone = Grant(1, "a", (Copy("a"),))
    [said] = synced(machine, list(machine.heard("a", Renew(NODE, alone, 2, 7), 0.1)))
    assert isinstance(said, Say)
    assert said.what == Renewed(NODE, 1, 2, 7)
    renewed(machine, 0.2)  # an older one changes nothing
    assert machine.ledgers[NODE].known == alone


def test_a_live_may_want_a_longer_lease_than_the_voter_has() -> None:
    machine = voter()
    synced(machine, list(machine.heard("a", Renew(NODE, BOTH, 1, 1, 5_000), 10.0)))
    assert not list(machine.unlinked(NODE, "a", is_closed=False, now=10.1))
    assert verdict(machine, question(), 14.9)[0] is Verdict.NO
    assert verdict(machine, question(), 15.1)[0] is Verdict.YES


def test_the_lease_that_a_live_wants_outlives_the_voter() -> None:
    machine = voter()
    synced(machine, list(machine.heard("a", Renew(NODE, BOTH, 1, 1, 5_000), 10.0)))
    again = Voter(LEASE, machine.ledgers, 20.0)
    assert verdict(again, question(), 24.9)[0] is Verdict.NO
    assert verdict(again, question(), 25.1)[0] is Verdict.YES


def alone_here() -> Voter:
    """It has not heard that b is in sync again."""
    return Voter(LEASE, {NODE: Ledger(Grant(1, "a", (Copy("a"),)), 1)}, 0.0)


def test_it_learns_the_list_that_the_live_told_another_voter() -> None:
    machine = alone_here()
    assert verdict(machine, question(), 1.5) == (Verdict.NO, "b is not in sync")
    told = replace(question(), told=Listed(BOTH, 2))
    assert verdict(machine, told, 1.5) == (Verdict.YES, "")
    assert machine.ledgers[NODE].listed == Listed(BOTH, 2)


def test_an_older_list_or_one_of_an_older_epoch_is_not_learnt() -> None:
    machine = voter()
    older = Listed(Grant(1, "a", (Copy("a"),)), 0)
    assert verdict(machine, replace(question(), told=older), 1.5) == (Verdict.YES, "")
    assert machine.ledgers[NODE].listed == Listed(BOTH, 1)
    accepts = replace(question(step=Step.ACCEPT), told=Listed(BOTH, 1))
    assert verdict(machine, accepts, 1.5)[0] is Verdict.YES
    verdict(machine, replace(question("a", 3), told=Listed(BOTH, 9)), 1.5)
    assert machine.ledgers[NODE].version == 1, "another epoch may be decided since"


def test_nothing_is_learnt_of_a_node_that_is_not_known() -> None:
    for ledgers in ({}, {NODE: Ledger()}):
        machine = voter(ledgers=ledgers)
        told = replace(question(), told=Listed(BOTH, 9))
        assert verdict(machine, told, 1.5) == (Verdict.NO, "it knows nothing of this node")


def test_who_only_hears_of_a_list_gives_no_lease() -> None:
    machine = alone_here()
    verdict(machine, replace(question(), told=Listed(BOTH, 2)), 1.5)
    assert machine.leased_until[NODE] == LEASE


OTHER = b"M" * 16
THEIRS = Grant(3, "x", (Copy("x"), Copy("y")))


def in_doubt() -> tuple[Voter, int]:
    """It has made a promise, and its own replica is lost: nothing is synced before it goes on."""
    machine = voter()
    synced(machine, list(machine.heard("x", Renew(OTHER, THEIRS, 5, 1), 0.0)))
    [keep] = machine.heard("a", question("a", step=Step.PREPARE), 0.1)
    assert isinstance(keep, Keep)
    machine.is_in_doubt = True
    return machine, keep.number


def test_one_in_doubt_says_later_also_if_it_cannot_sync() -> None:
    machine, number = in_doubt()
    for step in Step:
        [said] = machine.heard("a", question("a", step=step), 0.2)
        assert isinstance(said, Say)
        assert said.what == Answer(
            NODE, step, 1, Verdict.LATER, "it does not know whether it may go on"
        )
    machine.is_in_doubt = False
    [said] = machine.kept(number)
    assert isinstance(said, Say)
    assert isinstance(said.what, Answer)
    assert said.what.verdict is Verdict.YES


def test_one_in_doubt_keeps_leases_and_tells_what_is_synced() -> None:
    machine, number = in_doubt()
    assert list(machine.heard("x", Renew(OTHER, THEIRS, 5, 2), 0.5)) == [
        Say("x", Renewed(OTHER, 3, 5, 2))
    ]
    alone = replace(THEIRS, copies=THEIRS.copies[:1])
    [_, told] = machine.heard("x", Renew(OTHER, alone, 6, 3), 0.6)
    assert told == Say("x", Renewed(OTHER, 3, 5, 3)), "the newer list is not synced"
    later = replace(THEIRS, epoch=4)
    assert not [each for each in machine.heard("x", Renew(OTHER, later, 9, 4), 0.8)
                if isinstance(each, Say)], "nor is this epoch"  # fmt: skip
    list(machine.kept(number + 2))
    assert list(machine.heard("x", Renew(OTHER, later, 9, 5), 0.9)) == [
        Say("x", Renewed(OTHER, 4, 9, 5))
    ]


def test_one_in_doubt_tells_nothing_of_a_node_before_it_is_synced() -> None:
    machine, number = in_doubt()
    fresh = Renew(b"F" * 16, replace(THEIRS, epoch=1), 0, 1)
    assert [type(each) for each in machine.heard("x", fresh, 0.5)] == [Keep]
    assert len(list(machine.kept(number + 1))) == 2


def test_a_node_that_is_forgotten_is_granted_nothing_until_its_live_renews() -> None:
    machine = voter(links=set())
    [keep] = machine.forget(NODE, 1)
    assert keep == Keep(NODE, Ledger(), keep.number)
    list(machine.kept(keep.number))
    assert verdict(machine, question(), 9.0) == (Verdict.NO, "it knows nothing of this node")
    assert not list(machine.forget(NODE, 1)), "that is kept already"
    machine.linked(NODE, "a")
    [said] = synced(machine, list(machine.heard("a", Renew(NODE, BOTH, 1, 7, 0), 9.0)))
    assert said == Say("a", Renewed(NODE, 1, 1, 7))


def test_who_is_there_or_has_a_higher_epoch_is_not_forgotten() -> None:
    assert not list(voter().forget(NODE, 1)), "a member of it has a link"
    assert not list(voter(links=set()).forget(NODE, 0)), "whoever forgets it does not know this one"
