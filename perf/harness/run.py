"""One run: one peer, one plan, real processes, each pinned to a core, under a watchdog.

The watchdog ends only processes that this run started, by pid. Children also die with their
parent (PR_SET_PDEATHSIG), so that a killed harness leaves no spinning process behind.
"""

import ctypes
import os
import resource
import signal
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.harness.figures import Figures, figures_of
from shmbroker.perf.harness.gate import Context, Gate
from shmbroker.perf.harness.peer import Endpoint, Peer
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.role_result import RoleResult
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.harness.verdict import check
from shmbroker.perf.machine.histograms import histogram_of
from shmbroker.perf.machine.workspace import Workspace

STARTING: Context = get_context("spawn")
"""How a child begins: as a process in which nothing else has been done."""
LIMIT_S = 120.0
EXIT_S = 5.0
_PR_SET_PDEATHSIG = 1


class RunFailed(Exception):
    """The run has no figures; the message says which process failed and why."""


@dataclass(slots=True)
class RunRecord:
    """What a run that succeeded came to."""

    plan: Plan
    figures: Figures
    preempted: int = 0
    """How often the kernel took a core from one of the processes' threads. Strangers were there,
    unless the topology has more processes than cores or the peer has threads of its own."""
    left_behind: list[str] = field(default_factory=list)
    histogram: Histogram | None = None
    """Of the round trips that were timed one by one."""


@dataclass(frozen=True, slots=True)
class _Report:
    """What a child sends home when all went well; else it sends text."""

    result: RoleResult
    preempted: int


@dataclass(slots=True)
class _Player:
    seat: Seat
    process: BaseProcess
    reports: Connection


def run(peer: Peer, plan: Plan, limit_s: float = LIMIT_S) -> RunRecord:
    """The whole run, checked. Raises RunFailed, SumsDiffer, or what setup raised."""
    with Workspace() as workspace:
        endpoint = peer.setup(plan, workspace)
        try:
            reports = _perform(peer, endpoint, plan, limit_s)
        finally:
            peer.teardown(endpoint)
    results = [report.result for report in reports]
    check(plan.task.topology, results)
    preempted = sum(report.preempted for report in reports)
    singles = results[0].singles_ns
    trips = histogram_of(singles) if len(singles) else None
    return RunRecord(plan, figures_of(plan, results), preempted, workspace.left_behind, trips)


def _perform(peer: Peer, endpoint: Endpoint, plan: Plan, limit_s: float) -> list[_Report]:
    context = STARTING
    topology = plan.task.topology
    seats = topology.seats()
    gate = Gate(context, len(seats), topology.receivers)
    cores = sorted(os.sched_getaffinity(0))
    players: list[_Player] = []
    patience_s = 0.0
    try:
        for number, seat in enumerate(seats):
            ours, theirs = context.Pipe(duplex=False)
            core = cores[number % len(cores)]
            arguments = (peer, seat, endpoint, plan, gate, core, theirs)
            process = context.Process(target=_play, args=arguments, daemon=True)
            process.start()
            players.append(_Player(seat, process, ours))
            theirs.close()
        collected = _collect(players, limit_s)
        patience_s = EXIT_S
        return collected
    finally:
        _end(players, patience_s)


def _play(
    peer: Peer,
    seat: Seat,
    endpoint: Endpoint,
    plan: Plan,
    gate: Gate,
    core: int,
    reports: Connection,
) -> None:
    """The child's whole life."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    os.sched_setaffinity(0, {core})
    try:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        result = peer.run_role(seat, endpoint, plan, gate)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        reports.send(_Report(result, after - before))
    except Exception:  # noqa: BLE001 - whatever it was, the parent reports it
        reports.send(traceback.format_exc(limit=-3))


def _collect(players: Sequence[_Player], limit_s: float) -> list[_Report]:
    deadline = time.monotonic() + limit_s
    collected: dict[Connection, _Report] = {}
    while pending := [player.reports for player in players if player.reports not in collected]:
        ready = wait(pending, max(0.0, deadline - time.monotonic()))
        if not ready:
            raise RunFailed(f"not finished after {limit_s:g} s: ended by the watchdog")
        for player in players:
            if player.reports in ready:
                collected[player.reports] = _report_of(player)
    return [collected[player.reports] for player in players]


def _report_of(player: _Player) -> _Report:
    who = f"{player.seat.role} {player.seat.index}"
    try:
        report = player.reports.recv()
    except EOFError:
        player.process.join(EXIT_S)
        raise RunFailed(f"{who} died (exit code {player.process.exitcode})") from None
    if not isinstance(report, _Report):
        raise RunFailed(f"{who} failed: {report}")
    return report


def _end(players: Sequence[_Player], patience_s: float) -> None:
    """Let the processes end by themselves for so long, then end those that did not."""
    deadline = time.monotonic() + patience_s
    for player in players:
        player.process.join(max(0.0, deadline - time.monotonic()))
        if player.process.is_alive():
            player.process.kill()
            player.process.join()
        player.process.close()
        player.reports.close()
