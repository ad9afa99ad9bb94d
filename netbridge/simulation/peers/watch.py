"""What must be true of links, whatever is shipped by them."""

from __future__ import annotations

from typing import Final

from shmbroker.netbridge.link.action import Line
from shmbroker.netbridge.link.ending import Reason
from shmbroker.netbridge.simulation.history import OF_A_FAULT
from shmbroker.netbridge.simulation.peers.message import Message
from shmbroker.netbridge.simulation.world import Wrong

EXPECTED: Final = OF_A_FAULT | {
    Reason.STOPPED, Reason.PEER_CLOSING, Reason.PENDING_ACK_TIMEOUT, Reason.HANDSHAKE_TIMEOUT,
    Reason.BUSY, Reason.EPOCH,
}  # fmt: skip
"""A takeover between two frames of a handshake is another epoch."""


class Watch:
    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.has_fault_of_frames = False
        self.is_calm = False
        """Nothing happens to links any more."""

    def ended(self, now: float, reason: Reason) -> None:
        is_of_frames = reason is Reason.FRAMES_MISSING and self.has_fault_of_frames
        if reason not in EXPECTED and not is_of_frames:
            raise Wrong(f"a link ended for {reason.value}")
        if self.is_calm and reason is not Reason.HANDSHAKE_TIMEOUT:  # of one that nobody has long
            raise Wrong(f"a link that nothing happens to has ended: {reason.value}")

    def knew(self, name: str, message: Message) -> None:
        raise Wrong(f"{message.number} came to {name}, which knew it")

    def looks(self) -> None:
        if self.lines:
            raise Wrong(f"a mark is not where it was left: {self.lines[0].detail}")
