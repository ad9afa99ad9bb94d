"""perf.client and perf.child: what keeps a benchmark from hanging, or from measuring another."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shmbroker.perf.machine import client
from shmbroker.perf.machine.child import ChildFailed, child


def test_another_header_is_another_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    package = tmp_path / "shmbroker"
    shutil.copytree(client._PACKAGE / "include", package / "include")
    shutil.copytree(client._PACKAGE / "lib", package / "lib")
    before = client.compiled_client("request.c")
    assert client.compiled_client("request.c") == before
    monkeypatch.setattr(client, "_PACKAGE", package)
    with (package / "include" / "shmbroker.h").open("a") as header:
        header.write("/* another layout */\n")
    assert client.compiled_client("request.c") != before


def test_the_failure_of_the_child_is_ours(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise ValueError("no such thing")

    with pytest.raises(ChildFailed, match="with 1"), child(fail):
        pass
    assert "ValueError: no such thing" in capfd.readouterr().err


def test_a_child_that_ends_well_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with child(lambda: None):
        pass
    assert capfd.readouterr().err == ""
