"""The contest: all entries of a case, interleaved (A B C, A B C, ...), round after round."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from shmbroker.perf.harness.calibration import calibrated
from shmbroker.perf.harness.case import Case, Entry
from shmbroker.perf.harness.peer import Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.run import RunRecord, run
from shmbroker.perf.harness.task import Mode, Task
from shmbroker.perf.harness.topology import Topology

Runner = Callable[[Peer, Plan], RunRecord]


@dataclass(frozen=True, slots=True)
class Contest:
    """What to run and how. ``runner`` does one run; ``tell`` hears about the progress."""

    topologies: Sequence[Topology]
    sizes: Sequence[int]
    modes: Sequence[Mode]
    peers: Sequence[Peer]
    rounds: int
    target_s: float
    tell: Callable[[str], None]
    runner: Runner = run

    def cases(self) -> list[Case]:
        """Every combination that anybody supports, in order."""
        cases = []
        for topology in self.topologies:
            for size in self.sizes:
                entries = list(self._entries(topology, size))
                if entries:
                    cases.append(Case(topology, size, entries))
        return cases

    def hold(self, case: Case) -> None:
        """Calibrate every entry, then run the rounds. Failures are noted, never raised."""
        with ExitStack() as stack:
            for peer in dict.fromkeys(entry.peer for entry in case.entries):
                self._start(peer, case, stack)
            self._hold([entry for entry in case.entries if not entry.failures])

    def _start(self, peer: Peer, case: Case, stack: ExitStack) -> None:
        try:
            stack.enter_context(peer.running())
        except Exception as failure:  # noqa: BLE001 - one that fails must not stop the others
            for entry in case.entries:
                if entry.peer is peer:
                    entry.failures.append(f"starting: {failure}")

    def _hold(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.tell(f"{entry.peer.name}: {entry.task}: calibrating")
            self._calibrate(entry)
        for number in range(self.rounds):
            for entry in entries:
                self.tell(f"{entry.peer.name}: {entry.task}: round {number + 1}")
                self._run_round(entry)

    def _entries(self, topology: Topology, size: int) -> Iterable[Entry]:
        for peer in self.peers:
            for mode in self.modes:
                task = Task(topology, size, mode)
                if peer.installed() and peer.supports(task):
                    yield Entry(peer, task)

    def _calibrate(self, entry: Entry) -> None:
        runner = partial(self.runner, entry.peer)
        try:
            entry.plan = calibrated(entry.task, self.target_s, lambda plan: runner(plan).figures)
        except Exception as failure:  # noqa: BLE001 - one that fails must not stop the others
            entry.failures.append(f"calibration: {failure}")

    def _run_round(self, entry: Entry) -> None:
        if entry.plan is None:
            return
        try:
            entry.rounds.append(self.runner(entry.peer, entry.plan))
        except Exception as failure:  # noqa: BLE001 - one that fails must not stop the others
            entry.rounds.append(None)
            entry.failures.append(f"round {len(entry.rounds)}: {failure}")
