"""Some faults of a link between two hosts; `make crash` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

import shmbroker
from tests.crash.links import KINDS, Load, body, play
from tests.crash.test_failover import seed

STRIKES = 20


@pytest.mark.parametrize("kind", KINDS)
def test_each_message_is_there_once_and_in_order(tmp_path: Path, kind: str) -> None:
    outcome = play(tmp_path, kind, kind != KINDS[0], STRIKES // len(KINDS), seed())
    print(outcome)  # noqa: T201  # pytest -s shows it
    assert not outcome.faults, outcome
    assert outcome.messages > STRIKES
    assert outcome.links > 1


BAD = {
    "lost": [0, 1, 3],
    "twice": [0, 1, 1, 2, 3],
    "in another order": [0, 2, 1, 3],
}


@pytest.mark.parametrize("what", BAD)
def test_the_verdict_finds_what_is_wrong(what: str, broker: shmbroker.Broker) -> None:
    source, target = (broker.declare_queue(name) for name in ("source", "target"))
    load = Load(source, target)
    load.published = 4
    for number in BAD[what]:
        target.publish(body(number))
    assert load.finish(0.1)
