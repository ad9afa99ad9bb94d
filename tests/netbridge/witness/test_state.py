"""The ledgers of a witness on disk: nothing that was kept is forgotten, however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.ipc.base.errors import InUse
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Ballot, Copy, Grant
from shmbroker.netbridge.witness import state
from shmbroker.netbridge.witness.state import FILE, State, StateDamaged

NODE, OTHER = b"N" * 16, b"O" * 16
IDENTITY = b"W" * 16


def ledger(epoch: int, holder: str = "a") -> Ledger:
    grant = Grant(epoch, holder, (Copy(holder), Copy("b", "boot 1")))
    ballot = Ballot(epoch, f"{holder} life")
    return Ledger(grant, epoch, (epoch, ballot), (ballot, grant), 600)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[State]:
    with State(tmp_path, IDENTITY) as opened:
        yield opened


def test_what_was_kept_is_there_again(tmp_path: Path) -> None:
    with State(tmp_path, IDENTITY) as first:
        first.keep([(NODE, ledger(1))])
        first.keep([(NODE, ledger(2)), (OTHER, ledger(5, "c"))])
    with State(tmp_path, b"another id of it") as second:
        assert second.identity == IDENTITY
        assert second.ledgers == {NODE: ledger(2), OTHER: ledger(5, "c")}


def test_what_was_kept_can_be_read_while_the_witness_runs(made: State, tmp_path: Path) -> None:
    made.keep([(NODE, ledger(3))])
    assert state.read(tmp_path) == (IDENTITY, {NODE: ledger(3)})


def test_a_record_without_its_end_is_left_out(tmp_path: Path) -> None:
    """As if the power had failed while it was written, at every byte."""
    with State(tmp_path, IDENTITY) as opened:
        opened.keep([(NODE, ledger(1))])
        before = len((tmp_path / FILE).read_bytes().rstrip(b"\0"))
        opened.keep([(NODE, ledger(2))])
    whole = (tmp_path / FILE).read_bytes()
    end = len(whole.rstrip(b"\0"))
    for cut in range(before, end):
        (tmp_path / FILE).write_bytes(whole[:cut].ljust(len(whole), b"\0"))
        assert state.read(tmp_path)[1] == {NODE: ledger(1)}
        damaged = whole[:cut] + bytes([whole[cut] ^ 0x55]) + whole[cut + 1 :]
        (tmp_path / FILE).write_bytes(damaged)
        assert state.read(tmp_path)[1] == {NODE: ledger(1)}
    with State(tmp_path, IDENTITY) as again:
        again.keep([(NODE, ledger(3))])
    assert state.read(tmp_path)[1] == {NODE: ledger(3)}


def test_damage_before_what_was_kept_later_is_refused(tmp_path: Path) -> None:
    with State(tmp_path, IDENTITY) as opened:
        opened.keep([(NODE, ledger(1))])
        middle = len((tmp_path / FILE).read_bytes().rstrip(b"\0")) - 20
        opened.keep([(NODE, ledger(2))])
    whole = bytearray((tmp_path / FILE).read_bytes())
    whole[middle] ^= 1
    (tmp_path / FILE).write_bytes(whole)
    with pytest.raises(StateDamaged, match="could grant an epoch twice"):
        State(tmp_path, IDENTITY)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"something else" * 100)
    (tmp_path / FILE).chmod(0o600)
    with pytest.raises(StateDamaged, match="is no state of a witness"):
        State(tmp_path, IDENTITY)


def test_a_full_file_is_replaced(made: State, tmp_path: Path) -> None:
    size = (tmp_path / FILE).stat().st_size
    with (tmp_path / FILE).open() as first:  # so that nobody else gets its inode
        for epoch in range(1, 300):
            made._size = min(made._size, 5_000)  # so that it is full sooner
            made.keep([(NODE, ledger(epoch))])
        assert not os.path.samestat(os.fstat(first.fileno()), (tmp_path / FILE).stat())
    assert state.read(tmp_path) == (IDENTITY, {NODE: ledger(299)})
    assert (tmp_path / FILE).stat().st_size <= 2 * size


def test_two_witnesses_with_one_state_are_refused(made: State, tmp_path: Path) -> None:
    with pytest.raises(InUse, match="is the state of a witness that runs"):
        State(tmp_path, IDENTITY)
    assert state.runs(tmp_path)
    made.close()
    assert state.runs(tmp_path) is None


def test_a_disk_that_fails_is_an_error(made: State) -> None:
    os.close(made._file)
    with pytest.raises(OSError, match="Bad file"):
        made.keep([(NODE, ledger(1))])
    made._file = -1
