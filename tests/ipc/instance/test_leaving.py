"""What a broker that has given away all begins with when it is live again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker.ipc.base.errors import Replaced
from shmbroker.ipc.instance import leaving
from shmbroker.ipc.instance.live import Live
from shmbroker.ipc.instance.lock.record import SCALED_DOWN, Record


def test_whoever_is_live_no_more_empties_nothing(vhost: str, tmp_path: Path) -> None:
    """It stood still meanwhile: what is there is its successor's."""
    files = [tmp_path / "journal" / "1", tmp_path / "pages" / "1"]
    for each in files:
        each.parent.mkdir()
        each.touch()
    store = SimpleNamespace(
        check_place=lambda fence: None, journal=files[0].parent, pages=files[1].parent
    )
    lock = SimpleNamespace(fence=0, is_held=False, record=lambda: Record(1, SCALED_DOWN))
    live: Any = SimpleNamespace(store=store, lock=lock, config=SimpleNamespace(vhost=vhost))
    with pytest.raises(Replaced):
        Live._take_over(live)
    assert all(each.exists() for each in files)


def test_what_is_removed_is_removed_for_good_before_anybody_is_live(
    vhost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power loss what came back would be doubled: it was moved to another node."""
    gone = tmp_path / "journal" / "1"
    gone.parent.mkdir()
    gone.touch()
    synced: list[tuple[Path, bool]] = []
    monkeypatch.setattr(leaving, "sync_folder", lambda at: synced.append((at, gone.exists())))
    store: Any = SimpleNamespace(journal=gone.parent, pages=tmp_path / "pages")
    lock: Any = SimpleNamespace(is_held=True)
    leaving.empty(store, f"{vhost}-other", lock)
    assert synced == [(gone.parent, False)]
