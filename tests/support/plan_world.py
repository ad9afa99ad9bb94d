"""A plan by a pretended clock, with members of which some are down."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from shmbroker.netbridge.plan.action import Action, Changed, Connect
from shmbroker.netbridge.plan.plan import Plan
from shmbroker.netbridge.plan.plans import drafts
from shmbroker.netbridge.plan.terms import Owner
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.wire.words import Refusal


class World:
    """A plan, a clock, and members of which some are down."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now = 1000.0
        self.does: dict[str, str | Refusal] = {}
        """What a host does: `up`, `down`, or a refusal."""
        self.all: list[tuple[float, Action]] = []
        self.tried: list[str] = []
        self.times: list[float] = []
        """When a member was tried."""

    def take(self, actions: Iterable[Action]) -> None:
        done = list(actions)
        self.all += [(self.now, each) for each in done]
        for each in done:
            if isinstance(each, Connect):
                self._try(each.member)

    def _try(self, member: Single) -> None:
        self.tried.append(member.host)
        self.times.append(self.now)
        does = self.does.get(member.host, "down")
        if does == "up":
            self.plan.connected()
            self.plan.welcomed()
            self.take(self.plan.up(self.now))
        elif isinstance(does, Refusal):
            self.plan.connected()
            self.take(self.plan.refused(self.now, does, f"{does.value} of {member.host}"))
        else:
            self.take(self.plan.attempt_failed(self.now, f"{member.host} is down"))

    def start(self) -> World:
        self.take(self.plan.start(self.now))
        return self

    def wake(self) -> float:
        """To the next time that the plan wants; how long that was."""
        due = self.plan.due
        assert due is not None
        assert due > self.now
        waited, self.now = due - self.now, due
        self.take(self.plan.woken(self.now))
        return waited

    def lose(self, after: float = 10.0, **told: Any) -> None:
        self.now += after
        self.take(self.plan.lost(self.now, "gone", **told))

    def of(self, kind: type[Action]) -> list[Action]:
        return [each for _, each in self.all if isinstance(each, kind)]

    @property
    def lines(self) -> list[str]:
        """What was logged."""
        return [each.state.value for _, each in self.all if isinstance(each, Changed)]


def world(
    text: str, owner: Owner = "link", seed: int = 1, retry: float = 60.0, **does: object
) -> World:
    [draft] = drafts(parse(text), owner, retry)
    found = World(draft.plan(random.Random(seed)))
    found.does.update(does)  # type: ignore[arg-type]
    return found


def within(pause: float, wanted: float, longest: float) -> bool:
    return wanted * 0.9 - 1e-9 <= pause <= min(wanted * 1.1, longest) + 1e-9
