"""Kill producers and consumers at random instants, and account for every message.

python -m tests.crash --kills 2000
python -m tests.crash --kills 100 --seed 4711
python -m tests.crash repair
"""

from __future__ import annotations

import argparse
import sys

from tests.crash.repair import measure
from tests.crash.round import Fault, crash


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", nargs="?", choices=("kill", "repair"), default="kill")
    parser.add_argument("--kills", type=int, default=2000, help="how many kill -9 (2000)")
    parser.add_argument("--seed", type=int, help="of the first round; random if left out")
    parser.add_argument("--times", type=int, default=50, help="how often repair is measured (50)")
    given = parser.parse_args()
    if given.verb == "repair":
        for each in measure(given.times):
            sys.stdout.write(f"{each}\n")
        return 0
    try:
        outcome = crash(given.kills, given.seed)
    except Fault as fault:
        sys.stdout.write(f"{fault}\n")
        return 1
    sys.stdout.write(f"{outcome}\n")
    return 0


sys.exit(main())
