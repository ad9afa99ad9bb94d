"""The short form of `make upgrade`: the version before differs by its number only."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import vhost_for_a_while
from tests.upgrade.installation import HERE, renumbered
from tests.upgrade.rolling import Rolling


def test_a_rolling_upgrade_under_load_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    old = renumbered(tmp_path / "old", "0.0.9")
    with vhost_for_a_while() as vhost:
        rolling = Rolling(tmp_path, vhost, old, HERE)
        try:
            report = rolling.run(compares=False)
        finally:
            rolling.close()
    assert report.published > 0
    assert not report.lost
    assert not report.twice
    assert "0.0.9" in report.versions[0]
    assert "0.0.9" not in report.versions[1]
