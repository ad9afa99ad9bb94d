"""Some kills of whoever moves a stream between two vhosts; `make crash` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

import shmbroker
from tests.conftest import vhost_for_a_while
from tests.crash.stream import (
    BODY,
    NOTE,
    SLOTS,
    SOURCE,
    TARGETS,
    Part,
    declare,
    faults,
    finish,
    mover_of,
    play,
    take_all,
)
from tests.crash.test_failover import seed

KILLS = 20


@pytest.mark.parametrize("kind", TARGETS)
def test_each_message_is_there_once_and_in_order(tmp_path: Path, kind: str) -> None:
    outcome = play(tmp_path, kind, KILLS, seed())
    print(outcome)  # noqa: T201  # pytest -s shows it
    assert not outcome.faults, outcome
    assert outcome.messages > KILLS


def test_who_took_from_the_far_end_may_have_been_the_slowest(tmp_path: Path) -> None:
    """Its ring is full then, and has no room for what is left."""
    with (
        vhost_for_a_while() as one,
        vhost_for_a_while() as another,
        shmbroker.connect(f"shm://{one}", create=True) as near,
        shmbroker.connect(f"shm://{another}", create=True) as far,
    ):
        part = Part(one, another, tmp_path, "plain")
        declare(near, far, part)
        source = near.queue(SOURCE)
        with mover_of(part) as mover:
            for first in (0, SLOTS):
                source.publish_many([BODY.pack(first + each) for each in range(SLOTS)])
                take_all(source, part.notes(SOURCE))
                assert first or mover.move() == SLOTS
        assert finish(near, far, part) == 2 * SLOTS
        assert not list(faults(part))


def noted(part: Part, queue: str, notes: list[tuple[int, int, int]]) -> None:
    part.notes(queue).write_bytes(b"".join(NOTE.pack(*note) for note in notes))


PUBLISHED = [(position, 100 + position, 0) for position in range(70)]
"""Position, number, deliveries before; numbers with the same key are 60 apart."""
BAD = {
    "lost": PUBLISHED[:7] + PUBLISHED[8:],
    "twice": [*PUBLISHED, (70, 107, 0)],
    "twice at its place": [*PUBLISHED, (69, 169, 0)],
    "never published": [*PUBLISHED, (70, 999, 0)],
    "in another order": [*PUBLISHED[:5], (5, 106, 0), (6, 105, 0), *PUBLISHED[7:]],
}


@pytest.mark.parametrize("what", BAD)
def test_the_verdict_finds_what_is_wrong(tmp_path: Path, what: str) -> None:
    part = Part("near", "far", tmp_path, "plain")
    noted(part, "source", PUBLISHED)
    noted(part, "target", [*PUBLISHED, (69, 169, 1)])
    assert not list(faults(part))
    noted(part, "target", BAD[what])
    assert list(faults(part))


def test_the_verdict_on_last_values(tmp_path: Path) -> None:
    part = Part("near", "far", tmp_path, "last-value")
    noted(part, "source", PUBLISHED)
    late, newer = (3, 103, 0), (63, 163, 0)
    rest = PUBLISHED[10:]
    noted(part, "target", [*rest, (3, 103, 1)])
    assert not list(faults(part))
    for bad in ([*rest, late], [each for each in rest if each != newer], [*rest, newer]):
        noted(part, "target", bad)
        assert list(faults(part))
