"""Links that are not up, and what waits for them, are told by doctor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker import Broker
from shmbroker.netbridge.broker import table
from shmbroker.netbridge.broker.delayed import behind, findings
from tests.cli.command import Shell

NAMES = ("up", "idle", "down", "stopped")


@pytest.fixture
def links(broker: Broker, tmp_path: Path) -> Iterator[table.Table]:
    """Four of them; `down` and `up` have a message that waits."""
    path = table.path_of(broker.vhost)
    made = table.Table(broker.vhost, tmp_path, NAMES, {})
    for name in NAMES:
        broker.declare_queue(f"of-{name}")
        state = {"up": "up", "stopped": "stopped"}.get(name, "unreachable")
        made.rows[name].show({"name": name, "state": state, "queue": f"of-{name}", "reason": "r"})
    for name in ("up", "down"):
        broker.queue(f"of-{name}").publish(b"")
    yield made
    path.unlink()


def test_links_that_are_not_up(broker: Broker, links: table.Table) -> None:
    found = {each.subject.split("'")[1]: each for each in findings(broker)}
    assert found.keys() == {"idle", "down", "stopped"}
    assert {name: each.severity for name, each in found.items()} == {
        "idle": "note", "down": "warning", "stopped": "note",
    }  # fmt: skip
    assert found["down"].problem.startswith("it is unreachable: r; 1 message waits, it for ")
    assert f"shmbroker link start 'stopped' --vhost {broker.vhost}" in found["stopped"].remedy
    told = Shell(broker.vhost)("doctor", "--json").json
    assert {each.subject for each in found.values()} <= {each["subject"] for each in told}


def test_an_agent_without_a_queue(broker: Broker, links: table.Table) -> None:
    """It subscribes: nothing waits here, and nothing comes."""
    row = links.rows["idle"]
    row.show({"name": "news@far 1", "state": "failed", "mode": "subscribe", "reason": "r"})
    [agent] = [each for each in findings(broker) if each.subject.startswith("agent")]
    assert agent.subject == f"agent 'news@far 1' of vhost {broker.vhost!r}"
    assert agent.severity == "warning"
    assert agent.problem == "it is failed: r; what is published there does not come"
    assert "both exchanges the same" in agent.remedy


def test_a_link_that_is_up_and_slow(
    broker: Broker, links: table.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shmbroker.netbridge.broker.delayed.LONG_SECONDS", 0.0)
    [slow] = [each for each in findings(broker) if "'up'" in each.subject]
    assert slow.problem.startswith("it is up, and slow; 1 message waits")


def test_how_it_is_said() -> None:
    assert behind(0, None) == behind(None, None) == ""
    assert behind(1, 90.0) == "; 1 message waits, it for 90 s"
    assert behind(1200, 4000.4) == "; 1,200 messages wait, the first for 4,000 s"
