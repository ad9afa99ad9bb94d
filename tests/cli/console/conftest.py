"""A broker with a console, and those who look at it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shmbroker.cli.console.server import running
from tests.cli.command import PATIENCE_SECONDS, Shell, eventually
from tests.cli.console.visitor import Visitor
from tests.support.stopped import stop

ADMIN, VIEWER = "correct horse battery", "staple staple staple"
SHM = Path("/dev/shm")


@dataclass
class Site:
    """An instance with a [console], on a port that is free."""

    shell: Shell
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    sessions: list[Visitor] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self._running()[1]

    @property
    def pid(self) -> int:
        return self._running()[0]

    def _running(self) -> tuple[int, str]:
        found = running(self.folder)
        assert found is not None, "there is no console"
        return found[0].pid, found[1]

    def start(self, state: str = "live") -> None:
        self.process = self.shell.start("run", str(self.folder), stderr=subprocess.DEVNULL)
        self.shell.does("status", str(self.folder), "--wait", state, "--timeout", "60s")
        self.has_console()

    def has_console(self) -> None:
        eventually(lambda: running(self.folder))

    def stop(self) -> None:
        self.shell.does("stop", str(self.folder), "--timeout", "60s")
        assert self.process is not None
        self.process.wait(PATIENCE_SECONDS)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        if number == signal.SIGSTOP:
            stop(self.process.pid)  # each of its threads stands still
            return
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait(PATIENCE_SECONDS)

    def link(self, role: str = "admin") -> str:
        line = self.shell.does("console", "open", str(self.folder), "--role", role).out.strip()
        url, _, token = line.partition("#link=")
        assert url == self.url
        return token

    def visitor(self, role: str = "admin") -> Visitor:
        """Who has logged in by a link."""
        visitor = Visitor(self.url)
        assert visitor.log_in(link=self.link(role)).status == 200
        return visitor

    def lines(self, event: str) -> list[dict[str, Any]]:
        found = (self.folder / "log" / "shmbroker.log").read_text().splitlines()
        return [line for each in found if (line := json.loads(each))["event"] == event]

    def close(self) -> None:
        self.shell("console", "stop", str(self.folder))
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        self.shell("console", "stop", str(self.folder))


def configured(shell: Shell, folder: Path, *settings: str) -> Site:
    shell.does(
        "create", str(folder), "--vhost", shell.vhost, "--set", "store.segment=1MiB",
        "--set", "instance.arena=8MiB", "--set", "console.listen=127.0.0.1:0",
        *(word for each in settings for word in ("--set", each)),
    )  # fmt: skip
    return Site(shell, folder)


def with_credentials(folder: Path) -> None:
    """An admin and a viewer, who may log in."""
    (folder / "admin").write_text(ADMIN)
    (folder / "viewer").write_text(VIEWER)
    for name in ("admin", "viewer"):
        (folder / name).chmod(0o600)
    file = folder / "shmbroker.toml"
    text = file.read_text().replace(
        "[console]\n", '[console]\ncredentials = ["operator", "guest"]\n'
    )
    file.write_text(
        text + '\n[credentials.operator]\nrole = "admin"\npassword = { file = "admin" }\n'
        '\n[credentials.guest]\nrole = "viewer"\npassword = { file = "viewer" }\n'
    )


def _shell() -> tuple[Shell, Callable[[], None]]:
    name = f"test-{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def remove() -> None:
        for segment in SHM.glob(f"*{name}*"):
            shutil.rmtree(segment) if segment.is_dir() else segment.unlink()

    return Shell(name), remove


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A live with a few queues, for the tests of a file that break nothing."""
    shell, remove = _shell()
    made = configured(shell, tmp_path_factory.mktemp("console") / "one")
    with_credentials(made.folder)
    try:
        made.start()
        shell.does("queue", "declare", "orders")
        shell.does("queue", "declare", "orders.dead")
        yield made
    finally:
        made.close()
        remove()


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    """One that the test may break; it is not started."""
    shell, remove = _shell()
    made = configured(shell, tmp_path / "one")
    try:
        yield made
    finally:
        made.close()
        remove()
