"""Actions of a member in turn, while the worker is at one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from shmbroker.ipc.base.errors import JournalFailed
from shmbroker.netbridge.election.candidate import Ask
from shmbroker.netbridge.member.action import Action, GoOn, Promote, Unfollow, WriteLeft
from shmbroker.netbridge.replicated.waiting import Waiting

ASK = Ask("v", cast("Any", "question"))


class Stage:
    """Its worker does what it was given when it is told to."""

    def __init__(self) -> None:
        self.did: list[object] = []
        self._given: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.waiting = Waiting(
            cast("Any", self), self._carries_out, lambda: self.does(), self.did.append
        )

    def does(self, *actions: Action) -> None:
        self.waiting.add(actions)
        self.waiting.go_on()

    def do(self, work: Callable[[], Any], then: Callable[[Any], None], of: object = None) -> None:
        self._given.append((work, then))

    def works(self) -> None:
        work, then = self._given.pop()
        try:
            then(work())
        except JournalFailed as error:
            then(error)

    def _carries_out(self, action: Action) -> None:
        if isinstance(action, Unfollow):
            self.waiting.meanwhile(lambda: "written", self.did.append)
        elif isinstance(action, WriteLeft):
            self.waiting.meanwhile(self._fails, self.did.append)
        else:
            self.did.append(action)

    def _fails(self) -> None:
        raise JournalFailed("no disk")


def test_what_comes_behind_waits_for_the_worker() -> None:
    stage = Stage()
    stage.does(Promote(), Unfollow(), ASK, GoOn())
    assert stage.did == [Promote()]
    assert stage.waiting.has(GoOn)
    stage.works()
    assert stage.did == [Promote(), "written", ASK, GoOn()]


def test_voters_are_asked_meanwhile_if_they_may_be() -> None:
    stage = Stage()
    stage.waiting.may_ask = True
    stage.does(Unfollow(), ASK, GoOn(), ASK)
    assert stage.did == [ASK]
    stage.works()
    assert stage.did == [ASK, "written", GoOn(), ASK]
    assert not stage.waiting.may_ask


def test_behind_what_has_failed_nothing_is_done() -> None:
    stage = Stage()
    stage.does(WriteLeft(), GoOn())
    stage.works()
    assert stage.did == ["no disk"]
    stage.does(Promote())
    assert stage.did == ["no disk", Promote()]


def test_what_cannot_wait_goes_first() -> None:
    stage = Stage()
    stage.does(Unfollow(), ASK, GoOn())
    assert stage.waiting.takes(lambda each: isinstance(each, GoOn)) == [GoOn()]
    stage.works()
    assert stage.did == ["written", ASK]


def test_an_error_of_ours_is_raised() -> None:
    stage = Stage()
    stage.does(Unfollow())
    _, then = stage._given.pop()
    with pytest.raises(KeyError):
        then(KeyError("ours"))
