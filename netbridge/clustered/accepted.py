"""Links that other members of a cluster have made; they ask for our vote over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.wire.frame import Frame
from shmbroker.netbridge.wire.words import FORWARDING_LINK

if TYPE_CHECKING:
    from shmbroker.netbridge.clustered.members import Members


class Accepted:
    def __init__(self, members: Members) -> None:
        self._members = members

    def came(self, end: End) -> None:
        if not end.machine.handshake.link.startswith(FORWARDING_LINK):
            self._members.accepted(end)

    def heard(self, end: End, frame: Frame) -> None:
        self._members.heard(end, frame)

    def gone(self, end: End) -> None:
        self._members.gone(end)
