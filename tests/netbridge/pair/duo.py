"""Both brokers of a pair, with a line between them that a test moves on."""

from __future__ import annotations

from collections import deque
from typing import Final

from shmbroker.netbridge.pair.machine import (
    Accepted,
    Action,
    Answer,
    Became,
    Pair,
    PairOptions,
    Tell,
)
from shmbroker.netbridge.pair.told import State, Told

VHOST: Final = "/"
PRIMARY: Final = "primary"
BACKUP: Final = "backup"
OTHER: Final = {PRIMARY: BACKUP, BACKUP: PRIMARY}


class Duo:
    """What is said is on its way until `deliver`; while the line is cut it is lost."""

    def __init__(self, *, primary_wins: bool = False, accepts_pending: bool = True) -> None:
        self.now = 100.0
        self.lives = 0
        self.primary_wins, self.accepts_pending = primary_wins, accepts_pending
        self.brokers: dict[str, Pair] = {}
        self.on_way: dict[str, deque[Told]] = {PRIMARY: deque(), BACKUP: deque()}
        self.is_cut = False
        self.done: list[tuple[str, Action]] = []

    def start(self, name: str) -> Pair:
        self.lives += 1
        options = PairOptions(
            is_primary=name == PRIMARY, vhost=VHOST, peer=f"tcp://{OTHER[name]}:1",
            is_accepted_pending=self.accepts_pending, has_primary_win=self.primary_wins,
        )  # fmt: skip
        self.brokers[name] = Pair(options, self.lives, self.now)
        self.link()
        return self.brokers[name]

    def kill(self, name: str) -> None:
        del self.brokers[name]
        self.on_way[name].clear()

    def stop(self, name: str) -> None:
        self.does(name, self.brokers.pop(name).stop(self.now))
        self.on_way[name].clear()

    def link(self) -> None:
        """A link comes up: each says what it is."""
        if not self.is_cut and len(self.brokers) == 2:
            for name, broker in self.brokers.items():
                self.does(name, broker.linked(self.now))

    def cut(self) -> None:
        self.is_cut = True
        for each in self.on_way.values():
            each.clear()

    def heal(self) -> None:
        self.is_cut = False
        self.link()

    def does(self, name: str, actions: list[Action]) -> None:
        for action in actions:
            self.done.append((name, action))
            if isinstance(action, Tell) and not self.is_cut and OTHER[name] in self.brokers:
                self.on_way[OTHER[name]].append(action.what)

    def deliver(self, name: str) -> bool:
        """The oldest that is on its way to this one."""
        if name not in self.brokers or not self.on_way[name]:
            return False
        told = self.on_way[name].popleft()
        self.does(name, self.brokers[name].heard(told, self.now))
        return True

    def settle(self) -> None:
        for _ in range(1000):
            if not any([self.deliver(PRIMARY), self.deliver(BACKUP)]):
                return
        raise AssertionError("they never stop talking")

    def wait(self, seconds: float) -> None:
        """Time passes, and what is said arrives at once."""
        end = self.now + seconds
        while True:
            due = [each.deadline for each in self.brokers.values()]
            self.now = min([end, *due])
            for name, broker in list(self.brokers.items()):
                self.does(name, broker.tick(self.now))
            self.settle()
            if self.now >= end:
                return

    def stand_still(self, seconds: float) -> None:
        """Both hosts do: nobody looks, and nothing is said."""
        self.now += seconds

    def ask(self, name: str, vhost: str = VHOST) -> Answer:
        """An application connects."""
        answer, actions = self.brokers[name].application(vhost, self.now)
        self.does(name, actions)
        return answer

    def accepts(self, name: str) -> bool:
        return isinstance(self.ask(name), Accepted)

    @property
    def states(self) -> dict[str, State]:
        return {name: each.state for name, each in self.brokers.items()}

    def reasons(self, name: str) -> list[str]:
        """Why it became what it is, oldest first."""
        return [
            action.why for who, action in self.done if who == name and isinstance(action, Became)
        ]


def started(*names: str, **options: bool) -> Duo:
    duo = Duo(**options)
    for name in names or (PRIMARY, BACKUP):
        duo.start(name)
        duo.settle()
    return duo
