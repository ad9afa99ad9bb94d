"""The files of those who wait to take over: a broker may have any name."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.netbridge.broker import standby

URI = "tcp://two:61616"


@pytest.mark.parametrize("name", ["two", "rack 1/two", "../node", ".two", "ö" * 127])
def test_who_waits_is_told_by_whatever_name(tmp_path: Path, name: str) -> None:
    standby.write(tmp_path, name, 3, URI, is_original=True)
    assert standby.read(tmp_path, 3) == standby.read(tmp_path, 3, originals=True) == (URI,)
    assert [each.name for each in tmp_path.iterdir()] == [standby.FOLDER]
    standby.remove(tmp_path, name)
    assert standby.read(tmp_path, 3) == ()
