"""Explore by hand, from the root of the repository.

python -m tests.explore list
python -m tests.explore run pair exchange --seconds 60
python -m tests.explore deep
python -m tests.explore mutant gates-ignored
python -m tests.explore mutants
python -m tests.explore record gates-ignored
python -m tests.explore replay pair 'producer1*5 !producer1 consumer1*3' --mutant gates-ignored
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.explore.hunt import Escaped, hunt, is_shown
from tests.explore.machine import Machine
from tests.explore.mutants import MUTANTS, Mutant, mutant
from tests.explore.report import explained, replay
from tests.explore.retrace import record, recorded
from tests.explore.scenarios import ALL, ALL_PLAYS, ELSEWHERE, scenario
from tests.explore.schedule import read
from tests.explore.search import explore
from tests.explore.translation import Translation

WITHOUT_END = float("inf")
STATES_MAX = 1 << 31


def main() -> int:
    given = _parser().parse_args()
    if given.verb == "list":
        _say(*(f"{name:20} {play.messages} messages" for name, play in ALL_PLAYS.items()))
        _say(*(f"{name:20} without a ring" for name in ELSEWHERE))
        _say(*(f"{each.name:50} caught by {each.scenario}" for each in MUTANTS))
        return 0
    if given.verb == "replay":
        machine = Machine(scenario(given.scenario), _translation(given.mutant))
        names = [actor.name for actor in machine.actors]
        _say(*replay(machine, read(given.schedule, names)))
        return 0
    if given.verb == "mutant":
        return max(
            _run(mutant(name).scenario, STATES_MAX, WITHOUT_END, name) for name in given.name
        )
    if given.verb == "mutants":
        return max(_hunt(each) for each in MUTANTS)
    if given.verb == "record":
        _record(given.name)
        return 0
    names = ALL if given.verb == "deep" else given.scenario
    return max(_run(name, given.states, given.seconds) for name in names)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.explore",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="the names of all scenarios and mutants")
    run = verbs.add_parser("run", help="explore scenarios")
    run.add_argument("scenario", nargs="+", choices=ALL)
    deep = verbs.add_parser("deep", help="explore all scenarios, to the end")
    for each in (run, deep):
        each.add_argument("--states", type=int, default=STATES_MAX, help="stop at so many")
        each.add_argument("--seconds", type=float, default=WITHOUT_END, help="stop after so long")
    broken = verbs.add_parser("mutant", help="see what happens without a guard")
    broken.add_argument("name", nargs="+", choices=[each.name for each in MUTANTS])
    verbs.add_parser("mutants", help="catch all mutants anew, whatever is recorded of them")
    keep = verbs.add_parser("record", help="record how a mutant is caught, for the tests")
    keep.add_argument("name", nargs="+", choices=[each.name for each in MUTANTS])
    again = verbs.add_parser("replay", help="take the steps of a schedule and tell them")
    again.add_argument("scenario", choices=ALL)
    again.add_argument("schedule")
    again.add_argument("--mutant", default="", choices=[each.name for each in MUTANTS])
    return parser


def _hunt(each: Mutant) -> int:
    try:
        _say(f"{each.name}: {hunt(each).failure.message}")
    except Escaped as escaped:
        _say(str(escaped))
        return 1
    return 0


def _record(names: Sequence[str]) -> None:
    schedules = dict(recorded())
    for name in names:
        again = hunt(mutant(name)).again
        if again and is_shown(mutant(name), again):
            schedules[name] = again
            _say(f"{name}: {again}")
        else:
            schedules.pop(name, None)
            _say(f"{name}: no schedule shows it, only a search")
        record(dict(sorted(schedules.items())))


def _translation(broken: str) -> Translation:
    return mutant(broken).translation() if broken else Translation()


def _run(name: str, states: int, seconds: float, broken: str = "") -> int:
    outcome = explore(
        scenario(name),
        _translation(broken),
        states_max=states,
        seconds_max=seconds,
        progress=sys.stderr.isatty(),
    )
    _say(str(outcome))
    if outcome.failure is None:
        return 0
    _say(explained(Machine(scenario(name), _translation(broken)), outcome.failure, broken))
    return 1


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
