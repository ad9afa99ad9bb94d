"""Two brokers as processes, with a bridge from one to the other in their configuration."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.instance import reloading
from shmbroker.ipc.instance.config.config import FILE, toml_of
from shmbroker.netbridge.broker.table import read
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.support.link import PATIENCE, SOURCE, TARGET
from tests.support.runs import Run

PASSWORD = "correct horse battery staple"
SITE: dict[str, object] = {
    "credentials.site.password": PASSWORD,
    "credentials.site.role": "peering",
}
TIMES = {"heartbeat-interval": "10s", "connect-timeout": "60s", "handshake-timeout": "60s"}
"""No link is lost, or given up, on a busy machine."""
PATIENT = "&".join(f"{key}={each}" for key, each in TIMES.items())
BEATS = {"link-defaults.heartbeat-interval": "2s"}
"""With less a machine with other work has broken off a link by itself."""


@dataclass
class Two:
    """`near` ships its outbox to the inbox of `far`."""

    near: Run
    far: Run
    near_vhost: str
    far_vhost: str
    port: int
    opened: ExitStack

    def connected(self, end: str) -> Broker:
        vhost = self.near_vhost if end == "near" else self.far_vhost
        return self.opened.enter_context(shmbroker.connect(f"shm://{vhost}", name="test"))

    def started(self) -> tuple[Broker, Broker]:
        for each in (self.far, self.near):
            each.start().becomes("live")
        near, far = self.connected("near"), self.connected("far")
        far.declare_queue(TARGET, slots=4096)
        near.declare_queue(SOURCE, slots=4096)
        return near, far

    def link(self, name: str = "to-far") -> dict[str, Any]:
        """Its row; of one that is not there yet the state is empty."""
        table = read(self.near_vhost)
        rows = table.rows if table is not None else ()
        found = next((each for each in rows if each.text["name"] == name), None)
        return {"state": "", "reason": "", **(found.text | found.counters if found else {})}

    def becomes(self, state: str, name: str = "to-far") -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = self.link(name)
            if found["state"] == state:
                return found
            time.sleep(0.01)
        raise AssertionError(f"{name} is {self.link(name)}: {self.near.said()[-5:]}")

    def write(self, run: Run, **changed: object) -> None:
        """Its configuration; what is None goes."""
        given = self.given[run.folder]
        given |= {key.replace("__", ".").replace("_", "-"): each for key, each in changed.items()}
        kept = {key: each for key, each in given.items() if each is not None}
        (run.folder / FILE).write_text(toml_of(kept))

    @property
    def given(self) -> dict[Path, dict[str, object]]:
        return self._given

    def reload(self, run: Run) -> dict[str, Any]:
        answer = reloading.asked(run.folder, PATIENCE)
        assert answer is not None
        assert "why" not in answer, answer
        return answer

    def lines(self, run: Run, event: str) -> list[dict[str, Any]]:
        return [each for each in run.said() if each["event"] == event]

    def __post_init__(self) -> None:
        self._given = {
            each.folder: json.loads((each.folder / "given.json").read_text())
            for each in (self.near, self.far)
        }


def made(folder: Path, vhost: str, given: dict[str, object]) -> Run:
    run = Run(folder, vhost, "live", {"store.path": str(folder / "store"), **given})
    whole = {
        "instance.name": folder.name, "instance.vhost": vhost, "instance.arena": "64MiB",
        "store.path": str(folder / "store"), "store.segment": "1MiB", "ha.role": "live", **given,
    }  # fmt: skip
    (folder / "given.json").write_text(json.dumps(whole))
    return run


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    with ExitStack() as opened:
        near, far = (opened.enter_context(vhost_for_a_while()) for _ in range(2))
        port = free_port()
        listening: dict[str, object] = {
            "acceptors.site.uri": f"tcp://127.0.0.1:{port}",
            "acceptors.site.roles": ["peering"],
            **BEATS,
            **SITE,
        }
        shipping: dict[str, object] = {
            "bridges.to-far.queue": SOURCE,
            "bridges.to-far.to": f"tcp://127.0.0.1:{port}",
            "bridges.to-far.forwarding-address": TARGET,
            "bridges.to-far.retry-interval": "50ms",
            "bridges.to-far.pending-ack-timeout": "5s",
            **BEATS,
            **SITE,
        }
        runs = [
            made(tmp_path / "near", near, shipping),
            made(tmp_path / "far", far, listening),
        ]
        for each in runs:
            opened.callback(each.kill)
        yield Two(*runs, near, far, port, opened)


def hup(run: Run) -> None:
    assert run.process is not None
    run.process.send(signal.SIGHUP)
