"""The registry finds the peers; the command knows them."""

import pytest

from shmbroker.perf.harness.registry import registry
from shmbroker.perf.scenarios.topologies.__main__ import main


def test_the_peers_and_the_limits_are_found() -> None:
    assert registry().keys() >= {
        "raw-cacheline",
        "raw-memcpy",
        "mp-pipe",
        "mp-queue",
        "pyzmq",
        "pyzmq-tcp",
        "faster-fifo",
        "cloudtoid",
        "iceoryx2",
    }


def test_a_mistyped_name_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--topology", "pingpong"]) == 2
    assert "did you mean 'ping-pong'" in capsys.readouterr().err


def test_the_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert listed.keys() == registry().keys()
    assert "durable: disk" in listed["redis"]
    assert "durable: none" in listed["cloudtoid"]
