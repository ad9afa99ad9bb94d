"""One member, driven by hand: its journal and its voters answer at once, unless told not to.

The others are words: what it says to them is kept, and what they say is said by the test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shmbroker.netbridge.election.candidate import Ask, Electorate
from shmbroker.netbridge.election.question import (
    Answer,
    Copy,
    Grant,
    Listed,
    Renew,
    Renewed,
    Stale,
    Verdict,
)
from shmbroker.netbridge.member.action import Action, Begin, Line, Tell, TellVoter, Write
from shmbroker.netbridge.member.core import NEVER
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.options import MemberOptions
from shmbroker.netbridge.member.said import Hello, InSync, Join, Joined, Said
from shmbroker.netbridge.member.standing import Past, Position, Record, State
from shmbroker.netbridge.member.written import number_of

NODE = b"N" * 16
WITNESS = Electorate(("w",), 1)
NOBODY = None
THREE = Electorate(("v1", "v2", "v3"), 2)
A, B = Copy("a"), Copy("b", "boot b")
SECOND = Grant(2, "b", (B,))
OTHER = Grant(2, "c", (Copy("c"),))
OLDER, SAME, NEWER = (Position(1, "b", number_of(1, number), 0) for number in (3, 5, 9))
"""Less than `backup` has, as much, and more."""
FORMER = (Copy("b"), Copy("a", "former boot"))
"""The list of `backup`, if its host was restarted since."""
MOST = 1000
"""Actions that follow from one event."""


class Driven:
    def __init__(
        self, electorate: Electorate | None = WITNESS, past: Past | None = None, **options: Any
    ) -> None:
        """Without a past it serves epoch 1 alone, and its voters know; else it has just started."""
        self.now = 0.0
        self.has_frame = True
        """Whether its journal has the last frame of whoever joins."""
        self.syncs = self.votes = True
        self.number = 0
        self.did: list[Action] = []
        is_preferred = options.pop("is_preferred", True)
        given = MemberOptions("a", is_preferred, electorate=electorate, **options)
        self.machine = Member(
            given, past or Past(), lambda last: self.has_frame, boot="boot a", life="life", now=0.0
        )
        self.machine.fresh_node = NODE
        for voter in electorate.voters if electorate is not None else ():
            self.does(self.machine.voter_up(voter, self.now))
        self.does(self.machine.start(self.now))
        if past is None:
            self.ticks(10.0)
        else:
            self.now = 10.0

    # --- what happens -------------------------------------------------------------------------

    def does(self, actions: Iterable[Action]) -> list[Action]:
        """All that follows, its journal's and its voters' answers included."""
        todo, done = list(actions), []
        while todo:
            action = todo.pop(0)
            done.append(action)
            assert len(done) < MOST, "it goes on and on"
            if isinstance(action, Begin):
                todo += self.machine.has_begun(self._next(action.epoch), self.now)
                todo += self._synced()
            elif isinstance(action, Write):
                todo += self.machine.appended(self._next(), action.record, self.now)
                todo += self._synced()
            elif isinstance(action, TellVoter) and isinstance(action.what, Renew) and self.votes:
                told = action.what
                said = Renewed(told.node, told.grant.epoch, told.version, told.serial)
                todo += self.machine.voter_said(action.voter, said, self.now)
        self.did += done
        return done

    def _next(self, epoch: int = 0) -> Position:
        self.number += 1
        epoch = epoch or self.machine.epoch
        return Position(epoch, "a", number_of(epoch, self.number), 0)

    def _synced(self) -> list[Action]:
        if not self.syncs:
            return []
        return self.machine.has_synced(self.machine.end, self.now)

    def ticks(self, now: float) -> list[Action]:
        self.now = now
        return self.does(self.machine.tick(now))

    def writes(self) -> list[Action]:
        """A frame of programs."""
        return self.does([*self.machine.appended(self._next(), None, self.now), *self._synced()])

    def catches_up(self) -> list[Action]:
        """All that was written is synced."""
        return self.does(self.machine.has_synced(self.machine.end, self.now))

    def hears(self, member: str, what: Said) -> list[Action]:
        return self.does(self.machine.heard(member, what, self.now))

    # --- replicas -----------------------------------------------------------------------------

    def links(self, member: str, **hello: Any) -> list[Action]:
        said = {"node": NODE, "last": Position(), "serves": False, "epoch": 0} | hello
        done = self.does(self.machine.peer_up(member, self.now))
        return done + self.hears(member, Hello(**said))

    def joins(self, member: str, **changes: Any) -> list[Action]:
        said = {
            "node": NODE, "last": self.machine.last, "is_whole": True, "has_left": False,
            "boot": f"boot {member}", "stream": 1,
        } | changes  # fmt: skip
        return self.hears(member, Join(**said))

    def confirms(self, member: str, number: int | None = None, stream: int = 1) -> list[Action]:
        """All frames up to this one; all that there are."""
        number = self.machine.end if number is None else number
        return self.does(self.machine.replica_has(member, stream, number, self.now))

    def closely(self, member: str, stream: int = 1) -> list[Action]:
        return self.does(self.machine.replica_can_count(member, stream, self.now))

    def follows(self, member: str) -> None:
        """From its first word until it is in sync, and was told so."""
        self.links(member)
        self.joins(member)
        self.closely(member)
        self.confirms(member)
        self.confirms(member)  # the record that lists it

    def loses(self, member: str) -> list[Action]:
        return self.does(self.machine.peer_down(member, self.now))

    def is_outdone(self) -> list[Action]:
        """By c, of whom b tells."""
        return self.hears("b", Hello(NODE, Position(5, "c", number_of(5, 1), 0), False, 5))

    # --- what it looks like -------------------------------------------------------------------

    @property
    def listed(self) -> set[str]:
        return {copy.member for copy in self.machine.copies}


def told(actions: Iterable[Action], member: str = "") -> list[Said]:
    return [
        each.what
        for each in actions
        if isinstance(each, Tell) and member in ("", each.member)
    ]


def lines(actions: Iterable[Action]) -> list[str]:
    return [each.alert.value for each in actions if isinstance(each, Line)]


def asked(actions: Iterable[Action]) -> list[Ask]:
    return [each for each in actions if isinstance(each, Ask)]


def begun(actions: Iterable[Action]) -> bool:
    return any(isinstance(each, Begin) for each in actions)


def joins(actions: Iterable[Action], member: str = "b") -> list[Join]:
    return [each for each in told(actions, member) if isinstance(each, Join)]


def written(actions: Iterable[Action]) -> list[Record]:
    return [each.record for each in actions if isinstance(each, Write)]


def pair(electorate: Electorate | None = WITNESS, **options: Any) -> Driven:
    """With b in sync."""
    driven = Driven(electorate, **options)
    driven.follows("b")
    return driven


def answers(driven: Driven, verdict: Verdict = Verdict.YES) -> None:
    """Of its only voter, to what it has asked last."""
    [*_, ask] = asked(driven.did)
    question = ask.question
    said = Answer(NODE, question.step, question.attempt, verdict, ballot=question.ballot)
    driven.does(driven.machine.voter_said("w", said, driven.now))


def wins(driven: Driven) -> None:
    """Its only voter would, and accepts at once."""
    answers(driven)
    answers(driven)


def put(of: object, changes: Mapping[str, Any]) -> None:
    for name, value in changes.items():
        setattr(of, name, value)


def three(electorate: Electorate | None = WITNESS) -> Driven:
    """With b and c in sync."""
    driven = Driven(electorate, max_replicas=2)
    driven.follows("b")
    driven.follows("c")
    driven.confirms("b")
    assert driven.machine.counted == {"b", "c"}
    return driven


def hands(driven: Driven, member: str = "b") -> list[Any]:
    """Over, and its journal is held at once."""
    done = driven.does(driven.machine.hands_over(member, driven.now))
    return done + holds(driven)


def stops(driven: Driven, *, hands_over: bool = True) -> list[Any]:
    done = driven.does(driven.machine.stop(driven.now, hands_over=hands_over))
    return done + holds(driven)


def holds(driven: Driven) -> list[Any]:
    return driven.does(driven.machine.held(driven.machine.last, driven.now))


def stale(driven: Driven, newest: Grant, *, is_decided: bool, voter: str = "w") -> list[Any]:
    said = Stale(NODE, driven.machine.epoch, newest, is_decided)
    return driven.does(driven.machine.voter_said(voter, said, driven.now))


def refused(driven: Driven, newest: Grant) -> list[Any]:
    """Its question: somebody else has that epoch."""
    [*_, ask] = asked(driven.did)
    said = Answer(
        NODE, ask.question.step, ask.question.attempt, Verdict.NO, known=Listed(newest, 0)
    )
    return driven.does(driven.machine.voter_said("w", said, driven.now))


def loses_the_vote(driven: Driven) -> None:
    for _ in range(40):
        if driven.machine.candidate is None:
            return
        driven.ticks(driven.machine.candidate.deadline)
    raise AssertionError("it asks on")


def backup(electorate: Electorate | None = WITNESS, **options: Any) -> Driven:
    """It was in sync with b, at epoch 1, and starts."""
    copies = (Copy("b"), Copy("a", "boot a"))
    past = Past(NODE, SAME, copies)
    return Driven(electorate, past, **({"is_preferred": False} | options))


def looking(electorate: Electorate | None = WITNESS, **options: Any) -> Driven:
    """It looks for a live, and has met nobody."""
    driven = backup(electorate, **options)
    driven.machine.look_until = NEVER
    driven.machine.state = State.JOINING
    return driven


def held(electorate: Electorate | None = WITNESS, **options: Any) -> Driven:
    driven = backup(electorate, **options)
    driven.machine.becomes(State.HELD)
    driven.machine.done()
    return driven


def serves(driven: Driven, member: str = "b", epoch: int = 1, **hello: Any) -> list[Action]:
    """This member is linked, and live."""
    last = Position(epoch, member, number_of(epoch, 9), 0)
    return driven.links(member, **({"serves": True, "epoch": epoch, "last": last} | hello))


def meets(driven: Driven, member: str = "b", **hello: Any) -> list[Action]:
    """One that has less than `backup` has."""
    return driven.links(member, **({"epoch": 1, "last": OLDER} | hello))


def following(electorate: Electorate | None = WITNESS, **options: Any) -> Driven:
    """It follows b, and is in sync."""
    driven = backup(electorate, **options)
    driven.machine.state = State.JOINING
    serves(driven)
    driven.hears("b", Joined(1, False, 1))
    driven.hears("b", InSync(1))
    assert driven.machine.state is State.IN_SYNC
    return driven
