"""The command, run as a shell would run it."""

from __future__ import annotations

import json
import select
import subprocess
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.cli import warm

COMMAND = str(Path(sysconfig.get_path("scripts")) / "shmbroker")
PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    said: str

    @property
    def json(self) -> Any:
        assert self.code in (0, 1, 2, 3)
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Shell:
    """A person at a shell who has chosen a vhost."""

    def __init__(self, vhost: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.vhost = vhost
        self.patience_seconds = patience_seconds
        # without PYTHONUNBUFFERED: it would hide a forgotten flush
        self.environment = {**warm.environment(), "SHMBROKER_VHOST": vhost, "COLUMNS": "100"}

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Answer:
        """Run to its end, whatever that is."""
        done = self._run([COMMAND, *arguments], stdin)
        out, said = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in said, said
        return Answer(done.returncode, out, said)

    def _run(self, command: list[str], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        if warm.can_run(command, stdin, self.environment):
            return warm.run(command, stdin, self.environment, self.patience_seconds)
        return subprocess.run(
            command, input=stdin, capture_output=True, env=self.environment,
            timeout=self.patience_seconds,
        )  # fmt: skip

    def does(self, *arguments: str, stdin: bytes = b"") -> Answer:
        """Run what has to go well."""
        answer = self(*arguments, stdin=stdin)
        assert answer.code == 0, answer
        return answer

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Run beside us; the caller ends it."""
        return subprocess.Popen([COMMAND, *arguments], env=self.environment, **options)

    def bodies(self, queue: str) -> list[str]:
        return [message["body"] for message in self.does("queue", "browse", queue, "--json").json]


def eventually(what: Callable[[], Any]) -> Any:
    """The first answer that is true.  It rests as long as a look takes: many are whole commands."""
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        began = time.monotonic()
        if answer := what():
            return answer
        assert began < ends_at, "it did not happen"
        time.sleep(max(0.02, time.monotonic() - began))


def line_of(pipe: IO[bytes] | None) -> bytes:
    """The next line that a running command writes; an error if it keeps it to itself."""
    assert pipe is not None
    assert select.select([pipe], [], [], PATIENCE_SECONDS)[0], "nothing was written"
    return pipe.readline()
