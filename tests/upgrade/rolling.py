"""A rolling upgrade of a live and its backup, under load, each message accounted for.

old publisher ─┐                        ┌─► old consumer
new publisher ─┴─► vhost (live, backup) ┴─► new consumer

the backup is stopped, and started as the new version
the live hands over, and is started as the new version: failback
and for comparison: the new live is killed, comes back: failback
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import shmbroker
from shmbroker.ipc.instance import status
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.perf.machine.port import free_port
from tests.upgrade.installation import Installation

PATIENCE_S = 120
NAMES = ("one", "two")

PUBLISH = """
import json, select, sys, time, shmbroker
uri, options, name, file = sys.argv[1:]
stops, number = [], 0
with shmbroker.connect(uri, name="publisher " + name, **json.loads(options)) as broker:
    queue = broker.queue("orders")
    while not select.select([0], [], [], 0)[0]:
        began, body = time.monotonic(), f"{name} {number}".encode()
        while True:
            try:
                queue.publish(body, message_id=body, timeout=60)
                break
            except shmbroker.Unconfirmed:
                continue
        ended = time.monotonic()
        number += 1
        if ended - began > 0.002:
            stops.append((ended, ended - began))
json.dump({"count": number, "stops": stops}, open(file, "w"))
"""
CONSUME = """
import json, select, sys, shmbroker
uri, options, name, file = sys.argv[1:]
found = []
with shmbroker.connect(uri, name="consumer " + name, **json.loads(options)) as broker:
    queue = broker.queue("orders")
    while True:
        is_over = bool(select.select([0], [], [], 0)[0])
        try:
            message = queue.get(timeout=0.5)
            found.append((bytes(message.body).decode(), message.redelivered))
            message.ack()
        except shmbroker.Empty:
            if is_over:
                break
        except (shmbroker.Unconfirmed, shmbroker.DeliveryRevoked):
            pass  # it comes again, flagged, or not
json.dump(found, open(file, "w"))
"""
PASSWORD = "a password for this test"


@dataclass
class Report:
    stops: dict[str, float] = field(default_factory=dict)
    """The longest wait for a confirm in each step, in seconds."""
    published: int = 0
    consumed: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    """And not flagged as delivered before."""
    versions: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return [
            f"from {self.versions[0]} to {self.versions[1]}: {self.published} published and "
            f"confirmed, {self.consumed} consumed, {len(self.lost)} lost, {len(self.twice)} twice",
            *(f"{1000 * stop:8.1f} ms  {step}" for step, stop in self.stops.items()),
        ]


class Rolling:
    """Of two that share a store, on one host."""

    options: ClassVar[dict[str, Any]] = {}
    """With which programs connect."""

    def __init__(self, folder: Path, vhost: str, old: Installation, new: Installation) -> None:
        self.folder, self.vhost, self.old, self.new = folder, vhost, old, new
        self.uri = f"shm://{vhost}"
        self._brokers: dict[str, subprocess.Popen[bytes]] = {}
        self._clients: dict[Path, subprocess.Popen[bytes]] = {}
        self._steps: list[tuple[str, float]] = []

    # --- brokers ----------------------------------------------------------------------------------

    def create(self) -> None:
        for name, role in (("one", "live"), ("two", "backup")):
            self.old.does(
                "create", name, "--vhost", self.vhost, "--store", "store", "--role", role,
                "--set", "store.segment=4MiB", "--set", "ha.failover-on-shutdown=true",
                "--set", "instance.arena=64MiB", cwd=self.folder,
            )  # fmt: skip

    def start(self, name: str, by: Installation, state: str) -> None:
        with (self.folder / f"{name}.output").open("ab") as output:
            self._brokers[name] = by.starts(
                "run", name, cwd=self.folder, stdout=output, stderr=output
            )
        self.becomes(name, state)

    def becomes(self, name: str, state: str) -> None:
        assert status.wait_for(self.folder / name, state, PATIENCE_S), self.said(name)

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.output").read_text() + str(status.read(self.folder / name))

    def is_ready(self, name: str) -> None:
        """It can take over."""
        until = time.monotonic() + PATIENCE_S
        while not status.read(self.folder / name).is_announced:
            assert time.monotonic() < until, f"{name} is not announced"
            time.sleep(0.01)

    def stop(self, name: str, verb: str = "stop") -> None:
        self.new.does(verb, name, cwd=self.folder)
        self._brokers.pop(name).wait(60)

    def declare(self) -> None:
        with shmbroker.connect(self.uri, **self.options) as broker:
            broker.declare_queue("orders", durable=True, duplicate_ids=1 << 14)

    # --- programs ---------------------------------------------------------------------------------

    def program(self, kind: str, program: str, by: Installation, name: str) -> None:
        file = self.folder / f"{kind}-{name}.json"
        self._clients[file] = by.python(
            program,
            self.uri,
            json.dumps(self.options),
            name,
            str(file),
            cwd=self.folder,
            stdin=subprocess.PIPE,
        )

    def ended(self, kind: str) -> list[Path]:
        files = [each for each in self._clients if each.name.startswith(kind)]
        for file in files:
            process = self._clients.pop(file)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(120) == 0
        return files

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._steps.append((name, time.monotonic()))
        yield

    # --- the story --------------------------------------------------------------------------------

    def run(self, *, compares: bool) -> Report:
        """`compares`: with a failover afterwards."""
        self.create()
        self.start("one", self.old, "live")
        self.start("two", self.old, "passive")
        self.is_ready("two")
        self.declare()
        for by, name in ((self.old, "old"), (self.new, "new")):
            self.program("publisher", PUBLISH, by, name)
            self.program("consumer", CONSUME, by, name)
        with self.step("the backup is stopped, and started as the new version"):
            self.stop("two")
            self.start("two", self.new, "passive")
            self.is_ready("two")
        with self.step("the live hands over"):
            self.stop("one")
            self.becomes("two", "live")
        with self.step("it is started as the new version: failback"):
            self.start("one", self.new, "live")
            self.becomes("two", "passive")
            self.is_ready("two")
        if compares:
            with self.step("for comparison: the new live is killed, and its backup takes over"):
                self.stop("one", "kill")
                self.becomes("two", "live")
            with self.step("for comparison: it comes back: failback"):
                self.start("one", self.new, "live")
                self.becomes("two", "passive")
        return self.judged()

    def judged(self) -> Report:
        self._steps.append(("", time.monotonic()))
        published = {each: json.loads(each.read_text()) for each in self.ended("publisher")}
        taken = [each for file in self.ended("consumer") for each in json.loads(file.read_text())]
        found = {body for body, _ in taken}
        once = Counter(body for body, is_flagged in taken if not is_flagged)
        sent = {
            f"{file.stem.partition('-')[2]} {number}"
            for file, said in published.items()
            for number in range(said["count"])
        }
        report = Report(published=len(sent), consumed=len(found))
        report.versions = [f"{each.name} ({each.version})" for each in (self.old, self.new)]
        report.lost = sorted(sent - found)
        report.twice = sorted(body for body, times in once.items() if times > 1)
        stops = [tuple(each) for said in published.values() for each in said["stops"]]
        for (name, begins), (_, ends) in zip(self._steps, self._steps[1:], strict=False):
            within = [length for at, length in stops if begins <= at < ends]
            report.stops[name] = max(within, default=0.0)
        return report

    def close(self) -> None:
        for each in [*self._clients.values(), *self._brokers.values()]:
            each.kill()
            each.wait()


class RollingReplicated(Rolling):
    """Of two that share nothing, and speak to each other over TCP."""

    options: ClassVar[dict[str, Any]] = {"user": "programs", "password": PASSWORD}

    def __init__(self, folder: Path, vhost: str, old: Installation, new: Installation) -> None:
        super().__init__(folder, vhost, old, new)
        self._members = {name: free_port() for name in NAMES}
        self._programs = {name: free_port() for name in NAMES}
        there = ",".join(f"tcp://127.0.0.1:{port}" for port in self._programs.values())
        self.uri = f"failover:({there})?randomize=false&prefer-shared-memory=false"

    def vhost_of(self, name: str) -> str:
        return f"{self.vhost}-{name}"

    def create(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o600)
        members = [f"{name}=tcp://127.0.0.1:{port}" for name, port in self._members.items()]
        for name, role in zip(NAMES, ("live", "backup"), strict=True):
            given = {
                "ha.policy": "replication",
                "ha.members": json.dumps(members),
                "ha.replication.on-partition": "continue-alone",
                "ha.replication.check-for-live-server": "true",
                "ha.replication.replica-timeout": "10s",
                "acceptors.members.uri": f"tcp://127.0.0.1:{self._members[name]}",
                "acceptors.members.roles": '["replica"]',
                "acceptors.programs.uri": f"tcp://127.0.0.1:{self._programs[name]}",
                "acceptors.programs.roles": '["client"]',
                "instance.arena": "64MiB",
                "store.segment": "4MiB",
            }
            for whose, of in (("members", "replica"), ("programs", "client")):
                given[f"credentials.{whose}.password"] = f'{{ file = "{secret}" }}'
                given[f"credentials.{whose}.role"] = of
            words = [word for pair in given.items() for word in ("--set", "=".join(pair))]
            self.old.does("create", name, "--vhost", self.vhost_of(name), "--role", role, *words,
                          cwd=self.folder)  # fmt: skip

    def is_ready(self, name: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while status.read(self.folder / name).replication != "in sync":
            assert time.monotonic() < until, f"{name} is not in sync: {self.said(name)}"
            time.sleep(0.05)

    def close(self) -> None:
        super().close()
        for name in NAMES:
            with suppress(shmbroker.NotFound):
                vhosts.delete(self.vhost_of(name), force=True)
