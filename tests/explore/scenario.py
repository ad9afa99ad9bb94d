"""A scenario: which processes share which memory, what may befall them, and what must hold.

The *ledger* is what the scenario remembers about a run beside the memory: any immutable value.
It changes when an actor writes a watched word (`wrote`) and when a program says so (`told`), both
at the same step as the operation, so that invariants see word and ledger agree.  The less it
holds, the fewer states there are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.explore.memory import Memory


@dataclass(frozen=True, slots=True)
class Role:
    """One process of a scenario."""

    name: str
    program: Callable[..., int]
    arguments: tuple[int, ...] = ()
    opening: Callable[..., int] | None = None
    """Run alone before anything else: fills the private memory."""
    opening_arguments: tuple[int, ...] = ()
    mortal: bool = False
    """May be killed (after any step), as long as the budget lasts."""
    stoppable: bool = False
    """May be stopped for ever without dying, as long as the budget lasts."""


class View(Protocol):
    """What rules see of a state."""

    @property
    def memory(self) -> Sequence[int]: ...

    @property
    def ledger(self) -> Hashable: ...

    def killed(self, actor: int) -> bool: ...

    def stopped(self, actor: int) -> bool: ...

    def ended(self, actor: int) -> bool: ...


class Rules:
    """What a scenario's runs must obey; each method raises `Violation` or answers."""

    def first(self, memory: Sequence[int]) -> Hashable:
        """The ledger before the first step."""
        return ()

    def wrote(
        self,
        before: View,
        ledger: Hashable,
        actor: int,
        index: int,
        old: int,
        new: int,
        memory: Sequence[int],
    ) -> Hashable:
        """The ledger after an actor changed the watched word `index`; memory has the new value."""
        return ledger

    def told(
        self,
        before: View,
        ledger: Hashable,
        actor: int,
        event: int,
        first: int,
        second: int,
        memory: Sequence[int],
    ) -> Hashable:
        """The ledger after a program's `tell`."""
        return ledger

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        """All answers to a program's `ask`; none: it waits."""
        return (0,)

    def check(self, view: View) -> None:
        """What holds after every step; sees memory, ledger, and who was killed or stopped."""

    def finished(self, view: View) -> None:
        """What holds when a run and its epilogue are over."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One thing to explore."""

    name: str
    memory: Memory
    setup: Callable[..., int]
    setup_arguments: tuple[int, ...]
    roles: tuple[Role, ...]
    rules: Rules
    epilogue: Role | None = None
    """Runs alone when all others have ended: what survivors do."""
    watched: tuple[int, ...] = ()
    kills: int = 0
    stops: int = 0
    store_buffers: bool = False
    """Total store order, as on x86, instead of sequential consistency."""
    answers_max: int = 1
    """How many answers a question may have."""
    poke: dict[int, int] = field(default_factory=dict)
    """Words (by address) that the set-up is followed by: counters close to their wrap."""
