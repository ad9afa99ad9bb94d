"""One queue that cannot be opened is in the way of no other, nor of what others have left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker
from tests.conftest import SHM
from tests.support.compiler import compile_preloaded
from tests.support.holding import holding
from tests.support.host import PATIENCE


def rings(vhost: str) -> set[Path]:
    return set(SHM.glob(f"shmbroker.{vhost}.queue-*"))


def two_that_died(broker: Broker, url: str, folder: Path) -> Path:
    """The first of them had a message of another queue beside that of `first`, whose ring this is.
    Who had that of `second` comes behind it."""
    before = rings(broker.vhost)
    broker.declare_queue("first").publish(b"1")
    (ring,) = rings(broker.vhost) - before
    for name, body in (("beside", b"2"), ("second", b"3")):
        broker.declare_queue(name).publish(body)
    with holding(url, ["first", "beside"], folder), holding(url, ["second"], folder):
        return ring


def has(broker: Broker, name: str, body: bytes) -> bool:
    return broker.queue(name).receive(timeout=0) == body


def replace(ring: Path) -> None:
    ring.unlink()
    ring.touch(0o600)


@pytest.mark.parametrize("loses", [Path.unlink, replace])
def test_a_ring_that_is_lost_is_left_out(
    broker: Broker, url: str, tmp_path: Path, loses: Callable[[Path], None]
) -> None:
    with shmbroker.connect(url) as other:
        loses(two_that_died(broker, url, tmp_path))
        assert other.repair() > 0
        assert has(other, "beside", b"2")
        assert has(other, "second", b"3")
        assert not [each for each in other.participants() if each.name == "holder"]
        assert [each for each in other.errors() if "a repair leaves out a queue" in each.text]


def test_one_that_may_be_had_later_is_repaired_then(
    broker: Broker, url: str, tmp_path: Path
) -> None:
    with shmbroker.connect(url) as other:
        ring = two_that_died(broker, url, tmp_path)
        ring.chmod(0o666)
        with pytest.raises(shmbroker.Untrusted, match=ring.name):
            other.repair()
        assert has(other, "beside", b"2")
        assert has(other, "second", b"3")
        assert len([each for each in other.participants() if each.name == "holder"]) == 1
        ring.chmod(0o600)
        assert other.repair() > 0
        assert has(other, "first", b"1")


NO_INOTIFY = """
#include <errno.h>
int inotify_init1(int flags)
{
    (void)flags;
    errno = EMFILE;
    return -1;
}
"""
REPAIRS = """
import sys, shmbroker
with shmbroker.connect(sys.argv[1]) as broker:
    print("ready", flush=True)
    while broker.repair_for(0.1) == 0:
        pass
"""


def test_who_repairs_needs_no_inotify(broker: Broker, url: str, tmp_path: Path) -> None:
    """Other programs of its user may have all that there may be."""
    library = compile_preloaded(NO_INOTIFY, tmp_path / "none.so")
    broker.declare_queue("orders").publish(b"a")
    command = [sys.executable, "-c", REPAIRS, url]
    environment = os.environ | {"LD_PRELOAD": str(library)}
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as repairs,
        holding(url, ["orders"], tmp_path) as holder,
    ):
        assert repairs.stdout is not None
        assert repairs.stdout.readline() == b"ready\n"
        holder.kill()
        assert repairs.wait(PATIENCE) == 0
        assert has(broker, "orders", b"a")
