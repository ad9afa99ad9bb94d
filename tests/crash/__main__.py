"""Kill producers and consumers at random instants, and account for every message.

python -m tests.crash --kills 2000
python -m tests.crash --kills 100 --seed 4711
python -m tests.crash repair
python -m tests.crash failover --times 100
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from shmbroker.perf.failover.trial import failover
from shmbroker.perf.process import Process
from tests.conftest import vhost_for_a_while
from tests.crash.repair import measure
from tests.crash.round import Fault, crash

AT_REST_SECONDS = 0.3
"""Between two failovers: in the tests the next one is hit while everything still starts."""


def failovers(times: int, seed: int | None) -> int:
    """Kills of the live, then a tenth as many that are only stopped, until the limit."""
    lost = False
    for hit, count, settings in (
        (Process.kill, times, {}),
        (Process.stop, times // 10, {"ha.stall-limit": "250ms"}),
    ):
        with vhost_for_a_while() as vhost, TemporaryDirectory(prefix="failover-") as folder:
            outcome = failover(
                Path(folder), vhost, count, seed or 0, hit, at_rest=AT_REST_SECONDS, **settings
            )
        sys.stdout.write(f"{hit.__name__}: {outcome}\n")
        lost |= outcome.consumed != outcome.confirmed
    return int(lost)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", nargs="?", choices=("kill", "repair", "failover"), default="kill")
    parser.add_argument("--kills", type=int, default=2000, help="how many kill -9 (2000)")
    parser.add_argument("--seed", type=int, help="of the first round; random if left out")
    parser.add_argument("--times", type=int, default=50, help="of what is measured (50)")
    given = parser.parse_args()
    if given.verb == "repair":
        for each in measure(given.times):
            sys.stdout.write(f"{each}\n")
        return 0
    if given.verb == "failover":
        return failovers(given.times, given.seed)
    try:
        outcome = crash(given.kills, given.seed)
    except Fault as fault:
        sys.stdout.write(f"{fault}\n")
        return 1
    sys.stdout.write(f"{outcome}\n")
    return 0


sys.exit(main())
