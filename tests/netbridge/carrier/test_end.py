"""What waits for room in a dead-letter queue, and is tried again."""

from __future__ import annotations

import math
from typing import Any

import pytest

from shmbroker.ipc.base.errors import Error
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.link.action import Ended
from shmbroker.netbridge.link.ending import Reason, ending


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
