"""Brokers that find each other: as processes, on one host or on hosts of their own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shmbroker.ipc.instance import reloading
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.ipc.instance.watch import Watch
from shmbroker.perf.machine.port import free_port
from tests.netbridge.clustered.conftest import PATIENCE, Cluster
from tests.support.runs import Run

PROGRAMS = "staple battery horse correct"


@dataclass
class Finding(Cluster):
    """All of them find each other by these means."""

    means: dict[str, object] = field(default_factory=dict)

    def add(self, name: str, role: str = "live", *, shares: str = "", **more: object) -> Run:
        given: dict[str, object] = {
            "cluster__town__static-connectors": None,
            "cluster__town__discovery-group": "lan",
            "broadcast__lan__connector": name,
            "broadcast__lan__broadcast-period": "200ms",
            "discovery__lan__refresh-timeout": "1s",
        }
        for root in ("broadcast", "discovery"):
            given |= {f"{root}__lan__{key}": value for key, value in self.means.items()}
        return super().add(name, role, shares=shares, **(given | more))


@dataclass
class Lan:
    """Of a cluster whose members have no static connectors."""

    cluster: Finding
    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def registry(self) -> dict[str, object]:
        self.folder.mkdir(exist_ok=True)
        return {"type": "registry", "registry": str(self.folder)}

    def udp(self, interface: str = "127.0.0.1") -> dict[str, object]:
        return {
            "group-address": "231.7.7.7",
            "group-port": self.port,
            "local-bind-address": interface,
        }

    def add(
        self, name: str, means: dict[str, object], role: str = "live", *, shares: str = "",
        **more: object,
    ) -> Run:  # fmt: skip
        self.cluster.means = means
        return self.cluster.add(name, role, shares=shares, **more)

    def discovered(self, name: str) -> dict[str, Any]:
        assert self.cluster.order(name, verb="show") == ""
        told = self.cluster.until(name, lambda told: "discovery" in told)
        found: dict[str, Any] = told["discovery"]
        return found

    def finds(self, name: str, standings: dict[str, str]) -> dict[str, Any]:
        """What this one shows, once these are found and no others; each change is logged."""
        watch = Watch(self.cluster[name].folder / "log")
        late = time.monotonic() + PATIENCE
        try:
            while True:
                told = self.discovered(name)
                if {each["name"]: each["standing"] for each in told["entries"]} == standings:
                    return told
                assert time.monotonic() < late, f"{told}\n{self.cluster.story()}"
                watch.wait(late - time.monotonic())
        finally:
            watch.close()

    def logs(self, name: str, state: str, times: int = 1) -> None:
        """Waits until discovery has said so."""
        watch = Watch(self.cluster[name].folder / "log")
        late = time.monotonic() + PATIENCE
        try:
            while len(self.lines(name, state)) < times:
                assert time.monotonic() < late, self.cluster.story()
                watch.wait(late - time.monotonic())
        finally:
            watch.close()

    def lines(self, name: str, state: str) -> list[dict[str, Any]]:
        return [
            line
            for line in self.cluster[name].said()
            if line["event"] == "discovery" and line["state"] == state
        ]

    def reloads(self, name: str, old: str, new: str) -> list[str]:
        """What was applied."""
        folder = self.cluster[name].folder
        text = (folder / FILE).read_text()
        assert old in text
        (folder / FILE).write_text(text.replace(old, new))
        answer = reloading.asked(folder, PATIENCE)
        assert answer is not None
        applied: list[str] = answer["applied"]
        return applied


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    with ExitStack() as opened:
        yield Lan(Finding(tmp_path, opened, looks_for=()), tmp_path / "registry")
