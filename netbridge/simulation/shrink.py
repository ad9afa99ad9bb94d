"""The fewest faults with which a seed still fails."""

from __future__ import annotations

from shmbroker.netbridge.simulation import run
from shmbroker.netbridge.simulation.agents import run as agents
from shmbroker.netbridge.simulation.cluster import run as cluster
from shmbroker.netbridge.simulation.election import run as election
from shmbroker.netbridge.simulation.networks import run as networks
from shmbroker.netbridge.simulation.pair import run as pair
from shmbroker.netbridge.simulation.queue_replicas import run as queue_replicas
from shmbroker.netbridge.simulation.replication import drains, lives, one_host, ordered
from shmbroker.netbridge.simulation.replication import run as replication
from shmbroker.netbridge.simulation.run import Outcome
from shmbroker.netbridge.simulation.sessions import run as sessions

WORLDS = {
    "links": run,
    "sessions": sessions,
    "replication": replication,
    "lives": lives,
    "drains": drains,
    "one_host": one_host,
    "ordered": ordered,
    "election": election,
    "pair": pair,
    "queue_replicas": queue_replicas,
    "cluster": cluster,
    "agents": agents,
    "networks": networks,
}


def shrunk(failed: Outcome, world: str = "links") -> Outcome:
    """Without each fault that the failure does not need."""
    needed = list(failed.faults)
    for fault in failed.faults:
        fewer = [each for each in needed if each is not fault]
        again = WORLDS[world].simulate(failed.seed, fewer)
        if again.wrong:
            needed, failed = fewer, again
    return failed


def command(failed: Outcome, world: str = "links") -> str:
    """What replays it."""
    everything = WORLDS[world].faults_of(failed.seed)
    kept = [str(at) for at, each in enumerate(everything) if each in failed.faults]
    faults = f" --faults {','.join(kept) or 'none'}" if len(kept) < len(everything) else ""
    of = "" if world == "links" else f" --world {world}"
    return f"python -m shmbroker.netbridge.simulation replay {failed.seed}{faults}{of}"


def explained(failed: Outcome, world: str = "links") -> str:
    fewest = shrunk(failed, world)
    lines = [f"seed {fewest.seed}: {fewest.wrong}", *(f"  {fault}" for fault in fewest.faults)]
    return "\n".join([*lines, f"replay: {command(fewest, world)}"])
