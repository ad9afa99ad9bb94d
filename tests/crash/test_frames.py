"""Six thousand frames, some of them damaged; `make crash` has a million, with the sanitizer."""

from __future__ import annotations

from pathlib import Path

from tests.crash.frames import play
from tests.crash.test_failover import seed

FRAMES = 6_000


def test_a_broker_goes_on_whatever_frames_come(tmp_path: Path) -> None:
    outcome = play(tmp_path, FRAMES, seed())
    print(outcome)  # noqa: T201  # pytest -s shows it
    assert not outcome.faults, outcome
    assert outcome.frames >= FRAMES
    assert len(outcome.damage) == 7
    assert outcome.messages > 0
