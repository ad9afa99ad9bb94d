"""What a member's store says of itself, whatever moment its process dies in."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker.ipc.base.errors import JournalDamaged
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.replicated import store as module
from shmbroker.netbridge.replicated.store import Store


class Killed(BaseException):
    pass


def test_who_dies_while_its_journal_is_set_aside_is_no_new_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would begin a node of its own, without what its partner has."""
    config: Any = SimpleNamespace(
        store=tmp_path / "data", vhost="no-such-vhost", journal=None, pages=None
    )

    def damaged(store: Store) -> None:
        raise JournalDamaged("a journal")

    def dies(path: Path) -> None:
        raise Killed

    monkeypatch.setattr(Store, "warm", damaged)
    monkeypatch.setattr(module, "set_aside", dies)
    store = Store(config, ReplicationTerms())
    assert store.marks.is_whole
    with pytest.raises(Killed):
        store.opened()
    store.close()
    again = Store(config, ReplicationTerms())
    assert not again.marks.is_whole
    again.close()
