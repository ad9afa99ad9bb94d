"""What the process of a broker asks of Python."""

from __future__ import annotations

import subprocess
import sys

TAKES_OVER = """
import gc
from shmbroker.ipc.instance import interpreter
interpreter.keeps_what_is_there()
searched = []
gc.callbacks.append(lambda phase, _: searched.append(phase))
made = [[] for _ in range(5_000)]
assert not searched
more = [[] for _ in range(10_000)]
assert searched, "memory is found again, later"
"""


def test_a_takeover_has_no_search_for_garbage() -> None:
    """With Python's own 700 objects each had one, and no thread runs meanwhile."""
    subprocess.run([sys.executable, "-c", TAKES_OVER], check=True)
