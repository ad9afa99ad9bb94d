"""`shmbroker run` without a folder repairs on, whatever cannot be repaired now."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import shmbroker
from tests.cli.command import Shell, line_of
from tests.conftest import SHM
from tests.support.holding import holding


def test_it_repairs_what_it_could_not_before(
    shell: Shell, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        broker.declare_queue("held").publish(b"a")
    (ring,) = SHM.glob(f"shmbroker.{shell.vhost}.queue-*")
    with holding(f"shm://{shell.vhost}", ["held"], tmp_path) as holder:
        ring.chmod(0o666)
        repairer = start("run", "--vhost", shell.vhost, stderr=subprocess.PIPE)
        assert b"repairing" in line_of(repairer.stderr)
        holder.kill()
        assert ring.name.encode() in line_of(repairer.stderr)
    ring.chmod(0o600)
    assert b"a participant died" in line_of(repairer.stderr)
    assert shell.bodies("held") == ["a"]
