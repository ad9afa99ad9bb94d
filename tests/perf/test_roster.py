"""The roster finds the peers; the command knows them."""

import pytest

from shmbroker.perf.__main__ import main
from shmbroker.perf.roster import roster


def test_the_peers_and_the_limits_are_found() -> None:
    assert roster().keys() >= {
        "raw-cacheline",
        "raw-memcpy",
        "mp-pipe",
        "mp-queue",
        "pyzmq",
        "faster-fifo",
        "cloudtoid",
        "iceoryx2",
    }


def test_a_mistyped_name_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--topology", "pingpong"])
    assert "did you mean 'ping-pong'" in capsys.readouterr().err


def test_the_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "cloudtoid" in capsys.readouterr().out
