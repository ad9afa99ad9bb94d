"""What a member may write into an engine, rule by rule."""

from __future__ import annotations

from dataclasses import replace

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import (
    Answer,
    Ballot,
    Copy,
    Grant,
    Question,
    Release,
    Renew,
    Renewed,
    Stale,
    Step,
    Verdict,
)
from shmbroker.netbridge.engine.engine import Lease, LeaseStep, Seen
from shmbroker.netbridge.engine.judge import Judge, Judged

NODE = b"N" * 16
BOTH = Grant(1, "a", (Copy("a"), Copy("b", "boot 1")))
KNOWN = Ledger(BOTH, 1, lease_ms=1000)
LEASED = Seen(KNOWN, Lease("a", 7))
FREE = Seen(KNOWN)


def judge(me: str = "b", *, ends_leases: bool = False) -> Judge:
    return Judge(me, ends_leases=ends_leases)


def question(
    asker: str = "b", epoch: int = 2, step: Step = Step.WOULD, *, holder: str = ""
) -> Question:
    ballot = None if step is Step.WOULD else Ballot(1, f"{asker} life")
    grant = Grant(epoch, holder or asker, (Copy(holder or asker),))
    return Question(NODE, step, 1, asker, grant, "boot 1", ballot)


def said(judged: Judged) -> tuple[Verdict, str]:
    assert isinstance(judged.answer, Answer)
    return judged.answer.verdict, judged.answer.reason


def test_a_fresh_live_tells_of_its_node() -> None:
    judged = judge("a").judge(Renew(NODE, BOTH, 1, 3, 1000), Seen(None), 5.0)
    assert judged.answer == Renewed(NODE, 1, 1, 3)
    assert (judged.ledger, judged.lease) == (KNOWN, LeaseStep.TAKEN)


def test_a_renewal_writes_also_if_nothing_is_new() -> None:
    """That write is what shows that nobody else was granted anything."""
    judged = judge("a").judge(Renew(NODE, BOTH, 1, 4, 1000), LEASED, 5.0)
    assert (judged.ledger, judged.lease) == (KNOWN, LeaseStep.TAKEN)


def test_who_was_overtaken_is_told_and_takes_no_lease() -> None:
    newer = replace(KNOWN, accepted=(Ballot(1, "b life"), Grant(2, "b", (Copy("b"),))))
    judged = judge("a").judge(Renew(NODE, BOTH, 1, 4, 1000), Seen(newer, Lease("a", 7)), 5.0)
    assert isinstance(judged.answer, Stale)
    assert judged.ledger is None


def test_a_lease_is_measured_by_the_clock_of_who_looks() -> None:
    ours = judge()
    first = ours.judge(question(), LEASED, 100.0)
    assert said(first) == (Verdict.NO, "it sees a")
    assert first.waits_until == 101.0
    assert said(ours.judge(question(), LEASED, 100.9))[0] is Verdict.NO
    assert said(ours.judge(question(), LEASED, 101.0))[0] is Verdict.YES


def test_a_renewal_that_is_seen_begins_it_anew() -> None:
    ours = judge()
    ours.judge(question(), LEASED, 100.0)
    renewed = Seen(KNOWN, Lease("a", 8))
    assert said(ours.judge(question(), renewed, 100.9))[0] is Verdict.NO
    assert said(ours.judge(question(), renewed, 101.5))[0] is Verdict.NO
    assert said(ours.judge(question(), renewed, 101.9))[0] is Verdict.YES


def test_another_connection_begins_it_anew() -> None:
    """It may be another server, which has not seen the last renewals."""
    ours = judge()
    ours.judge(question(), LEASED, 100.0)
    ours.reconnected()
    assert said(ours.judge(question(), LEASED, 101.5))[0] is Verdict.NO


def test_where_the_engine_ends_leases_nothing_is_measured() -> None:
    ours = judge(ends_leases=True)
    for now in (100.0, 100_000.0):
        denied = ours.judge(question(), LEASED, now)
        assert said(denied) == (Verdict.NO, "it sees a")
        assert denied.waits_until == float("inf")
    assert said(ours.judge(question(), FREE, 100_001.0))[0] is Verdict.YES


def test_an_accepted_grant_counts_only_while_the_lease_is_free() -> None:
    judged = judge().judge(question(step=Step.ACCEPT), FREE, 5.0)
    assert judged.lease is LeaseStep.IS_FREE
    assert judged.ledger is not None
    assert judged.ledger.newest == Grant(2, "b", (Copy("b"),))
    assert said(judged) == (Verdict.YES, "")


def test_at_once_it_is_written_once_and_only_while_the_lease_is_free() -> None:
    judged = judge().judge(question(step=Step.AT_ONCE), FREE, 5.0)
    assert judged.lease is LeaseStep.IS_FREE
    assert judged.ledger is not None
    assert judged.ledger.newest == Grant(2, "b", (Copy("b"),))
    denied = judge().judge(question(step=Step.AT_ONCE), LEASED, 5.0)
    assert said(denied) == (Verdict.NO, "it sees a")
    assert denied.ledger is None


def test_a_lease_stops_an_acceptance_too() -> None:
    judged = judge().judge(question(step=Step.ACCEPT), LEASED, 5.0)
    assert said(judged) == (Verdict.NO, "the lease of a is not over")
    assert judged.ledger is None


def test_a_live_hands_over_while_it_has_its_lease() -> None:
    judged = judge("a").judge(question("a", holder="b", step=Step.ACCEPT), LEASED, 5.0)
    assert said(judged) == (Verdict.YES, "")
    assert judged.lease is LeaseStep.STAYS


def test_a_live_goes_on_alone_while_it_has_its_lease() -> None:
    judged = judge("a").judge(question("a", step=Step.ACCEPT), LEASED, 5.0)
    assert said(judged) == (Verdict.YES, "")


def test_who_is_not_in_sync_is_denied() -> None:
    assert said(judge("c").judge(question("c"), FREE, 5.0)) == (Verdict.NO, "c is not in sync")


def test_a_release_frees_the_own_lease_only() -> None:
    assert judge("a").judge(Release(NODE, 1), LEASED, 5.0).lease is LeaseStep.FREED
    assert judge("b").judge(Release(NODE, 1), LEASED, 5.0).ledger is None
    assert judge("a").judge(Release(NODE, 1), FREE, 5.0).ledger is None
    assert judge("a").judge(Release(NODE, 9), LEASED, 5.0).ledger is None


def test_an_engine_that_was_emptied_is_refused_with_both_epochs() -> None:
    ours = judge()
    asked = ours.judge(question(epoch=7), Seen(None), 5.0)
    verdict, reason = said(asked)
    assert verdict is Verdict.NO
    assert "it knows epoch 0" in reason
    assert "b epoch 6" in reason
    assert asked.refused == reason
    renew = Renew(NODE, replace(BOTH, epoch=7), 1, 1, 1000)
    judged = judge("a").judge(renew, Seen(None), 5.0)
    assert (judged.answer, judged.ledger) == (None, None)
    assert "a epoch 6" in judged.refused


def test_an_engine_that_was_restored_from_a_backup_is_refused() -> None:
    """It has known more while this member looked."""
    ours = judge("a")
    ours.wrote(NODE, replace(KNOWN, known=replace(BOTH, epoch=2)))
    judged = ours.judge(Renew(NODE, replace(BOTH, epoch=2), 1, 1, 1000), FREE, 5.0)
    assert judged.answer is None
    assert "it knows epoch 1" in judged.refused
    assert "a epoch 2" in judged.refused


def test_a_handover_that_nobody_could_be_asked_for_is_told_afterwards() -> None:
    renew = Renew(NODE, Grant(2, "b", (Copy("b"),)), 1, 1, 1000)
    judged = judge("b").judge(renew, LEASED, 5.0)
    assert judged.answer == Renewed(NODE, 2, 1, 1)
    assert judged.lease is LeaseStep.TAKEN
