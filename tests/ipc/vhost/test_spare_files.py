"""Who watches for deaths leaves descriptors to the rest of its process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import shmbroker
from tests.support.holding import holding

IDLE = 90
REPAIRS = """
import os, resource, sys, threading, shmbroker
with shmbroker.connect(sys.argv[1]) as broker:
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
    def repair():
        for _ in range(20):
            broker.repair_for(0.05)
    repairs = threading.Thread(target=repair)
    repairs.start()
    while repairs.is_alive():
        for file in [os.open("/dev/null", os.O_RDONLY) for _ in range(32)]:
            os.close(file)
    print("ready", flush=True)
    while broker.repair_for(1) == 0:
        pass
"""


def test_with_many_participants_others_have_some(url: str, tmp_path: Path) -> None:
    """And deaths are found all the same."""
    with shmbroker.connect(url) as broker:
        orders = broker.declare_queue("orders")
        orders.publish(b"a")
        idle = [shmbroker.connect(url) for _ in range(IDLE)]
        with (
            holding(url, ["orders"], tmp_path) as holder,
            subprocess.Popen(
                [sys.executable, "-c", REPAIRS, url], stdout=subprocess.PIPE
            ) as repairs,
        ):
            assert repairs.stdout is not None
            assert repairs.stdout.readline() == b"ready\n"
            holder.kill()
            assert repairs.wait() == 0
        assert orders.receive(timeout=0) == b"a"
        for each in idle:
            each.close()
