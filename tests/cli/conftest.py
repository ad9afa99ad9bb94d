"""A vhost for each test, gone afterwards, also when the test fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shmbroker.ipc.vhost import vhost as vhosts
from tests.cli.command import Shell

SHM = Path("/dev/shm")


@pytest.fixture
def vhost_name() -> Iterator[str]:
    """A name that nobody else uses; its segments are removed."""
    name = f"test-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    yield name
    for segment in SHM.glob(f"*{name}*"):
        shutil.rmtree(segment) if segment.is_dir() else segment.unlink()


@pytest.fixture
def shell(vhost_name: str) -> Shell:
    """A person in an empty vhost."""
    vhosts.create(vhost_name, arena_bytes=4 << 20)
    return Shell(vhost_name)


@pytest.fixture
def start(shell: Shell) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts commands that end with the test at the latest."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        started.append(shell.start(*arguments, **options))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()
