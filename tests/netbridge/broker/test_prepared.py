"""The network of a broker that is about to be live takes part in its vhost, and lets nobody in."""

from __future__ import annotations

from pathlib import Path

import pytest

import shmbroker
from shmbroker import ConnectionClosed, vhost
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.log import Log
from shmbroker.netbridge.broker.owner import Owner
from shmbroker.netbridge.config.config import load
from shmbroker.netbridge.config.logins import credentials
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.netbridge.broker.conftest import PASSWORD

NODE = bytes(range(16))
ARENA_BYTES = 16 << 20


def test_who_comes_before_a_broker_serves_finds_nobody(tmp_path: Path) -> None:
    port, folder = free_port(), tmp_path / "first"
    uri = f"tcp://127.0.0.1:{port}"
    with vhost_for_a_while() as name:
        create(folder, {
            "instance.name": "first", "instance.vhost": name, "ha.role": "live",
            "acceptors.site.uri": uri, "acceptors.site.roles": ["client"],
            "credentials.site.password": PASSWORD, "credentials.site.role": "client",
        })  # fmt: skip
        vhost.create(name, arena_bytes=ARENA_BYTES)
        config, network = load(folder)
        known, _ = credentials(network)
        owner = Owner(config, network, known, Log(config.log, config.name))
        try:
            owner.prepare(NODE, 2)
            owner.settles()
            assert participants(name) == ["network of first"]
            with pytest.raises(ConnectionClosed):
                shmbroker.connect(uri, user="site", password=PASSWORD)
            owner.begin(NODE, 2)
            owner.settles()
            assert participants(name) == ["network of first"], "the same"
            shmbroker.connect(uri, user="site", password=PASSWORD).close()
        finally:
            owner.end(at_once=True)


def participants(name: str) -> list[str]:
    with shmbroker.connect(f"shm://{name}", name="looks") as broker:
        return [each.name for each in broker.participants() if each.name != "looks"]
