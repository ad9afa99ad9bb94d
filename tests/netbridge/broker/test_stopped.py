"""A link that was stopped stays so while its broker serves, and no longer."""

from __future__ import annotations

from pathlib import Path

from shmbroker import vhost
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.log import Log
from shmbroker.netbridge.broker.owner import Owner
from shmbroker.netbridge.broker.table import read
from shmbroker.netbridge.config.config import load
from shmbroker.netbridge.config.logins import credentials
from shmbroker.perf.machine.port import free_port
from tests.cli.command import eventually
from tests.conftest import vhost_for_a_while
from tests.netbridge.broker.conftest import PASSWORD

NODE = bytes(range(16))
ARENA_BYTES = 16 << 20


def test_whoever_serves_again_makes_the_links_that_were_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    with vhost_for_a_while() as name:
        create(folder, {
            "instance.name": "first", "instance.vhost": name, "ha.role": "live",
            "links.fetch.uri": f"tcp://127.0.0.1:{free_port()}",
            "credentials.site.password": PASSWORD, "credentials.site.role": "peering",
        })  # fmt: skip
        vhost.create(name, arena_bytes=ARENA_BYTES)
        config, network = load(folder)
        known, _ = credentials(network)
        owner = Owner(config, network, known, Log(config.log, config.name))
        try:
            owner.begin(NODE, 2)
            owner.settles()
            owner.order({"verb": "stop", "name": "fetch"})
            eventually(lambda: state(name) == "stopped")
            owner.begin(NODE, 2)
            owner.settles()
            assert state(name) == "stopped", "it serves still"
            owner.end(at_once=True)  # another one takes over, and gives the role back
            owner.begin(NODE, 4)
            owner.settles()
            assert state(name) not in ("", "stopped")
        finally:
            owner.end(at_once=True)


def state(vhost_name: str) -> str:
    table = read(vhost_name)
    assert table is not None
    [row] = table.rows
    return str(row.text["state"])
