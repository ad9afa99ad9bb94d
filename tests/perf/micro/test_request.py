"""perf.request, made short: requests are answered in Python and in C."""

from __future__ import annotations

import pytest

from shmbroker.perf.micro import request


def test_both_kinds_in_both_languages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(request, "ROUNDS", 1)
    monkeypatch.setattr(request, "TRIPS", 50)
    monkeypatch.setattr(request, "pin", lambda number: None)
    assert request.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:17].strip() for line in lines] == [
        "request, Python", "messages, Python", "request, C", "messages, C",
    ]  # fmt: skip
