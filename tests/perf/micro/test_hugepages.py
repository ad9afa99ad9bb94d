"""perf.hugepages, made short: each /dev/shm has the backlog, and both are told of."""

from __future__ import annotations

import os

import pytest

from shmbroker.perf.micro import hugepages


def test_a_short_one(capsys: pytest.CaptureFixture[str]) -> None:
    code = hugepages.main(["--rounds", "1", "--messages", "3000", "--size", "100"])
    said = capsys.readouterr()
    if os.geteuid() != 0:
        assert code == 1
        assert "run it as root" in said.err
        return
    lines = said.out.splitlines()
    assert lines[0] == "2,048 messages of 100 B; ns a message"
    assert [line[:22].strip() for line in lines[2:-1]] == list(hugepages.LAPS)
    assert float(lines[-1].split()[-2]) == 0
