"""A case: one topology and size, the entries that compete in it, and what each round gave.

A ratio compares two runs of the same round, which the machine's moods have met alike; what is
reported is the median of those ratios, not the ratio of the medians.
"""

from dataclasses import dataclass, field
from statistics import median

from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.harness.figures import Figures
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.run import RunRecord
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Topology
from shmbroker.perf.machine.histograms import merged
from shmbroker.perf.machine.size import format_size


@dataclass(slots=True)
class Entry:
    """One peer in one mode. A round that failed is None in ``rounds``."""

    peer: Peer
    task: Task
    plan: Plan | None = None
    rounds: list[RunRecord | None] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        return f"{self.peer.name}/{self.task.mode}"

    def figures(self) -> list[Figures | None]:
        return [record.figures if record else None for record in self.rounds]

    def medians(self) -> Figures:
        """The median over the rounds of each figure; empty if no round succeeded."""
        done = [figures for figures in self.figures() if figures]
        return {name: median(each[name] for each in done) for name in (done[0] if done else ())}

    def histogram(self) -> Histogram | None:
        """Of the round trips that were timed one by one, in all rounds."""
        known = [run.histogram for run in self.rounds if run and run.histogram]
        return merged(known) if known else None

    def preempted(self) -> float:
        """The median over the rounds; far from 0, the machine was not ours alone."""
        return median([record.preempted for record in self.rounds if record] or [0])

    def ratios_to(self, reference: "Entry") -> Figures:
        """The median over the rounds of this entry's figure / the reference's in that round."""
        both = [
            (mine, theirs)
            for mine, theirs in zip(self.figures(), reference.figures(), strict=False)
            if mine and theirs
        ]
        names = both[0][0].keys() & both[0][1].keys() if both else ()
        return {
            name: median(mine[name] / theirs[name] for mine, theirs in both)
            for name in sorted(names)
        }


@dataclass(slots=True)
class Case:
    topology: Topology
    size: int
    entries: list[Entry] = field(default_factory=list)

    @property
    def title(self) -> str:
        return f"{self.topology.name}, {format_size(self.size)}"

    def failures(self) -> list[str]:
        return [
            f"{self.title}, {entry.title}: {why}"
            for entry in self.entries
            for why in entry.failures
        ]

    def limit(self) -> Entry | None:
        """The raw limit that takes part, if one does."""
        return next((entry for entry in self.entries if entry.peer.is_limit), None)

    def reference(self, name: str | None) -> Entry | None:
        """The entry of that peer to compare with: mode single, or what it has."""
        of_name = [entry for entry in self.entries if entry.peer.name == name]
        singles = [entry for entry in of_name if entry.task.mode == "single"]
        return next(iter(singles + of_name), None)
