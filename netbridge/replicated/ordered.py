"""What people order of a member: `shmbroker ha` and `stop --no-handover`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shmbroker.netbridge.member.standing import FOLLOWING, LOOKING, SERVING, State
from shmbroker.netbridge.replicated.acting import Acting
from shmbroker.netbridge.replicated.process import now

Line = Callable[..., None]


def order(acting: Acting, given: Mapping[str, Any], line: Line) -> str:
    """In the network thread; why it is not done, or nothing."""
    machine, verb = acting.machine, str(given.get("verb"))
    state = machine.state
    if verb == "ping":
        return ""
    if verb == "stop":
        acting.does(machine.stop(now(), hands_over=False))
        return ""
    if verb == "handover":
        return _hand_over(acting, str(given.get("member", "")))
    if verb == "continue":
        if state is not State.SUSPENDED:
            return f"{machine.me} is {state.value}, not suspended: there is nothing to continue"
        line("audit", verb=verb, user=given.get("user"), epoch=machine.epoch)
        acting.does(machine.continues(now()))
        return ""
    if verb == "yield":
        if state is not State.CONFLICT:
            return f"{machine.me} is {state.value}: there is no conflict to yield in"
        line("audit", verb=verb, user=given.get("user"), epoch=machine.epoch)
        acting.does(machine.yields(now()))
        return ""
    if verb == "promote" and state in FOLLOWING:
        return _ask_live(acting, given, line)
    if verb in ("activate", "promote"):
        return _activate(acting, given, line)
    return f"a member does not {verb!r}"


def _hand_over(acting: Acting, wanted: str) -> str:
    machine = acting.machine
    if machine.state not in SERVING:
        return f"{machine.me} is {machine.state.value}, and has nothing to hand over"
    to = wanted or machine.announced
    if not to:
        return f"no replica is in sync with {machine.me}"
    acting.does(machine.hands_over(to, now()))
    if machine.state is not State.HANDING_OVER:
        return f"{to} is not in sync with {machine.me}"
    return ""


def _ask_live(acting: Acting, given: Mapping[str, Any], line: Line) -> str:
    machine = acting.machine
    if machine.state is not State.IN_SYNC:
        return f"{machine.me} still catches up with {machine.live}, which serves"
    line("audit", verb="promote", user=given.get("user"), epoch=machine.epoch)
    acting.does(machine.asks_for_role(now()))
    return ""


def _activate(acting: Acting, given: Mapping[str, Any], line: Line) -> str:
    machine = acting.machine
    is_forced = bool(given.get("force"))
    if machine.state not in LOOKING | FOLLOWING:
        return f"{machine.me} is {machine.state.value}, and cannot be activated"
    if not machine.node:
        return f"{machine.me} has no journal of the node yet"
    if not is_forced and not machine.is_eligible:
        return f"{machine.me} may lack what was confirmed: --force activates it all the same"
    if not is_forced and machine.rivals:
        return (f"{machine.rivals} may be live, or become live just now: --force activates "
                f"{machine.me} all the same")  # fmt: skip
    if not is_forced and machine.unmet:
        return (f"{machine.me} does not hear of {machine.unmet} as of a member of this node, and "
                "nobody can be asked whether it is live: --force activates it all the same")
    if machine.state is State.PARKED and not is_forced:
        machine.is_parked = False
    former, actions = machine.epoch, machine.command(is_forced=is_forced, now=now())
    granted = machine.granted if is_forced else None
    line("audit", verb=str(given.get("verb")), force=is_forced, user=given.get("user"),
         epoch=former, then="" if granted is None else granted.epoch)  # fmt: skip
    acting.does(actions)
    return ""
