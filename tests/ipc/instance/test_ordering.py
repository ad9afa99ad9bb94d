"""Orders to a broker, as those who give them wait for each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from shmbroker.ipc.instance import ordering, status

ORDERS = """
import sys
from pathlib import Path
from shmbroker.ipc.instance import ordering
with ordering._alone(Path(sys.argv[1], "run"), 60):
    print("alone", flush=True)
    sys.stdin.read()
"""


def test_who_gives_an_order_and_stands_still_holds_up_nobody_for_ever(tmp_path: Path) -> None:
    sign = status.Sign(tmp_path)
    command = [sys.executable, "-c", ORDERS, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"alone\n"
            os.kill(other.pid, signal.SIGSTOP)
            began = time.monotonic()
            assert not ordering.asked_to_show(tmp_path, "programs", 0.2)
            assert time.monotonic() - began >= 0.2
            assert ordering.asked(tmp_path, {}, 60, waits=False) is None
        finally:
            other.kill()
    sign.close()
