"""Lives tell each other of their queues: all to a newcomer, then what changes."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.cluster.advert import Binding, Queue
from shmbroker.netbridge.cluster.board import ROWS_MAX
from shmbroker.netbridge.cluster.said import Ask, Say, Told
from tests.netbridge.cluster.talk import Town, node_of

ORDERS, BILLS = Queue("orders", True, False), Queue("bills", False, True)
BOUND = Binding("news", "topic", "orders", False, "a.#", b"\x80", False, False)


@pytest.fixture
def pair() -> Town:
    town = Town()
    town.add("east", statics=("tcp://west:1",))
    town.shows("east", ORDERS, BOUND)
    town.add("west")
    town.meet()
    return town


def told(town: Town, name: str) -> list[Told]:
    return [what for who, what in town.words if who == name and isinstance(what, Told)]


def test_a_newcomer_gets_all_and_then_what_changes(pair: Town) -> None:
    assert pair.copied("west", "east") == {ORDERS, BOUND}
    assert pair.copied("east", "west") == set()
    pair.shows("east", ORDERS, BILLS)
    assert pair.copied("west", "east") == {ORDERS, BILLS}
    last = told(pair, "east")[-1]
    assert (last.is_anew, last.queues, last.gone_bindings) == (False, (BILLS,), (BOUND,))


def test_of_two_links_one_is_asked(pair: Town) -> None:
    assert len(told(pair, "east")) == 1
    pair.link("west", "east")
    pair.shows("east", ORDERS)
    assert len(told(pair, "east")) == 2
    assert pair.copied("west", "east") == {ORDERS}


def test_another_link_goes_on_where_the_first_was_lost(pair: Town) -> None:
    first = min(number for _, number in pair.far)
    second = pair.link("west", "east")
    pair.cut(first)
    pair.shows("east", ORDERS, BILLS)
    assert pair.copied("west", "east") == {ORDERS, BILLS}
    assert not told(pair, "east")[-1].is_anew
    # and once more, with nobody there for a while
    for number in {number for _, number in pair.far}:
        pair.cut(number)
    pair.shows("east", BILLS)
    assert pair.copied("west", "east") == {ORDERS, BILLS}, "what it told last"
    pair.meet()
    assert pair.copied("west", "east") == {BILLS}
    assert not told(pair, "east")[-1].is_anew
    assert second


def test_another_process_of_a_node_tells_all_anew(pair: Town) -> None:
    pair.dies("east")
    assert pair.copied("west", "east") == {ORDERS, BOUND}
    pair.add("east", epoch=2, statics=("tcp://west:1",))
    pair.shows("east", BILLS)
    pair.meet()
    assert pair.copied("west", "east") == {BILLS}
    assert told(pair, "east")[-1].is_anew


def test_another_process_of_a_node_tells_nothing_before_it_has_looked(pair: Town) -> None:
    """Else what it had would be unknown for a moment, and nothing routed there."""
    pair.dies("east")
    pair.add("east", epoch=2, statics=("tcp://west:1",))
    pair.meet()
    assert pair.copied("west", "east") == {ORDERS, BOUND}
    pair.shows("east", ORDERS, BOUND, BILLS)
    assert pair.copied("west", "east") == {ORDERS, BOUND, BILLS}


def test_one_that_has_nothing_says_so(pair: Town) -> None:
    pair.dies("east")
    pair.add("east", epoch=2, statics=("tcp://west:1",))
    pair.meet()
    pair.shows("east")
    assert pair.copied("west", "east") == set()


def test_who_is_live_no_more_takes_nothing_back(pair: Town) -> None:
    east = pair.members["east"]
    pair.does("east", east.becomes(node_of("east"), 1, is_live=False))
    assert pair.copied("west", "east") == {ORDERS, BOUND}
    pair.does("east", east.becomes(node_of("east"), 2, is_live=True))
    assert pair.copied("west", "east") == {ORDERS, BOUND}
    pair.shows("east", BILLS)
    assert pair.copied("west", "east") == {BILLS}


def test_what_was_known_stays_until_all_is_told_anew() -> None:
    town = Town()
    town.add("west", statics=("tcp://east:1",))
    town.add("east")
    town.shows("east", *(Queue(f"q{number}", True, False) for number in range(ROWS_MAX + 1)))
    town.meet()
    west = town.members["west"]
    before = town.copied("west", "east")
    link = next(number for name, number in town.far if name == "west")
    life = west.lives[node_of("east")].incarnation
    [again] = west.heard(link, Told(life, True, 1, 2, (ORDERS,), (), (), ()), 0)
    assert town.copied("west", "east") == before
    assert again == Say(link, Ask(life, 1))
    list(west.heard(link, Told(life, False, 2, 2, (BILLS,), (), (), ()), 0))
    assert town.copied("west", "east") == {ORDERS, BILLS}


def test_what_nobody_has_asked_for_changes_nothing(pair: Town) -> None:
    west = pair.members["west"]
    other = pair.link("west", "east")
    page = Told(b"L" * 16, True, 1, 1, (BILLS,), (), (), ())
    assert list(west.heard(other, page, 0)) == []
    assert pair.copied("west", "east") == {ORDERS, BOUND}


def test_a_backup_neither_asks_nor_is_asked(pair: Town) -> None:
    pair.add(
        "west2", node="west", is_live=False, group=("west", "west2"), statics=("tcp://east:1",)
    )
    pair.meet()
    backup = [what for who, what in pair.words if who == "west2"]
    assert not any(isinstance(each, (Ask, Told)) for each in backup)
    assert len(told(pair, "east")) == 1


def test_one_that_takes_no_messages_tells_of_no_queue(pair: Town) -> None:
    """Whatever the others know of it they would send messages for."""
    pair.dies("east")
    east = pair.add("east", epoch=2, statics=("tcp://west:1",), hops=0)
    pair.meet()
    assert pair.copied("west", "east") == {ORDERS, BOUND}, "it has not looked yet"
    for adverts in ((ORDERS, BOUND), (ORDERS, BILLS)):
        pair.shows("east", *adverts)
        assert pair.copied("west", "east") == set()
        assert pair.members["west"].adverts.is_read(node_of("east"))
        assert set(east.adverts.board.adverts) == set(adverts), "here it is shown"
    pair.shows("west", BILLS)
    assert pair.copied("east", "west") == {BILLS}


def test_what_is_forgotten_is_known_no_more(pair: Town) -> None:
    pair.dies("east")
    assert pair.forget("west", "east") == ""
    assert pair.copied("west", "east") == set()


def test_changes_while_an_answer_is_on_its_way_are_one(pair: Town) -> None:
    east = pair.members["east"]
    link = next(number for name, number in pair.far if name == "east")
    seen = east.adverts.board.version
    assert len(list(east.shows([ORDERS, BILLS]))) == 1
    for adverts in ([ORDERS], [ORDERS, BILLS], [ORDERS, BOUND]):
        assert list(east.shows(adverts)) == [], "nobody has asked again"
    [answer] = east.heard(link, Ask(east.adverts.board.incarnation, seen), 0)
    assert isinstance(answer, Say)
    assert isinstance(answer.what, Told)
    page = answer.what
    assert (page.queues, page.gone_queues, page.bindings) == ((), ("bills",), (BOUND,))
