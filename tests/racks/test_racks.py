"""The benchmark of two racks, in short: all of it comes over a wire that is slow and loses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.racks.__main__ import Plan, lines, ours
from tests.support.hosts import has_hosts

pytestmark = pytest.mark.skipif(not has_hosts(), reason="network namespaces are for root")
SHORT = Plan(loss=0.001, rounds=1, seconds=1.5, warm=0.1, failovers=1, heartbeat=1.0)
"""What is lost comes again after 200 ms, and after twice that if it is lost again: nothing may
arrive for so long."""


def test_each_way_brings_all_once_and_goes_on_after_a_kill(tmp_path: Path) -> None:
    found = ours(SHORT, 0.002, tmp_path)
    assert {name: len(rates) for name, rates in found.rates.items()} == {
        "carrier": 1, "agent": 1, "link": 1,
    }  # fmt: skip
    assert min(rate for rates in found.rates.values() for rate in rates) > 0
    assert set(found.failovers) == {"agent", "link"}
    assert all(each.first > 0 for all_of in found.failovers.values() for each in all_of)
    assert len(lines(found)) == 5
