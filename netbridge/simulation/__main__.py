"""Run seeds of the simulation, or one of them again.

python -m shmbroker.netbridge.simulation run --seeds 1000
python -m shmbroker.netbridge.simulation run --minutes 60 --first 100000
python -m shmbroker.netbridge.simulation replay 17 --faults 0,3
python -m shmbroker.netbridge.simulation cost --nodes 20,50,100

`cost` counts what the brokers of a cluster of so many nodes say to each other, as messages and
bytes of encoded frames: when a broker joins or leaves, a consumer comes, and when nothing happens.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final

from shmbroker.netbridge.simulation.cost.events import Size
from shmbroker.netbridge.simulation.cost.table import found, lines
from shmbroker.netbridge.simulation.shrink import WORLDS, explained

TELL_SECONDS: Final = 30.0
INTERRUPTED: Final = 130


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shmbroker.netbridge.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="run many seeds")
    run.add_argument("--seeds", type=int, default=1000, help="so many; 0: as many as time allows")
    run.add_argument("--minutes", type=float, default=0.0, help="not longer than this; 0: no limit")
    run.add_argument("--first", type=int, default=0)
    cores = len(os.sched_getaffinity(0))
    run.add_argument("--processes", type=int, default=cores, help="default: one for each processor")
    replay = verbs.add_parser("replay", help="run one seed and say what happens")
    replay.add_argument("seed", type=int)
    replay.add_argument("--faults", help="numbers of those that are kept, or none")
    replay.add_argument("--world", choices=WORLDS, default="links")
    cost = verbs.add_parser("cost", help="count what the brokers of a large cluster say")
    cost.add_argument("--nodes", type=_numbers, default=[10, 20], help="sizes, default: 10,20")
    cost.add_argument("--queues", type=int, default=1000, help="of all brokers")
    cost.add_argument("--consumers", type=int, default=10_000, help="of all queues")
    cost.add_argument("--chain", action="store_true", help="each has links to its neighbours only")
    given = parser.parse_args()
    if given.verb == "cost":
        sizes = [Size(nodes, given.queues, given.consumers) for nodes in given.nodes]
        _say(*lines(found(sizes, is_chain=given.chain), given.nodes))
        return 0
    if given.verb == "replay":
        return _replay(given.seed, given.faults, given.world)
    return _run(given.first, given.seeds, given.minutes * 60, given.processes)


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def _run(first: int, seeds: int, seconds: float, processes: int) -> int:
    """Seed after seed.  Whoever interrupts it is told with which seed it goes on."""
    for each in (signal.SIGINT, signal.SIGTERM):  # a shell ignores SIGINT for what it starts behind
        signal.signal(each, signal.default_int_handler)
    began = told_at = time.monotonic()
    seed, steps = first, 0
    ahead: deque[Future[tuple[int, str]]] = deque()
    """From that seed on: what is being run, and a bit more."""

    def so_far() -> str:
        spent = time.monotonic() - began
        return f"{seed - first:,} seeds from {first} on, {steps:,} steps in {spent:.0f} s"

    with ProcessPoolExecutor(processes, get_context("fork"), _undisturbed) as pool:
        try:
            while True:
                now = time.monotonic()
                is_over = bool(seconds) and now - began >= seconds
                while not is_over and len(ahead) < 2 * processes:
                    next_one = seed + len(ahead)
                    if seeds and next_one - first >= seeds:
                        break
                    ahead.append(pool.submit(_simulated, next_one))
                if not ahead:
                    break
                if now - told_at >= TELL_SECONDS:
                    told_at = now
                    _say(so_far())
                more, wrong = ahead[0].result()
                ahead.popleft()
                steps += more
                if wrong:
                    _say(wrong)
                    return 1
                seed += 1
        except KeyboardInterrupt:
            _say(f"{so_far()}: nothing is wrong; it was interrupted and goes on with FIRST={seed}")
            return INTERRUPTED
        except Exception:
            _say(f"seed {seed}: it broke")
            raise
        finally:
            pool.shutdown(cancel_futures=True)
    _say(f"{so_far()}: nothing is wrong")
    return 0


def _undisturbed() -> None:
    """Only the first process hears of an interruption."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _simulated(seed: int) -> tuple[int, str]:
    """In all worlds: how many steps, and what is wrong."""
    steps = 0
    for name, world in WORLDS.items():
        outcome = world.simulate(seed)
        steps += outcome.steps
        if outcome.wrong:
            return steps, explained(outcome, name)
    return steps, ""


def _replay(seed: int, kept: str | None, world: str) -> int:
    faults = WORLDS[world].faults_of(seed)
    if kept is not None:
        numbers = [] if kept == "none" else [int(each) for each in kept.split(",")]
        faults = [faults[number] for number in numbers]
    outcome = WORLDS[world].simulate(seed, faults, traced=True)
    _say(*outcome.trace, outcome.wrong or "nothing is wrong")
    return int(bool(outcome.wrong))


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
