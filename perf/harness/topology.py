"""A topology: who sends, who receives, and what must have arrived where.

| delivery  | what the verdict demands                                             |
|-----------|----------------------------------------------------------------------|
| echo      | the initiator gets back exactly what it sent                         |
| each-once | all receivers together got exactly what all senders together sent    |
| to-all    | every receiver by itself got exactly what all senders together sent  |
"""

from dataclasses import dataclass
from typing import Literal

Role = Literal["initiator", "responder", "sender", "receiver"]
Delivery = Literal["echo", "each-once", "to-all"]


@dataclass(frozen=True, slots=True)
class Seat:
    """One process of a run: its role, and its index among the seats of that role."""

    role: Role
    index: int


@dataclass(frozen=True, slots=True)
class Topology:
    """The shape of a run. ``sharing``: receivers compete, none knows how many it will get."""

    name: str
    senders: int
    receivers: int
    delivery: Delivery

    @property
    def sharing(self) -> bool:
        return self.delivery == "each-once" and self.receivers > 1

    @property
    def measures_latency(self) -> bool:
        return self.delivery == "echo"

    def seats(self) -> tuple[Seat, ...]:
        """The processes in starting order; number i runs on core i modulo the cores."""
        if self.measures_latency:
            return (Seat("initiator", 0), Seat("responder", 0))
        senders = tuple(Seat("sender", index) for index in range(self.senders))
        return senders + tuple(Seat("receiver", index) for index in range(self.receivers))
