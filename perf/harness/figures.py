"""The figures of one run: what its times and counts come to."""

from collections.abc import Sequence

import numpy as np

from shmbroker.perf.harness.plan import GROUP_LENGTH, Plan
from shmbroker.perf.harness.role_result import RoleResult

Figures = dict[str, float]
"""By name, units last: p50_ns, p99_ns, ... for round trips; messages_per_s, gb_per_s, ... else."""


def figures_of(plan: Plan, results: Sequence[RoleResult]) -> Figures:
    """Results are in seat order."""
    if plan.task.topology.measures_latency:
        return round_trip_figures(results[0])
    return stream_figures(plan, results)


def round_trip_figures(initiator: RoleResult) -> Figures:
    """By the measuring rule in plan.py."""
    singles = initiator.singles_ns
    return {
        "p50_ns": float(np.median(initiator.groups_ns)) / GROUP_LENGTH,
        "p99_ns": float(np.percentile(singles, 99)),
        "p999_ns": float(np.percentile(singles, 99.9)),
        "max_ns": float(singles.max()),
        "singles_p50_ns": float(np.median(singles)),
    }


def stream_figures(plan: Plan, results: Sequence[RoleResult]) -> Figures:
    """From the first sender's start to the last receiver's last message."""
    roles = [seat.role for seat in plan.task.topology.seats()]
    paired = list(zip(roles, results, strict=True))
    started = min(result.started_ns for role, result in paired if role == "sender")
    finished = max(result.finished_ns for role, result in paired if role == "receiver")
    messages = plan.count * plan.task.topology.senders
    duration_s = max(finished - started, 1) / 1e9
    figures = {
        "messages_per_s": messages / duration_s,
        "ns_per_message": duration_s * 1e9 / messages,
        "duration_s": duration_s,
    }
    if plan.task.mode != "loan":  # there nothing is moved, however large the message
        figures["gb_per_s"] = messages * plan.task.size / duration_s / 1e9
    return figures
