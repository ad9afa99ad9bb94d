"""Who joins gets the id of somebody who died before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import shmbroker
from tests.support.compiler import compile_preloaded

FULL = """
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
int posix_fallocate(int file, off_t at, off_t length)
{
    if (access("full", F_OK) == 0)
        return ENOSPC;
    return syscall(SYS_fallocate, file, 0, at, length) == 0 ? 0 : errno;
}
"""
JOINS = """
import sys
from pathlib import Path
from shmbroker import Error
from shmbroker.ipc.broker.journaler import attach, join
broker, full = attach(sys.argv[1]), Path("full")
full.touch()
try:
    join(broker, "late")
    print("joined")
except Error:
    print(broker.participant)
full.unlink()
join(broker, "late")
print(broker.participant)
broker.close()
"""


def test_who_has_no_memory_for_an_id_has_none(vhost: str, tmp_path: Path) -> None:
    """It does not leave for one whose id it has passed over."""
    pid = os.fork()
    if pid == 0:
        _broker = shmbroker.connect(f"shm://{vhost}", name="dead")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    library = compile_preloaded(FULL, tmp_path / "full.so")
    done = subprocess.run(
        [sys.executable, "-c", JOINS, vhost],
        cwd=tmp_path,
        env=os.environ | {"LD_PRELOAD": str(library)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.stdout.split() == ["0", "2"]
