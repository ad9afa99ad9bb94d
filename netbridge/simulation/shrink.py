"""The fewest faults with which a seed still fails."""

from __future__ import annotations

from shmbroker.netbridge.simulation.run import Outcome, faults_of, simulate


def shrunk(failed: Outcome) -> Outcome:
    """Without each fault that the failure does not need."""
    needed = list(failed.faults)
    for fault in failed.faults:
        fewer = [each for each in needed if each is not fault]
        again = simulate(failed.seed, fewer)
        if again.wrong:
            needed, failed = fewer, again
    return failed


def command(failed: Outcome) -> str:
    """What replays it."""
    everything = faults_of(failed.seed)
    kept = [str(at) for at, each in enumerate(everything) if each in failed.faults]
    faults = f" --faults {','.join(kept) or 'none'}" if len(kept) < len(everything) else ""
    return f"python -m shmbroker.netbridge.simulation replay {failed.seed}{faults}"


def explained(failed: Outcome) -> str:
    fewest = shrunk(failed)
    lines = [f"seed {fewest.seed}: {fewest.wrong}", *(f"  {fault}" for fault in fewest.faults)]
    return "\n".join([*lines, f"replay: {command(fewest)}"])
