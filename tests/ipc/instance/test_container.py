"""A broker in a container, as namespaces make one: process 1, with a small /dev/shm of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shmbroker.ipc.instance import status
from tests.support.runs import PATIENCE_SECONDS

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="namespaces are root's to make")

ROOT = Path(__file__).parents[3]
RECIPE = ROOT / "examples" / "container" / "Containerfile"
MOUNTED = 'mount -t tmpfs -o size="$0" shm /dev/shm && exec "$@"'
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
ARENA = "8MiB"


class Container:
    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self.folder, self.process = folder, process

    @property
    def first(self) -> int:
        """The number of its process 1 outside."""
        of = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(of.read_text().split()[0])

    def does(self, *words: str) -> subprocess.CompletedProcess[str]:
        """As `docker exec` does."""
        enter = ["nsenter", f"--target={self.first}", "--mount", "--pid"]
        return subprocess.run(
            [*enter, *words], env=environment(self.folder), capture_output=True, text=True,
            timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip


def environment(folder: Path) -> dict[str, str]:
    path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
    return os.environ | {
        "PATH": path, "XDG_CONFIG_HOME": str(folder), "SHMBROKER_DIR": str(folder / "broker"),
        "SHMBROKER_VHOST": "contained", "SHMBROKER_ARENA": ARENA,
    }  # fmt: skip


@contextmanager
def container(folder: Path, shm_size: str) -> Iterator[Container]:
    """Runs what the image runs."""
    (command,) = re.findall(r"^CMD (.*)$", RECIPE.read_text(), re.MULTILINE)
    process = subprocess.Popen(
        [*UNSHARE, "sh", "-c", MOUNTED, shm_size, *json.loads(command)],
        env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield Container(folder, process)
    finally:
        process.kill()
        process.communicate()


def test_a_broker_is_process_1_and_ends_by_sigterm(tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    produce = ["shmbroker", "producer", "--destination", "orders", "--message-size", "64KiB"]
    with container(tmp_path, "6m") as of:
        assert status.wait_for(folder, "live", PATIENCE_SECONDS)
        assert "shmbroker run" in of.does("cat", "/proc/1/cmdline").stdout.replace("\0", " ")
        full = of.does(*produce, "--message-count", "100", "--timeout", "1s")
        assert full.returncode == 1
        assert "/dev/shm is full: free some of it, or mount it larger" in full.stderr
        assert "docker run --shm-size" in of.does("shmbroker", "doctor").stdout
        assert of.does("mount", "-o", "remount,size=64m", "/dev/shm").returncode == 0
        more = of.does(*produce, "--message-count", "5", "--timeout", "30s")
        assert more.returncode == 0, more.stderr
        health = re.search(r"^HEALTHCHECK .* CMD (.*)$", RECIPE.read_text(), re.MULTILINE)
        assert health is not None
        assert of.does("sh", "-c", health[1]).returncode == 0
        os.kill(of.first, signal.SIGTERM)
        assert of.process.wait(PATIENCE_SECONDS) == 0
        assert status.read(folder).state == "stopped"
    with container(tmp_path, "64m") as of:  # as it is run anew: from the journal
        assert status.wait_for(folder, "live", PATIENCE_SECONDS)
        found = of.does("shmbroker", "queue", "list", "--json")
        assert json.loads(found.stdout)[0]["depth"] > 5


def test_a_dev_shm_that_is_too_small_is_said(tmp_path: Path) -> None:
    with container(tmp_path, "64k") as of:
        output, _ = of.process.communicate(timeout=PATIENCE_SECONDS)
        assert of.process.returncode == 1
        assert "in /dev/shm: No space left on device" in output
