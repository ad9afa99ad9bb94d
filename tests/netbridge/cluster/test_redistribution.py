"""When messages that wait may go, and to whom; and who has turns with what is published."""

from __future__ import annotations

from shmbroker.netbridge.cluster.advert import SELECTORS_MAX, Queue
from shmbroker.netbridge.cluster.balancing import HERE, Member, sets, takers
from shmbroker.netbridge.cluster.option import OFF, ON_DEMAND, STRICT
from shmbroker.netbridge.cluster.redistribution import NEVER, Gives, Here, Redistribution, To

WEST, NORTH = b"w" * 16, b"n" * 16
CONSUMED = Queue("orders", is_durable=True, is_consumed=True)
IDLE = Queue("orders", is_durable=True, is_consumed=False)


def here(*, consumed: bool = False, delay: float | None = 5.0) -> list[Here]:
    return [Here("orders", consumed, delay)]


def test_it_begins_so_long_after_the_last_consumer_left() -> None:
    redistribution = Redistribution()
    there = {WEST: [CONSUMED]}
    assert redistribution.looks(here(consumed=True), there, 0.0) == []
    assert redistribution.deadline == NEVER
    assert redistribution.looks(here(), there, 1.0) == []
    assert redistribution.deadline == 6.0
    assert redistribution.looks(here(), there, 5.9) == []
    assert redistribution.looks(here(), there, 6.0) == [Gives("orders", (To(WEST),))]


def test_a_consumer_in_time_cancels_it_and_one_in_the_middle_ends_it() -> None:
    redistribution = Redistribution()
    there = {WEST: [CONSUMED]}
    redistribution.looks(here(), there, 0.0)
    assert redistribution.looks(here(consumed=True), there, 4.0) == []
    assert redistribution.looks(here(), there, 5.0) == []
    assert redistribution.deadline == 10.0
    assert redistribution.looks(here(), there, 10.0) != []
    assert redistribution.looks(here(consumed=True), there, 10.1) == []


def test_a_queue_that_is_made_again_waits_anew() -> None:
    redistribution = Redistribution()
    there = {WEST: [CONSUMED]}
    first, second = (Here("orders", False, 5.0, reference) for reference in (1, 2))
    redistribution.looks([first], there, 0.0)
    assert redistribution.looks([first], there, 5.0) != []
    assert redistribution.looks([second], there, 5.2) == []
    assert redistribution.deadline == 10.2
    assert redistribution.looks([second], there, 10.2) != []


def test_a_consumer_elsewhere_that_comes_later_finds_it_due() -> None:
    redistribution = Redistribution()
    assert redistribution.looks(here(), {WEST: [IDLE]}, 0.0) == []
    assert redistribution.deadline == NEVER
    found = redistribution.looks(here(), {WEST: [CONSUMED], NORTH: [CONSUMED]}, 60.0)
    assert found == [Gives("orders", (To(WEST), To(NORTH)))]


def test_nothing_goes_without_a_delay_and_at_once_with_0() -> None:
    there = {WEST: [CONSUMED]}
    assert Redistribution().looks(here(delay=None), there, 100.0) == []
    assert Redistribution().looks(here(delay=0), there, 0.0) == [Gives("orders", (To(WEST),))]


def test_who_has_turns() -> None:
    queues = {WEST: {"orders": CONSUMED}, NORTH: {"orders": IDLE}}
    up = frozenset({WEST, NORTH})
    assert sets(STRICT, here(), queues, frozenset()) == {
        ("orders", 0): (Member(HERE, True), Member(WEST, True), Member(NORTH, True))
    }
    assert sets(ON_DEMAND, here(consumed=True), queues, up) == {
        ("orders", 0): (Member(HERE, True), Member(WEST, True), Member(NORTH, False))
    }
    assert sets(ON_DEMAND, here(), queues, frozenset({NORTH})) == {
        ("orders", 0): (Member(HERE, False), Member(WEST, False), Member(NORTH, False))
    }
    assert sets(OFF, here(consumed=True), queues, up) == {}
    assert sets(STRICT, here(), {WEST: {"bills": IDLE}}, up) == {}
    alone = [Here("orders", False, None, may_be_balanced=False)]
    assert sets(STRICT, alone, queues, up) == {}


# --- selectors ------------------------------------------------------------------------------------

TENS = Queue("orders", True, True, selectors=("n = 10",))


def selecting(*selectors: str, matches: bool = True, delay: float | None = 5.0) -> list[Here]:
    return [Here("orders", True, delay, selectors=selectors, matches=matches)]


def test_only_what_a_selector_elsewhere_matches_goes() -> None:
    found = Redistribution().looks(here(delay=0), {WEST: [TENS], NORTH: [CONSUMED]}, 0.0)
    assert found == [Gives("orders", (To(WEST, ("n = 10",)), To(NORTH)))]


def test_with_ignore_any_consumer_keeps_everything() -> None:
    redistribution = Redistribution()
    for now in (0.0, 10.0):
        assert redistribution.looks(selecting("n = 5", matches=False), {WEST: [TENS]}, now) == []


def test_with_match_consumers_keep_what_they_select() -> None:
    redistribution = Redistribution()
    there = {WEST: [TENS]}
    assert redistribution.looks(selecting("n = 5"), there, 0.0) == []
    assert redistribution.deadline == 5.0
    [gives] = redistribution.looks(selecting("n = 5"), there, 5.0)
    assert gives == Gives("orders", (To(WEST, ("n = 10",)),), unless=("n = 5",))
    # others that consume begin the delay anew
    assert redistribution.looks(selecting("n = 5", "n = 6"), there, 6.0) == []
    assert redistribution.deadline == 11.0
    for now in (12.0, 24.0):
        assert redistribution.looks(selecting(), there, now) == []  # it takes everything
    assert redistribution.looks(selecting("n = 5", delay=None), there, 36.0) == []


def test_who_has_turns_with_what_it_selects() -> None:
    queues = {WEST: {"orders": TENS}, NORTH: {"orders": IDLE}}
    up = frozenset({WEST, NORTH})
    assert sets(ON_DEMAND, selecting("n = 5"), queues, up) == {
        ("orders", 0): (
            Member(HERE, True, ("n = 5",)), Member(WEST, True, ("n = 10",)), Member(NORTH, False),
        )
    }  # fmt: skip
    assert sets(STRICT, selecting("n = 5"), queues, up) == {
        ("orders", 0): (Member(HERE, True), Member(WEST, True), Member(NORTH, True))
    }


def test_more_selectors_than_it_tells_keep_what_waits_and_not_what_is_published() -> None:
    many = tuple(f"n = {number}" for number in range(SELECTORS_MAX + 1))
    there = {WEST: [CONSUMED]}
    assert Redistribution().looks(selecting(*many, delay=0), there, 0.0) == []
    assert Redistribution().looks(selecting(*many[1:], delay=0), there, 0.0) != []
    assert sets(ON_DEMAND, selecting(*many), {WEST: {"orders": CONSUMED}}, frozenset({WEST})) == {
        ("orders", 0): (Member(HERE, True, many), Member(WEST, True))
    }


def test_what_must_not_stay_goes_to_the_first_if_nobody_takes_it() -> None:
    west, north = Member(WEST, True, ("n = 10",)), Member(NORTH, True, ("n = 5",))
    assert takers((west, north)) == ((To(WEST, ("n = 10",)), To(NORTH, ("n = 5",))), WEST)
    assert takers((west, Member(NORTH, True))) == ((To(WEST, ("n = 10",)), To(NORTH)), None)
    assert takers((Member(WEST, False), Member(NORTH, False))) == ((To(WEST),), None)


def test_members_of_a_group_go_to_one_node() -> None:
    there = {WEST: [CONSUMED], NORTH: [CONSUMED]}
    grouped = Here("orders", is_consumed=False, delay=0.0, has_groups=True)
    assert Redistribution().looks([grouped], there, 0.0) == [Gives("orders", (To(WEST),))]
    selects = Queue("orders", is_durable=True, is_consumed=True, selectors=("x = 1",))
    found = Redistribution().looks([grouped], {WEST: [selects], NORTH: [CONSUMED]}, 0.0)
    assert found == [Gives("orders", (To(NORTH),))]
