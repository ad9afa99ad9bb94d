"""Each cell of the table of states: a broker, and what its peer says (a peer of the test)."""

from __future__ import annotations

from collections.abc import Callable

from shmbroker.netbridge.pair.told import State
from tests.netbridge.paired.conftest import Puppet, reasons, waits

PENDING, ACTIVE, PASSIVE, CONFLICT = State.PENDING, State.ACTIVE, State.PASSIVE, State.CONFLICT
MadePuppet = Callable[[str], Puppet]


def test_a_primary_whose_peer_starts(puppet: MadePuppet) -> None:
    peer = puppet("one")
    peer.sees((PENDING, ACTIVE), (PASSIVE, ACTIVE), (PENDING, ACTIVE), (ACTIVE, CONFLICT))
    assert [why for _, why in reasons(peer.run)] == ["started", "peer pending", "both were active"]


def test_a_primary_whose_peer_serves(puppet: MadePuppet) -> None:
    peer = puppet("one")
    peer.run.kill()
    peer.says(PASSIVE)
    peer.run.start()
    waits(peer.run, pair="pending", peer="passive")
    peer.sees((ACTIVE, PASSIVE), (PASSIVE, ACTIVE))
    assert reasons(peer.run)[-1] == ("active", "peer passive")
    peer.run.kill()
    peer.says(ACTIVE)
    peer.run.start()
    waits(peer.run, pair="passive", peer="active")
    peer.sees((PENDING, ACTIVE))


def test_a_backup(puppet: MadePuppet) -> None:
    peer = puppet("two")
    peer.sees(
        (PENDING, PENDING), (PASSIVE, PENDING),
        (ACTIVE, PASSIVE), (PASSIVE, PASSIVE), (ACTIVE, PASSIVE), (PENDING, ACTIVE),
        (PASSIVE, ACTIVE), (PENDING, ACTIVE), (ACTIVE, CONFLICT),
    )  # fmt: skip
    assert [state for state, _ in reasons(peer.run)] == ["pending", "passive", "active", "conflict"]
