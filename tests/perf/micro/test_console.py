"""The micro-benchmark of the console runs, and its sums are right."""

from __future__ import annotations

import subprocess
import sys


def test_it_runs() -> None:
    words = ["--queues", "210", "--times", "1", "--seconds", "0.1", "--pairs", "1"]
    program = [sys.executable, "-m", "shmbroker.perf.micro.console", *words, "--messages", "100"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("210 queues: the first page takes ")
    assert done.stdout.rstrip().endswith("of one that is killed")
