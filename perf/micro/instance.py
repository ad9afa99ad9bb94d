"""A broker as it runs anywhere, with its folder, for a benchmark of several."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from shmbroker import Broker, connect
from shmbroker.ipc.instance import ordering, status
from shmbroker.ipc.instance.creation import create
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.machine.workspace import unique_token

PATIENCE_S: Final = 120.0


class Broken(Exception):
    """A broker does not do what it is told."""


class Instance:
    def __init__(self, folder: Path, name: str, **given: object) -> None:
        """`given`: settings, with `__` for a dot and `_` for a dash."""
        self.name = name
        self.folder, self.vhost = folder / name, unique_token(name)
        self.port = free_port()
        self._given: dict[str, object] = {
            "instance.name": name,
            "instance.vhost": self.vhost,
            "store.path": str(folder / f"store of {name}"),
            **{key.replace("__", ".").replace("_", "-"): each for key, each in given.items()},
        }

    def create(self, more: Mapping[str, object]) -> None:
        """`more`: what needs its port, or those of others."""
        create(self.folder, {**self._given, **more})

    @contextmanager
    def runs(self) -> Iterator[Program]:
        script = str(Path(sys.executable).with_name("shmbroker"))
        with Program([script, "run", str(self.folder)], self.folder / "said") as program:
            if not status.wait_for(self.folder, "live", PATIENCE_S):
                program.check()
                raise Broken(f"{self.name} does not become live: {status.read(self.folder)}")
            yield program

    @contextmanager
    def connected(self) -> Iterator[Broker]:
        with connect(f"shm://{self.vhost}") as broker:
            yield broker

    def order(self, noun: str, verb: str, **given: object) -> None:
        wanted = {"noun": noun, "verb": verb, "user": "bench", **given}
        answer = ordering.asked(self.folder, wanted, PATIENCE_S)
        if answer is None or answer.get("why"):
            raise Broken(f"{verb} {given}: {answer}")
