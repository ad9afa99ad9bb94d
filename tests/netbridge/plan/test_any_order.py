"""Plans under events in any order: what holds after each of them."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from shmbroker.netbridge.plan.action import Changed, Lost, NoMember, Present
from shmbroker.netbridge.plan.plans import Draft, drafts
from shmbroker.netbridge.plan.state import State
from shmbroker.netbridge.plan.terms import Owner
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.wire.words import Refusal
from tests.support.plan_world import World, within, world

steps = st.lists(
    st.sampled_from(["wake", "lose", "silent", "malformed", "stop", "start", "round", "active",
                     "held", "hold failed", "drained", "offered", "flip", "move"]),
    max_size=60,
)  # fmt: skip
FORMS = [
    "static:(a)",
    "failover:(a,b,c)",
    "failover:(a,b,c)?backup=true&backup-pool-size=2&priority-backup=true",
    "failover:(a,b)?max-reconnect-attempts=2&startup-max-reconnect-attempts=3",
    "masterslave:(a,b,c)",
    "failover:(a,failover:(b,c))?max-reconnect-attempts=0",
]


def step(one: World, name: str, chance: random.Random) -> None:
    plan, now = one.plan, one.now
    member = chance.choice(plan.members)
    match name:
        case "wake":
            if plan.due is not None:
                one.now = max(plan.due, now)
                one.take(plan.woken(one.now))
        case "silent":
            one.take(plan.lost(now, "silence", is_silent=True))
        case "lose" | "malformed":
            one.lose(after=chance.random() * 3, is_malformed=name == "malformed")
        case "stop" | "start" | "round" | "drained":
            one.take(getattr(plan, name)(now))
        case "active":
            one.take(plan.active(member, now))
        case "held":
            one.take(plan.held(member))
        case "hold failed":
            plan.hold_failed(member, now)
        case "offered":
            one.take(plan.offered(tuple(Single(each) for each in "bcd"), now))
        case "move":
            one.take(plan.move_asked(member))
        case _:
            for host in "abcd":
                one.does[host] = chance.choice(["up", "down", *Refusal])


@given(st.sampled_from(FORMS), steps, st.integers(0, 1000), st.sampled_from(["link", "program"]))
def test_whatever_happens(form: str, names: list[str], seed: int, owner: Owner) -> None:
    [draft] = drafts(parse(form), owner)
    one = World(draft.plan(random.Random(seed)))
    chance = random.Random(seed)
    one.start()
    for name in names:
        step(one, name, chance)
        check(one, draft)


def check(one: World, draft: Draft) -> None:
    plan = one.plan
    assert (plan.state is State.UP) == (plan.present is not None)
    ends = [each for _, each in one.all if isinstance(each, (Present, Lost))]
    assert [type(each) for each in ends] == ([Present, Lost] * len(ends))[: len(ends)]
    lines = [each for _, each in one.all if isinstance(each, Changed)]
    assert all(each.seconds >= 0 for each in lines)
    if plan.due is not None and plan.state is not State.UP:
        longest = max(draft.terms.pace.longest, 60.0)
        assert plan.due <= one.now + longest
    if plan.state in (State.BACKOFF, State.UNREACHABLE) and plan.due is None:
        assert one.of(NoMember), "who waits for nothing has told the owner"


@given(st.integers(0, 10_000), st.floats(0.001, 60), st.floats(1, 10))
def test_pauses_are_within_their_bounds(seed: int, first: float, growth: float) -> None:
    longest = max(30.0, first)
    text = (
        f"failover:(a)?initial-reconnect-delay={first:.3f}s&max-reconnect-delay={longest:.3f}s"
        f"&reconnect-delay-exponent={growth:.3f}"
    )
    one = world(text, seed=seed).start()
    wanted = round(first, 3)
    for _ in range(30):
        assert within(one.wake(), wanted, round(longest, 3))
        wanted = min(wanted * round(growth, 3), round(longest, 3))
