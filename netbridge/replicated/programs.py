"""What programs on other hosts are told of this node: by a live its backups, by others the live."""

from __future__ import annotations

from shmbroker.netbridge.broker.group import OfMembers
from shmbroker.netbridge.broker.owner import Owner
from shmbroker.netbridge.member.standing import ENDING, SERVING, State
from shmbroker.netbridge.replicated.acting import Acting


class Programs:
    """Of the network thread."""

    def __init__(self, owner: Owner, group: OfMembers) -> None:
        self._owner, self._group = owner, group
        self._said: tuple[bytes, int, str] | None = None

    def changed(self, acting: Acting) -> None:
        machine = acting.machine
        if machine.state in SERVING:
            self._said = None
            uris = (acting.uris.get(member, "") for member in machine.backups)
            self._group.backups_are(tuple(filter(None, uris)))
        elif acting.is_passive and machine.state not in ENDING | {State.BEGINNING}:
            self._waits(acting)

    def _waits(self, acting: Acting) -> None:
        machine = acting.machine
        lives = [(told.epoch, name) for name, told in machine.peers.items() if told.serves]
        epoch, live = max(lives, default=(machine.epoch, ""))
        said = machine.node, epoch, acting.uris.get(live, "")
        if said != self._said:
            self._said = said
            self._group.live_is(said[2])
            self._owner.waits(machine.node or bytes(16), epoch)
