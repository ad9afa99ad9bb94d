"""The two ends of an agent's link, word by word; with faults they are in the simulation."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.agent.option import Mode
from shmbroker.netbridge.agent.party import (
    Act,
    Answer,
    Bind,
    Copied,
    Far,
    Look,
    Near,
    NotJoined,
    Say,
    Ship,
    Subscribe,
)
from shmbroker.netbridge.agent.said import Apart, Bound, Joined, Joins, Said, Wanted, Wants
from shmbroker.netbridge.wire.malformed import Malformed

JOINS = Joins("trade", "topic")
WANTED = frozenset({Wanted("eu.#", b"", False)})
ASKED = Wants(8, True, tuple(WANTED))


def joined(mode: Mode) -> tuple[Near, list[Act]]:
    near = Near("trade", mode, 8)
    assert [*near.looks("topic", None)] == [Say(JOINS)]
    return near, [*near.heard(Joined())]


def asked() -> Far:
    far = Far()
    assert [*far.heard(JOINS)] == [Answer(JOINS)]
    assert [*far.answered(Joined())] == [Say(Joined())]
    assert [*far.heard(ASKED)] == [Subscribe("trade"), Look(), Bind()]
    return far


def test_who_forwards_ships_when_it_is_joined() -> None:
    near, acts = joined(Mode.FORWARD_ALL)
    assert acts == [Ship()]
    assert [*near.looks("topic", None)] == [], "it asks for nothing"


def test_who_forwards_and_subscribes_ships_once_what_it_wants_is_bound() -> None:
    near, acts = joined(Mode.BOTH)
    assert acts == [Look()]
    assert [*near.looks("topic", WANTED)] == [Say(ASKED), Copied(1)]
    assert [*near.heard(Bound())] == [Ship()]
    near.is_open = True
    assert [*near.heard(Bound())] == []


def test_an_exchange_that_is_not_there_is_waited_for() -> None:
    near = Near("trade", Mode.SUBSCRIBE, 8)
    assert [*near.looks(None, None)] == []
    assert [*near.looks("topic", WANTED)] == [Say(JOINS)]
    assert [*near.looks("topic", WANTED)] == [], "not joined yet"


def test_exchanges_that_differ_are_not_joined() -> None:
    near, _ = joined(Mode.SUBSCRIBE)
    [act] = near.looks("direct", WANTED)
    assert isinstance(act, NotJoined)
    assert "was topic here, and is direct now" in act.why
    near = Near("trade", Mode.SUBSCRIBE, 8)
    [_] = near.looks("topic", None)
    assert [*near.heard(Apart("it is headers there"))] == [NotJoined("it is headers there")]


def test_what_is_asked_for_is_shipped_once_it_is_bound() -> None:
    far = asked()
    assert [*far.bound()] == [Ship(), Say(Bound())]
    far.is_open = True
    assert [*far.heard(Wants(8, True, (), tuple(WANTED)))] == [Bind()]
    assert [*far.bound()] == []


def test_nothing_is_bound_for_a_set_that_is_not_whole() -> None:
    far = asked()
    assert [*far.heard(Wants(8, False, tuple(WANTED)))] == []


@pytest.mark.parametrize("said", [Bound(), JOINS, ASKED, Joined(), Apart("no")])
def test_the_near_end_hears_nothing_before_it_has_asked(said: Said) -> None:
    with pytest.raises(Malformed):
        [*Near("trade", Mode.BOTH, 8).heard(said)]


@pytest.mark.parametrize("said", [Bound(), JOINS, Joined(), Apart("no")])
def test_the_far_end_is_asked_once_and_asks_nothing(said: Said) -> None:
    with pytest.raises(Malformed):
        [*asked().heard(said)]


def test_nothing_is_wanted_of_an_exchange_that_is_not_joined() -> None:
    far = Far()
    [_] = far.heard(JOINS)
    [_] = far.answered(Apart("it is headers here"))
    with pytest.raises(Malformed, match="not joined"):
        [*far.heard(ASKED)]
