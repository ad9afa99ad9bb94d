"""What a live grants to members of other nodes: kept in its journal, and said when confirmed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, cast

import pytest

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Copy, Grant, Node
from shmbroker.netbridge.member.codec import LEDGERS_MAX
from shmbroker.netbridge.member.standing import State, Voted
from shmbroker.netbridge.member.written import Written
from shmbroker.netbridge.replicated.acting import Acting
from shmbroker.netbridge.replicated.votes import CannotVote, Votes

PATIENCE = 60.0


def node(number: int) -> Node:
    return number.to_bytes(16)


def ledger(epoch: int) -> Ledger:
    return Ledger(Grant(epoch, "x", (Copy("x"),)))


@dataclass
class Served:
    is_over: bool = False


@dataclass
class Machine:
    state: State = State.LIVE
    is_confirmed: int = 0

    def confirmed(self, _now: float) -> int:
        return self.is_confirmed if self.state in (State.LIVE, State.ALONE) else 0


@dataclass
class Member:
    """What `Votes` sees of the one that acts; its thread is the test's."""

    machine: Machine = field(default_factory=Machine)
    served: Served = field(default_factory=Served)
    written: Written = field(default_factory=Written)
    records: list[Voted] = field(default_factory=list)
    calls: SimpleQueue[Callable[[], None]] = field(default_factory=SimpleQueue)
    votes: Votes | None = None

    def __post_init__(self) -> None:
        self.votes = Votes(cast(Acting, self))

    @property
    def thread(self) -> Any:
        member = self

        class Thread:
            @staticmethod
            def call(step: Callable[[], None]) -> None:
                member.calls.put(step)

        return Thread

    def does(self, _actions: list[object]) -> None:
        assert self.votes is not None
        self.votes.look()

    def note(self, record: Voted) -> None:
        self.records.append(record)
        self.written = self.written.after(record)

    def keeps(self, *changes: tuple[Node, Ledger]) -> Future[None]:
        assert self.votes is not None
        done: Future[None] = Future()
        self.votes.wants(dict(changes), done)
        return done

    def syncs(self, number: int) -> None:
        assert self.votes is not None
        self.votes.written(self.records[-1], number)
        self.votes.look()

    def confirms(self, number: int) -> None:
        self.machine.is_confirmed = number
        self.does([])


@pytest.fixture
def member() -> Member:
    return Member()


def test_nothing_is_said_before_it_is_confirmed(member: Member) -> None:
    done = member.keeps((node(1), ledger(3)))
    assert member.records == [Voted(((node(1), ledger(3)),))]
    member.confirms(9)
    assert not done.done()
    member.syncs(10)
    assert not done.done()
    member.confirms(10)
    done.result(0)


def test_a_live_in_doubt_writes_and_says_nothing(member: Member) -> None:
    member.machine.state = State.SUSPENDED
    done = member.keeps((node(1), ledger(3)))
    member.syncs(10)
    member.confirms(10)
    assert not done.done()
    member.machine.state = State.ALONE
    member.does([])
    done.result(0)


def test_one_that_is_fenced_cannot_vote(member: Member) -> None:
    done = member.keeps((node(1), ledger(3)))
    member.syncs(10)
    member.machine.state = State.FENCED
    member.confirms(10)
    with pytest.raises(CannotVote, match="it is live no more"):
        done.result(0)


def test_while_it_hands_over_nothing_is_granted(member: Member) -> None:
    member.machine.state = State.HANDING_OVER
    member.keeps((node(1), ledger(3)))
    assert not member.records
    member.machine.state = State.LIVE
    member.does([])
    assert len(member.records) == 1


def test_its_successor_knows_what_was_granted(member: Member) -> None:
    member.keeps((node(1), ledger(3)), (node(2), ledger(4)))
    member.syncs(10)
    member.confirms(10)
    successor = Member(written=member.written)
    assert successor.votes is not None
    assert successor.votes.ledgers == {node(1): ledger(3), node(2): ledger(4)}


def test_it_votes_for_so_many_nodes_only(member: Member) -> None:
    member.keeps(*((node(each), ledger(1)) for each in range(LEDGERS_MAX)))
    member.syncs(10)
    member.confirms(10)
    done = member.keeps((node(99), ledger(1)))
    with pytest.raises(CannotVote, match="16 nodes, not more"):
        done.result(0)
    again = member.keeps((node(0), ledger(2)))
    member.syncs(11)
    member.confirms(11)
    again.result(0)


def test_a_node_that_is_forgotten_makes_room_for_another_one(member: Member) -> None:
    member.keeps(*((node(each), ledger(1)) for each in range(LEDGERS_MAX)))
    member.keeps((node(3), Ledger()), (node(99), ledger(1)))
    assert len(member.records) == 2
    successor = Member(written=member.written)
    assert successor.votes is not None
    assert node(99) in successor.votes.ledgers
    assert node(3) not in successor.votes.ledgers


def test_the_thread_of_the_voter_waits_for_it(member: Member) -> None:
    assert member.votes is not None
    with ThreadPoolExecutor(1) as worker:
        done = worker.submit(member.votes.keep, [(node(1), ledger(3))])
        member.calls.get(timeout=PATIENCE)()
        member.syncs(10)
        member.confirms(10)
        done.result(PATIENCE)
