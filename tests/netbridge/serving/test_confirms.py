"""Who waits for confirms: what is reached is answered, whatever else is waited for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shmbroker import InvalidArgument
from shmbroker.core.codes import OK, UNCONFIRMED
from shmbroker.core.layout import (
    CONFIRM_DISK,
    CONFIRM_EFFECTIVE,
    CONFIRM_REPLICATED,
    CONFIRM_SHM,
    IN_INBOX,
    POSITION_BITS,
)
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.serving import confirms
from shmbroker.netbridge.serving.alarms import NEVER, Alarms
from shmbroker.netbridge.serving.confirms import Confirms, in_time, wait_for_all
from shmbroker.netbridge.wire.words import Verb
from tests.support.host import journaling
from tests.support.program import ok
from tests.support.serving import Site


class Ring:
    """As C and the sleeper know it: some of its positions are confirmed."""

    def __init__(self) -> None:
        self.reached: set[int] = set()
        self.watched: dict[int, tuple[int, Callable[[], None]]] = {}
        self._tickets = 0

    def sb_confirm(self, queue: Any, position: int, level: int, timeout: int) -> int:
        return OK if position in self.reached else UNCONFIRMED

    def watch(self, queue: Any, position: int, returned: int, told: Callable[[], None]) -> int:
        self._tickets += 1
        self.watched[self._tickets] = position, told
        return self._tickets

    def forget(self, ticket: int, queue: Any, position: int, returned: int) -> None:
        del self.watched[ticket]

    def confirms(self, *positions: int) -> None:
        self.reached.update(positions)
        for ticket, (position, told) in list(self.watched.items()):
            if position in self.reached:
                del self.watched[ticket]
                told()


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Ring:
    made = Ring()
    monkeypatch.setattr(confirms, "lib", made)
    return made


@pytest.mark.parametrize("far", [1000, IN_INBOX + 3])
def test_what_is_reached_does_not_wait_behind_what_is_not(ring: Ring, far: int) -> None:
    waits, told = Confirms(ring, None, CONFIRM_DISK), list[int]()  # type: ignore[arg-type]
    for position in (far, 5, 4, 6):
        waits.wait(position, lambda _, position=position: told.append(position))  # type: ignore[misc]
    ring.confirms(4)
    assert told == [4]
    ring.confirms(5, 6)
    assert told == [4, 5, 6]
    assert not waits.is_idle
    ring.confirms(far)
    assert told == [4, 5, 6, far]
    assert waits.is_idle
    assert not ring.watched


def test_the_inbox_does_not_wait_for_the_ring(ring: Ring) -> None:
    waits, told = Confirms(ring, None, CONFIRM_DISK), list[int]()  # type: ignore[arg-type]
    waits.wait(5, told.append)
    waits.wait(IN_INBOX, lambda _: told.append(IN_INBOX))
    ring.confirms(IN_INBOX)
    assert told == [IN_INBOX]
    waits.close()
    assert not ring.watched


def test_rings_that_nobody_has_are_watched_together(ring: Ring) -> None:
    waits, told = Confirms(ring, None, CONFIRM_DISK), list[int]()  # type: ignore[arg-type]
    for number in range(1, 1000):
        waits.wait(number << POSITION_BITS, lambda _: None)
    waits.wait(7, told.append)
    assert len(ring.watched) == confirms.LINES_MAX
    ring.confirms(7)
    assert told == [OK]


def test_who_hears_no_more_is_not_kept(ring: Ring) -> None:
    waits, alarms = Confirms(ring, None, CONFIRM_DISK), Alarms()  # type: ignore[arg-type]
    late, told, heard = 10 * confirms.DROPS_MIN, list[int](), list[int]()
    for number in range(late):
        in_vain = in_time(alarms, float(number), told.append)
        waits.wait(1000, in_vain, in_vain.is_over)
        alarms.ring(float(number))
        gone = in_time(alarms, NEVER, told.append, lambda: True)
        waits.wait(1000, gone, gone.is_over)
    hears = in_time(alarms, NEVER, heard.append)
    waits.wait(1000, hears, hears.is_over)
    assert told == [UNCONFIRMED] * late
    assert sum(len(line._waiting) for line in waits._lines.values()) <= confirms.DROPS_MIN
    ring.confirms(1000)
    assert heard == [OK]


def test_whose_queues_were_deleted_is_told_at_once() -> None:
    heard = list[int]()
    told = in_time(Alarms(), NEVER, heard.append)
    wait_for_all(lambda *_: pytest.fail("nothing is waited for"), [], CONFIRM_DISK, told)
    assert heard == [CONFIRM_SHM]


def test_the_levels_that_all_places_have_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a queue that pages both rings are waited for: what is on disk in one of them, and with
    replicas in the other, is neither."""
    ring, heard = Ring(), list[int]()
    has = {7: CONFIRM_DISK | CONFIRM_REPLICATED, IN_INBOX + 3: CONFIRM_DISK, 9: CONFIRM_REPLICATED}

    def level_of(queue: Any, position: int, level: int, timeout: int) -> int:
        return has[position] if position in ring.reached else UNCONFIRMED

    monkeypatch.setattr(ring, "sb_confirm", level_of)
    monkeypatch.setattr(confirms, "lib", ring)
    waits = Confirms(ring, None, CONFIRM_EFFECTIVE)  # type: ignore[arg-type]
    for places, level in [([7, IN_INBOX + 3], CONFIRM_DISK), ([IN_INBOX + 3, 9], CONFIRM_SHM)]:
        ring.reached.clear()
        told = in_time(Alarms(), NEVER, heard.append)
        wait_for_all(lambda *_: waits, [(None, each) for each in places], CONFIRM_EFFECTIVE, told)
        ring.confirms(places[1])
        assert not heard
        ring.confirms(places[0])
        assert heard == [level]
        heard.clear()


def test_a_confirm_far_ahead_holds_up_no_other(at: Site, tmp_path: Path) -> None:
    at.broker.declare_queue("q", durable=True).publish(b"0", confirm="shm")
    program = at.program()

    def ask(position: object) -> dict[str, object]:
        return {"does": "confirm", "queue": "q", "position": position}

    far = program.begin(Verb.OPERATE, body=asked(**ask(1000)))
    for wrong in (1.5, "1", 1 << 63, [0]):
        with pytest.raises(InvalidArgument):
            program.ask(Verb.OPERATE, **ask(wrong))
    near = program.begin(Verb.OPERATE, body=asked(**ask(0)))
    with journaling(at.broker.vhost, tmp_path / "journal"):
        ok(program.outcome(near))
    assert far not in program.outcomes
