"""The queues that a configuration lists."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import shmbroker
from shmbroker.ipc.instance import listed
from shmbroker.ipc.instance.config.config import configured
from shmbroker.ipc.instance.log import Log


def test_one_that_cannot_be_made_stops_no_other(vhost: str, tmp_path: Path) -> None:
    config = replace(
        configured(tmp_path, {"instance.vhost": vhost}), queues=("pages", "orders")
    )
    with shmbroker.connect(f"shm://{vhost}", create=True) as broker:
        broker.settings("pages", when_full="page")  # which needs a broker that has a store
        listed._make(config, Log(tmp_path / "log", "a"))
        assert [each.name for each in broker.queues()] == ["orders"]
    warning, made = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert "'pages'" in warning["why"]
    assert made["queue"] == "orders"
