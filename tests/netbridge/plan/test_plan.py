"""Plans by a pretended clock: members, rounds, pauses, refusals, what the owner is told."""

from __future__ import annotations

import random

import pytest

from shmbroker import InvalidArgument
from shmbroker.netbridge.plan.action import (
    Changed,
    Connect,
    Disconnect,
    Hold,
    Lost,
    Move,
    NoMember,
    Present,
    ReadMembers,
    Refused,
    Release,
)
from shmbroker.netbridge.plan.plan import CLOSED_SECONDS, SILENT_SECONDS
from shmbroker.netbridge.plan.plans import drafts, of_member
from shmbroker.netbridge.plan.state import FINAL, LATER, State
from shmbroker.netbridge.plan.terms import Owner, of_session
from shmbroker.netbridge.plan.text import parse
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.wire.words import Refusal
from tests.support.plan_world import World, within, world

# --- what the forms mean --------------------------------------------------------------------------


def test_a_loss_may_say_whom_to_try_first() -> None:
    one = world("failover:(a,b,c)?randomize=false", a="up").start()
    one.tried.clear()
    one.does["a"] = "down"
    one.lose(first=(one.plan.members[2],))
    assert one.tried == ["c", "a", "b"]
    one.tried.clear()
    one.wake()
    assert one.tried == ["a", "b", "c"], "once"


def test_static_has_one_link_to_each_member_each_on_its_own() -> None:
    found = drafts(parse("static:(a,failover:(b,c),static:(d,e))"))
    assert [[each.host for each in one.plan(random.Random(1)).members] for one in found] == [
        ["a"], ["b", "c"], ["d"], ["e"],
    ]  # fmt: skip


def test_a_member_of_static_is_tried_again_for_ever() -> None:
    one = world("static:(a)").start()
    pauses = [one.wake() for _ in range(200)]
    wanted = [min(2.0**n, 30) for n in range(200)]
    assert all(within(each, want, 30) for each, want in zip(pauses, wanted, strict=True))
    assert len(set(pauses)) > 100, "there is jitter"


def test_failover_has_one_link_to_one_member() -> None:
    one = world("failover:(a,b,c)?randomize=false", b="up", c="up").start()
    assert one.tried == ["a", "b"]
    assert one.plan.present == Single("b")
    assert one.plan.due is None


def test_static_failover_is_on_one_member_never_on_both() -> None:
    one = world("static:failover:(a,b)?randomize=false", a="up", b="up").start()
    assert [each.member.host for each in one.of(Present)] == ["a"]  # type: ignore[union-attr]
    one.does["a"] = "down"
    one.lose()
    assert one.plan.present == Single("b")
    assert one.tried == ["a", "a", "b"]


def test_masterslave_is_exactly_what_the_table_says() -> None:
    pace = "&initial-reconnect-delay=1s&max-reconnect-delay=30s&warn-after-reconnect-attempts=3"
    [ours] = drafts(parse("masterslave:(a,b,c)?initial-reconnect-delay=1s&max-reconnect-delay=30s"))
    [long] = drafts(parse(
        "static:failover:(a,b,c)?randomize=false&max-reconnect-attempts=0" + pace
    ))  # fmt: skip
    assert ours == long
    [plain] = drafts(parse("masterslave:(a,b)"))
    assert plain.terms.owner_pace == ours.terms.owner_pace
    assert (plain.terms.is_random, plain.terms.rounds, plain.terms.startup_rounds) == (False, 0, 0)
    assert plain.terms.warn_after == 3


def test_masterslave_rounds_are_its_owners() -> None:
    one = world("masterslave:(a,b)").start()
    pauses = [one.wake() for _ in range(8)]
    assert all(within(each, min(2.0**n, 30), 30) for n, each in enumerate(pauses)), pauses
    assert one.tried == ["a", "b"] * 9
    assert len(one.of(NoMember)) == 1
    one.does["a"] = "up"
    one.wake()
    one.does.clear()
    one.lose()
    one.wake()
    assert len(one.of(NoMember)) == 2, "once for each loss"


def test_lists_inside_of_a_list_stay_together() -> None:
    orders = set()
    for seed in range(200):
        one = world("failover:(a,failover:(b,c)?randomize=false,masterslave:(d,e))", seed=seed)
        orders.add("".join(one.start().tried))
    assert orders == {"abcde", "adebc", "bcade", "bcdea", "deabc", "debca"}


def test_nested_parameters_are_those_of_each_member() -> None:
    [one] = drafts(
        parse("failover:(a,b?call-timeout=5)?nested.call-timeout=7&nested.window-size=5")
    )
    a, b = one.plan(random.Random(1)).members
    assert dict(a.values) == {"call-timeout": 0.007, "window-size": 5}
    assert dict(b.values) == {"call-timeout": 0.005, "window-size": 5}


# --- each parameter -------------------------------------------------------------------------------


def test_randomize() -> None:
    orders = {"".join(world("failover:(a,b,c)", seed=s).start().tried) for s in range(100)}
    assert len(orders) == 6
    fixed = {
        "".join(world("failover:(a,b,c)?randomize=no", seed=s).start().tried) for s in range(20)
    }
    assert fixed == {"abc"}


def test_max_reconnect_attempts() -> None:
    one = world("failover:(a,b)?max-reconnect-attempts=3&randomize=no", a="up").start()
    one.does.clear()
    one.lose()
    assert not one.of(NoMember)
    one.wake()
    one.wake()
    [told] = one.of(NoMember)
    assert isinstance(told, NoMember)
    assert dict(told.said) == {Single("a"): "a is down", Single("b"): "b is down"}
    assert one.plan.due is None
    assert one.tried == ["a", "a", "b", "a", "b", "a", "b"]


def test_max_reconnect_attempts_minus_1_is_for_ever() -> None:
    one = world("failover:(a,b)", a="up", b="up").start()
    one.does.clear()
    one.lose()
    for _ in range(500):
        one.wake()
    assert not one.of(NoMember)


def test_max_reconnect_attempts_0_the_owner_asks_for_each_round() -> None:
    one = world("failover:(a,b)?max-reconnect-attempts=0&randomize=no", a="up").start()
    one.does.clear()
    one.lose()
    assert [type(each) for _, each in one.all[-3:]] == [Disconnect, Lost, NoMember]
    assert one.plan.due is None
    assert one.tried == ["a"]
    one.take(one.plan.round(one.now))
    assert one.tried == ["a", "a", "b"], "each member once"
    assert one.plan.due is None
    one.does["b"] = "up"
    one.take(one.plan.round(one.now))
    assert one.plan.present == Single("b")


def test_startup_max_reconnect_attempts() -> None:
    one = world("failover:(a,b)?startup-max-reconnect-attempts=2").start()
    assert not one.of(NoMember)
    one.wake()
    assert len(one.of(NoMember)) == 1
    assert one.plan.due is None


def test_startup_max_reconnect_attempts_of_a_program_is_1() -> None:
    for text in ("failover:(a,b)", "tcp://a"):
        one = world(text, "program").start()
        [told] = one.of(NoMember)
        assert isinstance(told, NoMember)
        assert told.said[Single("a")] == "a is down"
        assert one.plan.due is None


def test_initial_reconnect_delay_and_max_reconnect_delay() -> None:
    for owner, longest in (("link", 30.0), ("program", 2.0)):
        one = world("failover:(a)?startup-max-reconnect-attempts=-1", owner).start()  # type: ignore[arg-type]
        pauses = [one.wake() for _ in range(20)]
        assert all(
            within(each, min(0.01 * 2**n, longest), longest) for n, each in enumerate(pauses)
        )


def test_use_exponential_back_off() -> None:
    one = world("failover:(a)?use-exponential-back-off=false&initial-reconnect-delay=3s").start()
    assert all(within(one.wake(), 3, 30) for _ in range(10))


def test_reconnect_delay_exponent_and_back_off_multiplier() -> None:
    one = world("failover:(a)?reconnect-delay-exponent=10").start()
    assert [within(one.wake(), 0.01 * 10**n, 30) for n in range(4)] == [True] * 4
    one = world("static:(a)?back-off-multiplier=3&initial-reconnect-delay=100").start()
    assert [within(one.wake(), 0.1 * 3**n, 30) for n in range(5)] == [True] * 5


def test_timeout() -> None:
    assert world("failover:(a)").plan.terms.publish_timeout == -1
    assert world("failover:(a)?timeout=5s").plan.terms.publish_timeout == 5.0


@pytest.mark.parametrize(
    ("text", "rounds"),
    [("failover:(a,b)", 10), ("static:(a)", 3), ("masterslave:(a,b)", 3),
     ("failover:(a)?warn-after-reconnect-attempts=2", 2)],
)  # fmt: skip
def test_warn_after_reconnect_attempts(text: str, rounds: int) -> None:
    one = world(text).start()
    for _ in range(rounds - 1):
        assert one.plan.state is State.BACKOFF
        assert not one.lines
        one.wake()
    assert one.plan.state is State.UNREACHABLE
    assert one.lines == ["unreachable"]


@pytest.mark.parametrize("never", ["0", "-1", "-7"])
def test_warn_after_reconnect_attempts_never(never: str) -> None:
    one = world(f"static:(a)?warn-after-reconnect-attempts={never}").start()
    for _ in range(100):
        one.wake()
    assert not one.lines


def test_backup_and_backup_pool_size() -> None:
    one = world("failover:(a,b,c,d)?backup=true&backup-pool-size=2&randomize=no", a="up").start()
    assert [each.member.host for each in one.of(Hold)] == ["b", "c"]  # type: ignore[union-attr]
    one.plan.hold_failed(Single("b"), one.now)
    one.take(one.plan.held(Single("c")))
    assert one.wake() == pytest.approx(0.01, rel=0.1)
    one.does = {"a": "up", "c": "up"}
    one.lose()
    assert one.plan.present == Single("c"), "who is held is tried first"
    assert next(each for _, each in reversed(one.all) if isinstance(each, Connect)).is_held


def test_priority_backup_moves_when_a_preferred_member_is_ready() -> None:
    one = world("failover:(a,b)?priority-backup=true&randomize=no", b="up").start()
    assert one.plan.present == Single("b")
    assert one.of(Hold) == [Hold(Single("a"))]
    for _ in range(20):
        one.plan.hold_failed(Single("a"), one.now)
        one.wake()
    assert len(one.of(Hold)) == 21
    one.does["a"] = "up"
    one.take(one.plan.held(Single("a")))
    assert one.all[-1][1] == Move(Single("a"))
    assert one.plan.present == Single("b"), "the batch in flight is finished first"
    one.take(one.plan.drained(one.now))
    kinds = [type(each) for _, each in one.all[-5:]]
    assert kinds == [Disconnect, Lost, Connect, Present, Changed]
    assert one.plan.present == Single("a")
    assert one.lines == ["up", "up"], "another other end is a line"


def test_priority_uris() -> None:
    one = world(
        "failover:(a,b,c)?priority-backup=true&priority-uris=b,c:61616&randomize=no", a="up"
    ).start()
    assert [each.member.host for each in one.of(Hold)] == ["b", "c"]  # type: ignore[union-attr]
    one = world("failover:(a,b)?priority-backup=true&randomize=no", a="up").start()
    assert not one.of(Hold), "the first one is the preferred one"


def test_update_uris_supported() -> None:
    pushed = (Single("x"), Single("y"))
    for flag, wanted in (("true", ["x", "y"]), ("false", ["a"])):
        one = world(f"failover:(a)?update-uris-supported={flag}&randomize=no", a="up").start()
        one.take(one.plan.offered(pushed, one.now))
        assert one.plan.present == Single("a"), "a list that is pushed ends no link"
        one.does.clear()
        one.lose()
        assert one.tried == ["a", *wanted]


def test_update_uris_url_is_read_in_each_round() -> None:
    one = world("failover:(a)?update-uris-url=file:/m").start()
    one.wake()
    assert one.of(ReadMembers) == [ReadMembers("file:/m")] * 2


def test_reconnect_supported() -> None:
    one = world("failover:(a,b)?randomize=no", a="up", b="up").start()
    one.take(one.plan.move_asked(Single("b")))
    one.take(one.plan.move_asked(Single("b")))
    assert one.of(Move) == [Move(Single("b"))]
    one.take(one.plan.drained(one.now))
    assert one.plan.present == Single("b")
    one = world("failover:(a,b)?randomize=no&reconnect-supported=no", a="up").start()
    one.take(one.plan.move_asked(Single("b")))
    assert not one.of(Move)


def test_track_messages_and_max_cache_size_have_no_effect() -> None:
    assert drafts(parse("failover:(a)?track-messages=true&max-cache-size=5")) != ()
    [one], [other] = (
        drafts(parse(f"failover:(a){each}")) for each in ("", "?trackMessages=1&maxCacheSize=1")
    )
    assert one == other


def test_what_a_session_is_told() -> None:
    told = of_session({"reconnect-deadline": 5.0})
    assert told["reconnect-deadline"] == 5.0
    assert (told["failover-mode"], told["call-failover-timeout"]) == ("automatic", -1)
    assert (told["confirmation-window"], told["load-balancing"]) == (1 << 20, "round-robin")


def test_without_a_window_no_call_could_be_answered() -> None:
    with pytest.raises(InvalidArgument, match="confirmation-window"):
        drafts(parse("tcp://h?confirmation-window=0"))


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("refusal", sorted(LATER, key=str))
def test_a_refused_link_is_tried_again_after_its_interval(refusal: Refusal) -> None:
    one = world("static:(a)", a=refusal).start()
    assert one.plan.state is State.REFUSED
    for _ in range(5):
        assert one.wake() == pytest.approx(60)
    assert one.lines == ["refused"]
    assert len(one.of(Refused)) == 6


def test_refused_retry_interval_minus_1_waits_for_a_start() -> None:
    one = world("static:(a)", retry=-1, a=Refusal.CREDENTIALS).start()
    assert one.plan.due is None
    one.does["a"] = "up"
    one.start()
    assert one.plan.state is State.UP


@pytest.mark.parametrize("refusal", sorted(FINAL, key=str))
def test_a_final_refusal_is_not_tried_again(refusal: Refusal) -> None:
    one = world("static:(a)", a=refusal).start()
    assert one.plan.state is State.REFUSED
    assert one.plan.due is None
    assert one.of(Refused) == [Refused(Single("a"), refusal, f"{refusal.value} of a")]
    one = world("failover:(a,b)?randomize=no", a=refusal).start()
    for _ in range(5):
        one.wake()
    assert one.tried == ["a"] + ["b"] * 6, "the other member is tried without it"


@pytest.mark.parametrize("refusal", [Refusal.VERSION, Refusal.BUSY])
def test_what_may_be_otherwise_soon_goes_through_back_off(refusal: Refusal) -> None:
    one = world("static:(a)", a=refusal).start()
    assert one.plan.state is State.FAILED
    pauses = [one.wake() for _ in range(10)]
    assert all(within(each, min(2.0**n, 30), 30) for n, each in enumerate(pauses))
    assert one.lines == ["failed"]


def test_passive_goes_on_to_the_next_member() -> None:
    one = world("failover:(a,b)?randomize=no", a=Refusal.PASSIVE, b="up").start()
    assert one.plan.present == Single("b")
    assert one.lines == ["up"]
    assert Disconnect(Single("a")) not in one.of(Disconnect), "it may say later that it is active"


def test_a_passive_member_names_the_live() -> None:
    one = world("failover:(a,b,c)?randomize=no", c="up")
    first = next(iter(one.plan.start(one.now)))
    assert first == Connect(Single("a"))
    live = Single("c")
    one.take(one.plan.refused(one.now, Refusal.PASSIVE, "passive", live))
    assert one.tried == ["c"]


@pytest.mark.parametrize(
    ("uri", "owner", "tried"),
    [
        ("failover:(a,b)?randomize=no", "program", ["c"]),
        ("failover:(a,b)?randomize=no&update-uris-supported=no", "program", ["b"]),
        ("failover:(a,b)?randomize=no", "link", ["b"]),
        ("tcp://a", "program", []),
    ],
)
def test_a_passive_member_names_a_live_that_is_not_in_the_list(
    uri: str, owner: Owner, tried: list[str]
) -> None:
    """A program with a list goes there; a single address is that broker and no other."""
    one = world(uri, owner, b="up", c="up")
    list(one.plan.start(one.now))
    one.take(one.plan.refused(one.now, Refusal.PASSIVE, "passive", Single("c")))
    assert one.tried == tried


def test_who_is_named_and_has_been_tried_is_not_tried_again_in_this_round() -> None:
    one = world("failover:(a)?max-reconnect-attempts=1", "program")
    list(one.plan.start(one.now))
    one.take(one.plan.refused(one.now, Refusal.PASSIVE, "passive", Single("c")))
    assert one.tried == ["c"]  # and it fails
    one.take(one.plan.refused(one.now, Refusal.PASSIVE, "passive", Single("c")))
    assert one.tried == ["c"]


def test_a_passive_member_says_that_it_is_active() -> None:
    one = world("static:(a)", a=Refusal.PASSIVE).start()
    assert one.plan.state is State.PEER_PASSIVE
    one.does["a"] = "up"
    one.take(one.plan.active(Single("a"), one.now))
    assert one.plan.state is State.UP
    assert one.lines == ["peer-passive", "up"]


def test_a_passive_member_that_is_active_goes_before_one_that_does_not_answer() -> None:
    """The former live stands still, and its backup has just taken over."""
    one = world("failover:(b,a,c)?randomize=no", "program", b="down")
    first = next(iter(one.plan.start(one.now)))
    assert first == Connect(Single("b"))
    asked = list(one.plan.refused(one.now, Refusal.PASSIVE, "passive", Single("a")))
    assert Connect(Single("a")) in asked, "nothing is heard of it"
    one.does["b"] = "up"
    said = list(one.plan.active(Single("b"), one.now))
    assert said == [Disconnect(Single("a")), Connect(Single("b"))]
    assert list(one.plan.attempt_failed(one.now, "it has ended"))[1] == Connect(Single("c"))
    assert list(one.plan.attempt_failed(one.now, "nobody"))[1] == Connect(Single("a"))


@pytest.mark.parametrize(
    ("is_silent", "seconds"), [(True, SILENT_SECONDS), (False, CLOSED_SECONDS)]
)
def test_who_is_lost_is_tried_and_the_others_do_not_wait_for_it(
    is_silent: bool, seconds: float
) -> None:
    one = world("failover:(a,b)?randomize=no", "program", a="up").start()
    one.now += 10
    said = list(one.plan.lost(one.now, "lost", is_silent=is_silent))
    assert said[-1] == Connect(Single("a")), "it may be there still"
    assert one.plan.due == pytest.approx(one.now + seconds)
    one.now += seconds
    assert list(one.plan.woken(one.now)) == [Disconnect(Single("a")), Connect(Single("b"))]
    assert list(one.plan.attempt_failed(one.now, "nobody"))[1] == Connect(Single("a"))
    assert one.plan.due is None, "this time for as long as it takes"


def test_who_fell_silent_and_answers_is_waited_for() -> None:
    one = world("failover:(a,b)?randomize=no", "program", a="up").start()
    one.now += 10
    list(one.plan.lost(one.now, "silence", is_silent=True))
    one.plan.welcomed()
    one.now += SILENT_SECONDS
    assert not list(one.plan.woken(one.now))
    assert one.plan.due is None


def test_static_over_a_live_and_its_passive_slave_has_one_line_each() -> None:
    for does, line in (("down", "unreachable"), (Refusal.PASSIVE, "peer-passive")):
        live, slave = (
            World(each.plan(random.Random(3))) for each in drafts(parse("static:(live,slave)"))
        )
        live.does["live"] = "up"
        slave.does["slave"] = does
        live.start()
        slave.start()
        for _ in range(1000):
            slave.wake()
        assert (live.lines, slave.lines) == (["up"], [line])
        assert len(slave.tried) == 1001, "one connection per back-off"


# --- losses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["static:(a)", "failover:(a,b)", "failover:(a,b)?max-reconnect-attempts=0", "masterslave:(a,b)",
     "failover:(a,b)?max-reconnect-attempts=5", "tcp://a"],
)  # fmt: skip
def test_every_loss_is_told_to_the_owner(text: str) -> None:
    """Whatever the number of attempts: else a bridge bears the name of a dead broker."""
    one = world(text, a="up", b="up").start()
    for _ in range(5):
        one.lose()
        if one.plan.present is None:
            one.take(one.plan.round(one.now))
    told = [each for _, each in one.all if isinstance(each, (Present, Lost))]
    assert [type(each) for each in told] == [Present, Lost] * 5 + [Present]
    for up, lost in zip(told[::2], told[1::2], strict=False):
        assert up.member == lost.member
    for at, (_, each) in enumerate(one.all):
        if isinstance(each, Lost):
            assert one.all[at - 1][1] == Disconnect(each.member), "the bridge is closed before"


def test_after_a_loss_the_first_round_begins_at_once() -> None:
    for text in ("static:(a)", "failover:(a)", "masterslave:(a,b)"):
        one = world(text, a="up").start()
        one.lose()
        assert one.times == [1000.0, 1010.0]
        assert one.lines == ["up", "lost", "up"]


def test_a_member_that_has_lost_another_one_does_not_connect_to_it_at_once() -> None:
    one = World(of_member("tcp://a").plan(random.Random(1)))
    one.does["a"] = "up"
    one.start().lose()
    assert one.times == [1000.0]
    assert within(one.wake(), 0.05, 0.1)
    assert one.lines == ["up", "lost", "up"]


def test_a_link_that_breaks_at_once_goes_through_back_off() -> None:
    one = world("static:(a)", a="up").start()
    pauses = []
    for _ in range(6):
        one.lose(after=0.5)
        pauses.append(one.wake())
    assert all(within(each, min(2.0**n, 30), 30) for n, each in enumerate(pauses))


def test_pauses_begin_anew_after_a_link_that_held() -> None:
    for text, first in (("static:(a)", 1.0), ("failover:(a)", 0.01)):
        one = world(text).start()
        for _ in range(8):
            one.wake()
        one.does["a"] = "up"
        one.wake()
        one.does.clear()
        one.lose()
        assert within(one.wake(), first, 30)


def test_a_malformed_frame_is_failed_and_goes_through_back_off() -> None:
    one = world("failover:(a,b)", a="up", b="up").start()
    one.lose(after=1000, is_malformed=True)
    assert one.plan.state is State.FAILED
    assert within(one.wake(), 0.01, 30)
    assert one.lines == ["up", "failed", "up"]


def test_a_change_has_one_line_with_what_it_was_and_for_how_long() -> None:
    one = world("failover:(a,b)?randomize=no", a="up").start()
    one.does.clear()
    one.lose(after=12.0)
    [up, lost] = [each for _, each in one.all if isinstance(each, Changed)]
    assert (up.state, up.level, up.member) == (State.UP, "info", Single("a"))
    assert (lost.state, lost.was, lost.seconds) == (State.LOST, State.UP, 12.0)
    assert (lost.reason, lost.level, lost.member) == ("gone", "warning", Single("a"))


def test_a_thousand_failed_rounds_have_two_lines() -> None:
    for text in ("static:(a)", "failover:(a,b)", "masterslave:(a,b)", "tcp://a"):
        one = world(text, a="up", b="up").start()
        one.does.clear()
        one.lose()
        for _ in range(1000):
            one.wake()
        assert one.lines == ["up", "lost", "unreachable"]
        assert sum(one.plan.attempts.values()) == len(one.tried) >= 1001


# --- stop and start -------------------------------------------------------------------------------


def test_stop_and_start() -> None:
    one = world("failover:(a,b)?randomize=no&backup=true", a="up").start()
    one.take(one.plan.held(Single("b")))
    one.take(one.plan.stop(one.now))
    assert one.plan.state is State.STOPPED
    assert one.plan.due is None
    assert one.of(Release) == [Release(Single("b"))]
    assert one.of(Lost) == [Lost(Single("a"), "stopped")]
    one.take(one.plan.lost(one.now, "late"))
    one.take(one.plan.attempt_failed(one.now, "late"))
    one.take(one.plan.woken(one.now + 1000))
    assert one.plan.state is State.STOPPED
    one.start()
    assert one.lines == ["up", "stopped", "up"]


def test_an_attempt_is_one_connection_until_it_is_up_or_has_failed() -> None:
    plan = drafts(parse("failover:(a,b)?randomize=no"))[0].plan(random.Random(1))
    [first] = plan.start(0.0)
    assert first == Connect(Single("a"))
    assert plan.state is State.CONNECTING
    plan.connected()
    assert plan.state is State.HANDSHAKING
    plan.welcomed()
    assert plan.state is State.SYNCING
    done = list(plan.attempt_failed(1.0, "half a handshake"))
    assert done == [Disconnect(Single("a")), Connect(Single("b"))]
    assert plan.attempts == {Single("a"): 1, Single("b"): 1}
    assert list(plan.start(1.0)) == list(plan.round(1.0)) == [], "one attempt at a time"
