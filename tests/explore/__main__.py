"""Explore by hand, from the root of the repository.

python -m tests.explore list
python -m tests.explore run pair exchange [--states N] [--seconds N] [--mutant NAME]
python -m tests.explore replay pair 'producer1*5 !producer1 consumer1*3' [--mutant NAME]
"""

from __future__ import annotations

import argparse
import sys

from tests.explore.machine import Machine
from tests.explore.report import explained, replay
from tests.explore.scenarios import ALL_PLAYS, scenario
from tests.explore.schedule import read
from tests.explore.search import explore
from tests.explore.translation import Translation


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.explore")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="the names of all scenarios")
    run = verbs.add_parser("run", help="explore scenarios")
    run.add_argument("scenario", nargs="+", choices=tuple(ALL_PLAYS))
    run.add_argument("--states", type=int, default=1 << 30, help="stop at so many")
    run.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    again = verbs.add_parser("replay", help="take the steps of a schedule and tell them")
    again.add_argument("scenario", choices=tuple(ALL_PLAYS))
    again.add_argument("schedule")
    given = parser.parse_args()
    if given.verb == "list":
        print("\n".join(ALL_PLAYS))
        return 0
    if given.verb == "replay":
        machine = Machine(scenario(given.scenario), Translation())
        names = [actor.name for actor in machine.actors]
        print("\n".join(replay(machine, read(given.schedule, names))))
        return 0
    return max(_run(name, given.states, given.seconds) for name in given.scenario)


def _run(name: str, states: int, seconds: float) -> int:
    outcome = explore(
        scenario(name), states_max=states, seconds_max=seconds, progress=sys.stderr.isatty()
    )
    print(outcome)
    if outcome.failure is None:
        return 0
    print(explained(Machine(scenario(name), Translation()), outcome.failure))
    return 1


if __name__ == "__main__":
    sys.exit(main())
