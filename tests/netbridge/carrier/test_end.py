"""An end: what it sends and when, and what waits for room in a dead-letter queue."""

from __future__ import annotations

import math
from typing import Any

import pytest

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.link.action import Became, Ended, Send
from shmbroker.netbridge.link.ending import Reason, State, ending
from shmbroker.netbridge.wire.codec import decode
from shmbroker.netbridge.wire.frame import Beat


class Machine:
    deadline = math.inf
    outflows: tuple[()] = ()

    def __init__(self) -> None:
        self.is_gone, self.errors = False, 0

    def dealt(self, target: int, position: int, now: float) -> list[Any]:
        return [Ended(ending(Reason.DISCONNECTED))] if self.is_gone else []

    def tick(self, now: float, heard: float) -> list[Any]:
        return []

    def malformed(self, error: Exception, now: float) -> list[Any]:
        self.errors += 1
        return [Ended(ending(Reason.DISCONNECTED))]


class Owner:
    def __init__(self) -> None:
        self.ends = 0

    def wakes(self, end: End) -> None: ...

    def heard(self, end: End, frame: object) -> None: ...

    def ended(self, end: End, how: object) -> None:
        self.ends += 1


class Queue:
    """The dead-letter queue is full, as long as this is said."""

    def __init__(self) -> None:
        self.is_full, self.error = True, ""

    def set_aside(self, position: int) -> bool:
        if self.error:
            raise Error(self.error)
        return not self.is_full

    def close(self) -> None: ...


@pytest.mark.parametrize("error", ["", "queue 'q' follows a queue of another broker"])
def test_what_comes_of_it_ends_the_link_alone(error: str) -> None:
    machine, owner, queue = Machine(), Owner(), Queue()
    end = End(None, machine, owner)  # type: ignore[arg-type]
    for target in (0, 1):
        end.sources[target] = queue  # type: ignore[assignment]
        end._set_aside(target, 7)
    queue.is_full, queue.error, machine.is_gone = False, error, True
    end.woken(math.inf)
    assert (owner.ends >= 1, machine.errors > 0) == (True, bool(error))
    assert not end.sources
    end.woken(math.inf)


class Talking:
    """A machine that is up, of a link without targets."""

    outflows: tuple[()] = ()

    def __init__(self) -> None:
        self.deadline, self._number = 5.0, 0

    def say(self, frame: Beat, now: float) -> list[Send]:
        self._number += 1
        return [Send(frame, self._number)]


class Listens:
    """An owner, that says something as soon as the link is up."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.woken = 0

    def became(self, end: End, state: State) -> None:
        end.say(Beat(0))

    def send(self, end: End, message: bytes) -> bool:
        self.sent.append(decode(message, 1 << 20)[0])
        return True

    def wakes(self, end: End) -> None:
        self.woken += 1

    def heard(self, end: End, frame: object) -> None: ...


def test_what_is_said_goes_behind_what_waits_to_be_sent() -> None:
    machine, owner = Talking(), Listens()
    end = End(None, machine, owner)  # type: ignore[arg-type]
    end.say(Beat(0))
    assert owner.sent == [1]
    end.does([Became(State.UP), *machine.say(Beat(0), 0.0)])
    assert owner.sent == [1, 2, 3]


def test_an_owner_is_told_of_earlier_times_only() -> None:
    """A heartbeat that moves with each frame is found when its former time comes."""
    machine, owner = Talking(), Listens()
    end = End(None, machine, owner)  # type: ignore[arg-type]
    for deadline, woken in ((6.0, 0), (7.0, 0), (6.5, 1), (6.5, 1), (1.0, 2)):
        machine.deadline = deadline
        end.does([])
        assert (end.due, owner.woken) == (deadline, woken)
