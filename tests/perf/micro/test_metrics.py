"""The micro-benchmark of metrics runs, and its sums are right."""

from __future__ import annotations

import subprocess
import sys


def test_it_runs() -> None:
    program = [sys.executable, "-m", "shmbroker.perf.micro.metrics", "--queues", "20"]
    done = subprocess.run([*program, "--times", "1"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("20 queues: a scrape takes ")
