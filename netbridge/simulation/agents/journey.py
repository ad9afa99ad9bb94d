"""Where a message of an agent was, and where it may go: a model of `ipc/sink/journey.c`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shmbroker.netbridge.agent.option import HOPS_MAX
from shmbroker.netbridge.simulation.peers.message import Message


@dataclass(frozen=True, slots=True)
class Journey:
    """Of a message that has come to `here`, from the agent's link with `sender`."""

    here: str
    sender: str
    message: Message

    @property
    def was_here(self) -> bool:
        been = self.message.visited
        if self.message.comes_back and been == (self.here,):
            return False  # it was published here, and nobody here has it
        return self.here in (*been, self.sender)

    @property
    def hops(self) -> int:
        return len(self.message.visited) + 1

    def goes_on(self, hops_max: int) -> bool:
        return self.hops < hops_max and self.hops <= HOPS_MAX

    def onward(self, *, to_subscriber: bool) -> Message:
        been = (*self.message.visited, self.sender)
        comes_back = to_subscriber and self.message.comes_back and self.hops == 1
        is_mandatory = self.message.is_mandatory and not to_subscriber
        return replace(
            self.message, visited=been, comes_back=comes_back, is_mandatory=is_mandatory
        )
