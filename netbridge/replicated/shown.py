"""What people see of a member: its state as an instance, and the line `replication`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from shmbroker.netbridge.member.draining import Phase
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.standing import SERVING, State
from shmbroker.netbridge.member.written import place_of

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
    if machine.phase is Phase.DRAINING:
        return STATES[State.HANDING_OVER]
    is_live = machine.state in SERVING and machine.phase is Phase.NONE
    return "live" if is_live else "passive"


def replication_of(machine: Member, progress: str = "") -> str:
    """One line.  `progress`: of a sync."""
    state, why = machine.state, machine.why
    if state in (State.LIVE, State.ALONE) and machine.is_isolated:
        return f"{State.SUSPENDED.value}: {machine.isolation}"
    if state in (State.LIVE, State.ALONE) and machine.phase is not Phase.NONE:
        waits = f", waits for {machine.original}" if machine.phase is Phase.DRAINED else ""
        return f"{machine.phase.value}{waits}"
    if state is State.LIVE:
        is_guarded = machine.options.electorate is None or machine.options.votes
        return "in sync" if is_guarded else "in sync, unguarded"
    if state is State.IN_SYNC and not machine.is_eligible:
        return State.SYNCING.value  # it was told, and the last of it is being written
    text: str = state.value
    if state is State.SYNCING and progress:
        return f"{text} {progress}"
    if state in (State.HELD, State.WAITING, State.REFUSED, State.FENCED, State.CONFLICT,
                 State.SUSPENDED):  # fmt: skip
        return f"{text}: {why}" if why else text
    return text


def level_of(machine: Member) -> str:
    """That durable queues have now."""
    return machine.effective_level.value if machine.state in SERVING else ""


def known(machine: Member, member: str) -> dict[str, Any]:
    """For `ha status --all`: what this member knows of one, itself or another."""
    is_me = member == machine.me
    hello = machine.hello if is_me else machine.peers.get(member)
    told: dict[str, Any] = {
        "member": member,
        "linked": is_me or member in machine.links,
        "state": "not reached",
        "in-sync": any(copy.member == member for copy in machine.copies),
        "epoch": None,
        "frame": None,
    }
    if hello is None:
        return told
    state = replication_of(machine) if is_me else "live" if hello.serves else "passive"
    return told | {
        "state": state_of(machine) if is_me and machine.state in SERVING else state,
        "epoch": hello.epoch,
        "frame": str(place_of(hello.last)),
    }


def whole(
    machine: Member, lag: Callable[[str], Mapping[str, object]], progress: str
) -> dict[str, Any]:
    """For `ha status`.  `lag`: of a replica; `progress`: of a sync here."""
    return {
        "member": machine.me,
        "role": "preferred" if machine.options.is_preferred else "backup",
        "state": state_of(machine),
        "replication": replication_of(machine, progress),
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
        "members": [
            known(machine, member)
            for member in dict.fromkeys((*machine.options.members, *machine.peers))
        ],
        "voters": {
            voter: "linked" if voter in machine.voters else "not reached"
            for voter in (machine.options.electorate.voters if machine.options.electorate else ())
        },
    }
