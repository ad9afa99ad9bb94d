"""What people see of a member: its state as an instance, and the line `replication`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.standing import SERVING, State

STATES: Final = {
    State.STARTING: "starting",
    State.PROMOTING: "promoting",
    State.BEGINNING: "restoring",
    State.HANDING_OVER: "handing over",
    State.STOPPED: "stopped",
    State.FAILED: "failed",
}
"""Of an instance; of those that serve it is live, of all others passive."""


def state_of(machine: Member) -> str:
    if machine.state in STATES:
        return STATES[machine.state]
    return "live" if machine.state in SERVING else "passive"


def replication_of(machine: Member) -> str:
    """One line."""
    state, why = machine.state, machine.why
    if state is State.LIVE:
        is_guarded = machine.options.electorate is None or machine.options.votes
        return "in sync" if is_guarded else "in sync, unguarded"
    if state is State.IN_SYNC and not machine.is_eligible:
        return State.SYNCING.value  # it was told, and the last of it is being written
    text: str = state.value
    if state in (State.HELD, State.WAITING, State.REFUSED, State.FENCED, State.CONFLICT,
                 State.SUSPENDED):  # fmt: skip
        return f"{text}: {why}" if why else text
    return text


def level_of(machine: Member) -> str:
    """That durable queues have now."""
    return machine.effective_level.value if machine.state in SERVING else ""


def whole(machine: Member, lag: Callable[[str], Mapping[str, object]]) -> dict[str, Any]:
    """For `ha status`.  `lag`: of a replica."""
    return {
        "member": machine.me,
        "role": "preferred" if machine.options.is_preferred else "backup",
        "state": state_of(machine),
        "replication": replication_of(machine),
        "node": machine.node.hex(),
        "epoch": machine.epoch,
        "level": level_of(machine),
        "live": machine.me if machine.state in SERVING else machine.live,
        "in-sync": sorted(copy.member for copy in machine.copies),
        "replicas": [
            {
                "member": each.member,
                "in-sync": each.member in machine.counted and each.is_announced,
                **lag(each.member),
            }
            for each in machine.followers.values()
        ],
        "linked": sorted(machine.links),
        "voters": {
            voter: "linked" if voter in machine.voters else "not reached"
            for voter in (machine.options.electorate.voters if machine.options.electorate else ())
        },
    }
