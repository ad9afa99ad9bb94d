"""Who is listed, and for how long: announcements by a pretended clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shmbroker.netbridge.discovery.announcement import Announcement
from shmbroker.netbridge.discovery.codec import encode
from shmbroker.netbridge.discovery.entries import ENTRIES_MAX, NEVER, Entries
from shmbroker.netbridge.security.signature import Signature
from shmbroker.netbridge.security.stretched import Stretched

PLACE = "udp 231.7.7.7:9876"
REFRESH = 10.0
TOWN = Signature([Stretched("town", "correct horse battery")], PLACE)
STRANGER = Signature([Stretched("town", "another horse battery")], PLACE)
ELSEWHERE = Signature([Stretched("town", "correct horse battery")], "udp 231.7.7.7:9877")
EAST = Announcement(b"E" * 16, b"1" * 16, 1000, 1, "east", "tcp://east:61619", True, 7, 2000)
WEST = replace(EAST, node=b"W" * 16, incarnation=b"2" * 16, name="west", uri="tcp://west:61619")


@pytest.fixture
def entries() -> Entries:
    return Entries(REFRESH, TOWN)


def hears(entries: Entries, what: Announcement, now: float, by: Signature = TOWN) -> list[str]:
    return [line.state for line in entries.heard(encode(what, by), now)]


def names(entries: Entries) -> list[str]:
    return [each.name for each in entries.found]


def test_one_entry_for_each_broker_lives_first(entries: Entries) -> None:
    assert hears(entries, replace(WEST, is_live=False), 0) == ["found"]
    assert hears(entries, EAST, 1) == ["found"]
    assert hears(entries, replace(EAST, sequence=2), 3) == []
    assert [(each.name, each.uri, each.is_live) for each in entries.found] == [
        ("east", "tcp://east:61619", True), ("west", "tcp://west:61619", False),
    ]  # fmt: skip


def test_an_entry_expires_and_returns(entries: Entries) -> None:
    hears(entries, EAST, 5)
    hears(entries, replace(EAST, sequence=2), 7)
    assert entries.deadline == 17
    assert entries.tick(16.9) == []
    assert [line.state for line in entries.tick(17)] == ["expired"]
    assert (entries.found, entries.deadline) == ((), NEVER)
    assert hears(entries, replace(EAST, sequence=3), 30) == ["found"]
    assert names(entries) == ["east"]


def test_what_was_heard_before_renews_nothing(entries: Entries) -> None:
    for sequence in (1, 2, 3):
        hears(entries, replace(EAST, sequence=sequence), sequence)
    for now in range(4, 14):  # somebody plays all of it again
        for sequence in (1, 2, 3):
            hears(entries, replace(EAST, sequence=sequence), now)
    assert entries.found == ()
    assert entries.ignored["old"] == 30


def test_a_recording_of_a_former_life_renews_nothing(entries: Entries) -> None:
    """Neither while the later one is listed, nor when it is gone."""
    former = [replace(EAST, sequence=each, started=900, incarnation=b"0" * 16) for each in (1, 2)]
    hears(entries, EAST, 0)
    for each in former:
        hears(entries, each, 9)
    entries.tick(10)
    for each in former:
        hears(entries, each, 11)
    assert entries.found == ()


def test_a_later_life_takes_its_place(entries: Entries) -> None:
    hears(entries, replace(EAST, sequence=500), 0)
    later = replace(EAST, incarnation=b"3" * 16, started=2000, uri="tcp://other:61619")
    assert hears(entries, later, 1) == ["found"]
    assert [each.uri for each in entries.found] == ["tcp://other:61619"]


def test_a_clock_that_was_set_back_costs_one_refresh(entries: Entries) -> None:
    hears(entries, EAST, 0)
    reborn = replace(EAST, incarnation=b"3" * 16, started=10)
    for sequence in range(1, 6):
        hears(entries, replace(reborn, sequence=sequence), 2.0 * sequence)
    assert names(entries) == ["east"]
    assert entries.found[0].epoch == 7
    assert entries.deadline == 20


@pytest.mark.parametrize("other", [STRANGER, ELSEWHERE])
def test_what_another_secret_or_place_has_signed_is_counted(
    entries: Entries, other: Signature
) -> None:
    assert hears(entries, EAST, 0, other) == ["strangers"]
    assert hears(entries, WEST, 0, other) == []  # one line, however many
    assert entries.found == ()
    assert entries.ignored["strangers"] == 2


def test_either_password_of_a_rotation(entries: Entries) -> None:
    keys = [Stretched("town", "another horse battery"), Stretched("town", "correct horse battery")]
    both = Entries(REFRESH, Signature(keys, PLACE))
    hears(both, EAST, 0, STRANGER)
    hears(both, WEST, 0, TOWN)
    assert names(both) == ["east", "west"]
    assert hears(entries, EAST, 0, Signature(keys, PLACE)) == ["strangers"]  # signs with the first


@pytest.mark.parametrize(
    "uri", ["tcp://*:61616", "shm://orders", "failover:(a,b)", "tcp://a:99999"]
)
def test_an_address_of_nobody_is_no_entry(entries: Entries, uri: str) -> None:
    assert hears(entries, replace(EAST, uri=uri), 0) == ["malformed"]
    assert entries.found == ()
    hears(entries, EAST, 0)
    hears(entries, replace(EAST, uri=uri, sequence=2), 1)
    assert [each.uri for each in entries.found] == [EAST.uri]


def test_a_flood_by_somebody_who_knows_the_secret_is_bounded(entries: Entries) -> None:
    hears(entries, EAST, 0)
    for number in range(2 * ENTRIES_MAX):
        node = number.to_bytes(16, "big")
        hears(entries, replace(WEST, node=node, incarnation=node, name=f"w{number}"), 1)
    assert len(entries.found) == ENTRIES_MAX
    assert entries.ignored["full"] == ENTRIES_MAX + 1
    assert "east" in names(entries)
    hears(entries, replace(EAST, sequence=2), 2)
    entries.tick(11)
    assert names(entries) == ["east"]


def test_what_is_remembered_of_the_past_is_bounded(entries: Entries) -> None:
    for number in range(5000):
        life = number.to_bytes(16, "big")
        hears(entries, replace(EAST, incarnation=life, started=number), 0)
    assert len(entries._seen) == 4 * ENTRIES_MAX
    assert names(entries) == ["east"]


def test_a_refresh_that_is_too_short_is_told_once() -> None:
    entries = Entries(5.9, TOWN)
    assert hears(entries, EAST, 0) == ["short", "found"]
    assert hears(entries, WEST, 0) == ["found"]
    [line] = Entries(5.9, TOWN).heard(encode(EAST, TOWN), 0)[:1]
    assert "refresh-timeout is 5.9 s, and east announces itself each 2 s" in line.detail
    assert hears(Entries(6.0, TOWN), EAST, 0) == ["found"]
