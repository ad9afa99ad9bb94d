"""python -m tests.attack: one world after the other, until the time is over or one is wrong."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import shmbroker
from tests.attack.worlds import WORLDS


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.attack")
    options.add_argument("--minutes", type=float, default=1.0)
    options.add_argument("--world", choices=WORLDS)
    options.add_argument("--seed", type=int)
    options.add_argument("--seconds", type=float, default=20.0, help="of one world")
    asked = options.parse_args()
    ends = time.monotonic() + 60 * asked.minutes
    wrong = rounds = 0
    while rounds == 0 or time.monotonic() < ends:
        seed = asked.seed if asked.seed is not None else random.randrange(1 << 30)
        name = asked.world or list(WORLDS)[rounds % len(WORLDS)]
        rounds += 1
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            Path(folder).chmod(0o755)
            try:
                found = WORLDS[name](Path(folder), seed, asked.seconds)
            except (RuntimeError, OSError, shmbroker.Error, subprocess.SubprocessError) as error:
                found = {"seed": seed, "wrong": [f"{type(error).__name__}: {error}"]}
        sys.stdout.write(f"{name} {json.dumps(found)}\n")
        sys.stdout.flush()
        wrong += bool(found["wrong"])
        if asked.seed is not None:
            break
    sys.stdout.write(f"{rounds} rounds, {wrong} of them wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
