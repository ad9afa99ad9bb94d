"""The log of an instance."""

from __future__ import annotations

import os
from pathlib import Path

from shmbroker.ipc.instance.log import Log
from tests.support.log_lines import log_lines


def test_a_name_that_is_no_utf_8_is_written_as_json_has_it(tmp_path: Path) -> None:
    place = os.fsdecode(b"/srv/\xff")
    log = Log(tmp_path / "log", "café")
    log.write("warning", why=f"{place} is not written")
    log.write("stopped")
    assert [each["event"] for each in log_lines(tmp_path / "log")] == ["warning", "stopped"]
    assert log_lines(tmp_path / "log")[0]["why"] == f"{place} is not written"
    assert "café" in (tmp_path / "log").read_text(encoding="utf-8")
