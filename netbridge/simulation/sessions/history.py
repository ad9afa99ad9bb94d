"""What must be true of a program's calls and deliveries.

ok          the message is there once; what was acknowledged does not come again
failed      it is not there
unknown     once or not at all, and a retry decides it
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from shmbroker.netbridge.remote.action import Event
from shmbroker.netbridge.remote.outcome import End
from shmbroker.netbridge.simulation.sessions.store import State
from shmbroker.netbridge.simulation.world import Wrong

OF_A_FAULT = ("given up", "a newer link has its session", "it is attached to no session")


@dataclass(slots=True)
class SessionHistory:
    published: dict[int, End | None] = field(default_factory=dict)
    """By message: how its publishing has ended; of a retry, how that has."""
    sets: dict[int, tuple[list[int], End | None]] = field(default_factory=dict)
    """By transaction: its messages, and how its commit has ended."""
    acked: set[int] = field(default_factory=set)
    """Messages whose acknowledgement was ok."""
    deliveries: set[tuple[int, int]] = field(default_factory=set)
    """By generation and number: those whose acknowledgement was ok."""
    is_detected: bool = False
    calls: int = 0
    retries: int = 0
    handed: int = 0
    resumed: int = 0
    remade: int = 0
    left: int = 0
    """For another broker, by request."""

    @staticmethod
    def disconnects(why: str) -> None:
        """Neither end breaks the rules here."""
        if why not in OF_A_FAULT:
            raise Wrong(f"a link is let go: {why}")

    def hands(self, message: int) -> None:
        self.handed += 1
        if message in self.acked:
            raise Wrong(f"message {message} was acknowledged, and comes again")
        if self._end_of(message) is End.FAILED:
            raise Wrong(f"message {message} comes, and its publishing has failed")

    def acks(self, message: int, delivery: tuple[int, int]) -> None:
        if delivery in self.deliveries:
            raise Wrong(f"delivery {delivery} was acknowledged twice")
        self.deliveries.add(delivery)
        self.acked.add(message)

    def _end_of(self, message: int) -> End | None:
        if message in self.published:
            return self.published[message]
        for messages, end in self.sets.values():
            if message in messages:
                return end
        raise Wrong(f"message {message} comes, and nobody sent it")

    def tells(self, event: Event) -> None:
        """A detected failure ends in one way."""
        if event is Event.FAILURE_DETECTED:
            if self.is_detected:
                raise Wrong("a failure is detected within another")
            self.is_detected = True
        elif event in (Event.REATTACHED, Event.FAILOVER_COMPLETED, Event.FAILOVER_FAILED):
            if not self.is_detected:
                raise Wrong(f"{event.value} without a failure")
            self.is_detected = False
            self.resumed += event is Event.REATTACHED
            self.remade += event is Event.FAILOVER_COMPLETED

    def check(self, state: State) -> None:
        there = Counter([*state.messages.values(), *state.acked])
        for message, end in self.published.items():
            self._checked(f"message {message}", there[message], end)
        for transaction, (messages, end) in self.sets.items():
            counts = {there[message] for message in messages}
            if len(counts) > 1:
                raise Wrong(f"transaction {transaction} is there in part: {counts}")
            for count in counts:
                self._checked(f"transaction {transaction}", count, end)

    def _checked(self, name: str, count: int, end: End | None) -> None:
        if count > 1:
            raise Wrong(f"{name} is there {count} times")
        if end is End.OK and count != 1:
            raise Wrong(f"{name} was confirmed, and is not there")
        if end is End.FAILED and count:
            raise Wrong(f"{name} has failed, and is there")
