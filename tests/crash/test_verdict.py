"""The verdict sees every kind of fault, and none where there is none."""

from __future__ import annotations

import os
from pathlib import Path
from signal import SIGKILL

import numpy as np
import pytest

from shmbroker.perf.machine.process import RAISED, Process
from tests.crash.journal import (
    ACKED,
    ACKING,
    CONFIRMED,
    DAMAGED,
    DTYPE,
    GOT,
    NOWHERE,
    Journal,
    read,
)
from tests.crash.part import LEFT, ONE, WORK
from tests.crash.payload import HEADER_BYTES, body_of, key_of, seen
from tests.crash.verdict import Life, faults, tally

PRODUCER, CONSUMER = 1, 2
Event = tuple[int, int, int, int, int]
"""Kind, deliveries, queue, number, position."""


def life(identity: int, *events: Event, was_killed: bool = False) -> Life:
    rows = [
        (kind, deliveries, queue, 0, PRODUCER, number, position)
        for kind, deliveries, queue, number, position in events
    ]
    return Life(f"role-{identity}", identity, was_killed, np.array(rows, DTYPE))


def confirmed(number: int, position: int, queue: int = WORK) -> Event:
    return CONFIRMED, 0, queue, number, position


def got(number: int, position: int, deliveries: int = 0, queue: int = WORK) -> Event:
    return GOT, deliveries, queue, number, position


def acked(number: int, position: int, deliveries: int = 0, queue: int = WORK) -> Event:
    return ACKED, deliveries, queue, number, position


def test_what_went_well_has_no_faults() -> None:
    lives = [
        life(PRODUCER, confirmed(0, 0), confirmed(1, 1), confirmed(2, NOWHERE)),
        life(CONSUMER, got(0, 0), acked(0, 0), got(1, 1), was_killed=True),
        life(3, got(1, 1, deliveries=1), acked(1, 1, deliveries=1), got(2, 2), acked(2, 2)),
    ]
    assert list(faults(lives)) == []
    assert tally(lives).confirmed == 3
    assert tally(lives).redelivered == 1


@pytest.mark.parametrize("was_killed", [True, False])
def test_what_was_not_confirmed_may_exist_after_a_kill_only(was_killed: bool) -> None:
    lives = [
        life(PRODUCER, confirmed(0, 0), was_killed=was_killed),
        life(CONSUMER, got(0, 0), acked(0, 0), got(1, 1), acked(1, 1)),
    ]
    assert [each.split(":")[0] for each in faults(lives)] == (
        [] if was_killed else ["1 messages from nowhere"]
    )
    assert tally(lives).unknown == was_killed


@pytest.mark.parametrize(
    ("fault", "sent", "received"),
    [
        ("lost", [confirmed(0, 0), confirmed(1, 1)], [got(0, 0), acked(0, 0)]),
        (
            "delivered twice without a flag",
            [confirmed(0, 0)],
            [got(0, 0), got(0, 0), acked(0, 0)],
        ),
        (
            "acknowledged twice",
            [confirmed(0, 0)],
            [got(0, 0), acked(0, 0), acked(0, 0)],
        ),
        (
            "delivered although acknowledged",
            [confirmed(0, 0)],
            [got(0, 0), acked(0, 0), got(0, 0, deliveries=1)],
        ),
        ("forgotten", [confirmed(0, 0)], [got(0, 0)]),
        ("forgotten", [confirmed(0, 0)], [got(0, 0), (ACKING, 0, WORK, 0, 0)]),
        ("confirmed twice", [confirmed(0, 0)] * 2, [got(0, 0), acked(0, 0)]),
        ("at two positions", [confirmed(0, 0)], [got(0, 1), acked(0, 1)]),
        (
            "at one position with another",
            [confirmed(0, 0), confirmed(1, NOWHERE)],
            [got(0, 0), acked(0, 0), got(1, 0), acked(1, 0)],
        ),
        (
            "reordered",
            [confirmed(0, 1), confirmed(1, 0)],
            [got(0, 1), acked(0, 1), got(1, 0), acked(1, 0)],
        ),
        (
            "out of order at the single consumer",
            [confirmed(0, 0, ONE), confirmed(1, 1, ONE)],
            [
                *(got(1, 1, queue=ONE), acked(1, 1, queue=ONE)),
                *(got(0, 0, queue=ONE), acked(0, 0, queue=ONE)),
            ],
        ),
        (
            "lost",
            [confirmed(0, 0), confirmed(0, 0, LEFT)],
            [got(0, 0), acked(0, 0)],
        ),
    ],
)
def test_faults_are_found(fault: str, sent: list[Event], received: list[Event]) -> None:
    found = list(faults([life(PRODUCER, *sent), life(CONSUMER, *received)]))
    assert any(f"messages {fault}:" in each for each in found), found


def test_who_was_killed_may_have_acknowledged_what_it_was_about_to() -> None:
    sent = life(PRODUCER, confirmed(0, 0), confirmed(1, 1))
    acking = (got(0, 0), got(1, 1), (ACKING, 0, WORK, 1, 1))
    found = list(faults([sent, life(CONSUMER, *acking, was_killed=True)]))
    assert found == ["1 messages forgotten: work:1.0"]


def test_damage_is_found() -> None:
    found = list(faults([life(PRODUCER), life(CONSUMER, (DAMAGED, 0, WORK, 0, 0))]))
    assert found == ["1 messages damaged in the hands of role-2 2"]


@pytest.mark.parametrize("length", [0, 1, 5000])
def test_a_changed_byte_is_seen(length: int) -> None:
    body = body_of(7, 9, length)
    assert seen(body, None).is_whole
    for at in range(0, len(body), max(1, len(body) // 50)):
        changed = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        assert not seen(changed, None).is_whole
    assert not seen(body[:-1], None).is_whole
    assert not seen(body[: HEADER_BYTES - 1], None).is_whole


def test_an_empty_message_is_known_by_its_key() -> None:
    told = seen(b"", key_of(7, 9))
    assert (told.identity, told.number, told.is_whole) == (7, 9, True)
    assert not seen(b"", None).is_whole


def test_the_journal_of_a_killed_process_is_whole(tmp_path: Path) -> None:
    ready, tell = os.pipe()

    def write() -> int:
        journal = Journal(tmp_path / "journal")
        number = 0
        while True:
            journal.note(GOT, WORK, PRODUCER, number)
            number += 1
            if number == 1000:
                os.write(tell, b"!")

    process = Process(write, tmp_path / "errors")
    assert os.read(ready, 1) == b"!"
    assert process.kill() == -SIGKILL
    os.close(ready)
    os.close(tell)
    numbers = read(tmp_path / "journal")["number"]
    assert len(numbers) >= 1000
    assert (numbers == np.arange(len(numbers))).all()


def test_what_ends_a_process_is_told(tmp_path: Path) -> None:
    def fail() -> int:
        raise RuntimeError("on purpose")

    process = Process(fail, tmp_path / "errors")
    assert process.has_ended(30)
    assert process.status == RAISED
    assert "RuntimeError: on purpose" in (tmp_path / "errors").read_text()
