"""What tests of scenarios share."""

from __future__ import annotations

import pytest

from shmbroker.perf.machine.histograms import histogram_of
from shmbroker.perf.scenarios import conditions, scenario
from shmbroker.perf.scenarios.conditions import Conditions

LIMITS = dict.fromkeys((*conditions.LIMITS, "fdatasync_ns"), 1.0)


@pytest.fixture
def conditions_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring them takes some seconds."""
    known = Conditions(0.5, LIMITS, histogram_of([1]))
    monkeypatch.setattr(scenario, "conditions_now", lambda folder: known)
