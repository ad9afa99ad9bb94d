"""Who joins gets the id of somebody who died before."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import shmbroker
from shmbroker.core import layout
from tests.ipc.vhost.test_hostile_vhost import segment, write
from tests.support.compiler import compile_preloaded

ENTRY_AT = layout.PARTICIPANTS_AT + layout.PARTICIPANT_BYTES
RECORD_AT = layout.TRANSACTIONS_AT + layout.TRANSACTION_BYTES


def word(vhost: str, kind: str, at: int) -> int:
    with segment(vhost, kind).open("rb") as file:
        return int.from_bytes(os.pread(file.fileno(), 8, at), "little")


@pytest.mark.parametrize(
    ("is_durable", "counted_at"),
    [(1, layout.TRANSACTIONS_BEGUN_AT), (0, layout.TRANSACTIONS_PLAIN_AT)],
)
def test_what_that_one_had_committed_is_counted(
    vhost: str, is_durable: int, counted_at: int
) -> None:
    """It died before it could: else there is a moment at which half of that has happened."""
    state_at = ENTRY_AT + layout.PARTICIPANT_TRANSACTION_AT
    write(segment(vhost, "transactions"), RECORD_AT, struct.pack("<qqq", 0, is_durable, 1))
    for at, value in (
        (state_at, layout.TRANSACTION_COMMITTED),
        (ENTRY_AT, layout.PARTICIPANT_LIVE),
        (layout.PARTICIPANTS_HIGH_AT, 2),
    ):
        write(segment(vhost, "participants"), at, struct.pack("<q", value))
    before = word(vhost, "transactions", counted_at)
    with shmbroker.connect(f"shm://{vhost}") as broker:
        assert broker.participant == 1
        assert word(vhost, "participants", state_at) == layout.TRANSACTION_NONE
        assert word(vhost, "transactions", counted_at) == before + 1


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
