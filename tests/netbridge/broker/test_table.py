"""The table of links is read at any moment of its writing."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from shmbroker.cli.metrics.exposition import text
from shmbroker.netbridge.broker.table import Table, read
from tests.cli.metrics.samples import Samples
from tests.conftest import vhost_for_a_while


class Broken:
    """Memory whose writer ends in the middle of a text."""

    def __init__(self, memory: memoryview) -> None:
        self.memory = memory

    def __setitem__(self, place: slice, content: bytes) -> None:
        half = len(content) // 2
        self.memory[place.start : place.start + half] = content[:half]
        raise InterruptedError


def shown(vhost: str) -> list[tuple[dict[str, object], int]]:
    table = read(vhost)
    assert table is not None
    return [(each.text, each.counters["messages"]) for each in table.rows]


def test_a_text_that_is_being_written_leaves_the_last_one_whole(tmp_path: Path) -> None:
    with vhost_for_a_while() as vhost:
        row = Table(vhost, tmp_path, ["one"], {}).rows["one"]
        row.set("messages", 7)
        for number in range(4):
            whole = {"name": "one", "state": "up", "why": "x" * number}
            row.show(whole)
            memory, row.memory = row.memory, cast(memoryview, Broken(row.memory))
            with pytest.raises(InterruptedError):
                row.show({"name": "one", "state": "lost", "why": "y" * 100})
            row.memory = memory
            assert shown(vhost) == [(whole, 7)]


def test_what_agents_returned_and_dropped_is_in_the_metrics_of_agents_only(tmp_path: Path) -> None:
    counted = {"returned": 3, "unclaimed": 2, "dropped": 1}
    with vhost_for_a_while() as vhost:
        rows = Table(vhost, tmp_path, ["trade@far both", "bridge"], {}).rows
        rows["trade@far both"].show({"name": "trade@far both", "state": "up", "mode": "both"})
        for row in rows.values():
            for counter, value in counted.items():
                row.set(counter, value)
        samples = Samples(text(vhost))
        for counter, value in counted.items():
            name = f"agent_{counter}_total"
            assert samples.of(name, link="trade@far both", kind="agent") == value
            assert len(samples.all(name)) == 1
