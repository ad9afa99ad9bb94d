"""What a cluster says, counted with the real machines: no more than the page on clusters tells."""

from __future__ import annotations

from functools import cache

import pytest

from shmbroker.netbridge.simulation import __main__ as simulation
from shmbroker.netbridge.simulation.cost import events
from shmbroker.netbridge.simulation.cost.events import Size, Town
from shmbroker.netbridge.simulation.cost.quiet import QuietLink
from shmbroker.netbridge.simulation.cost.table import growth
from shmbroker.netbridge.simulation.cost.tally import Tally

NODES = 10
FEWER = 5
ROWS = 10
AT_ONCE = "all are started at once"
JOINS = "a broker joins"
OF_QUEUES = (
    "the last consumer of a queue leaves",
    "a first consumer of a queue comes",
    "one with another selector comes",
    "a queue is declared",
    "a queue is deleted",
)


@cache
def told(nodes: int, *, is_chain: bool = False) -> dict[str, Tally]:
    town = Town(Size(nodes, nodes * ROWS, nodes * ROWS), is_chain=is_chain)
    found = {each.what: each.told for each in town.events()}
    assert all(each.has_read_all for each in town.cluster.members.values())
    return found


@pytest.mark.parametrize("is_chain", [False, True], ids=["mesh", "chain"])
@pytest.mark.parametrize("what", OF_QUEUES)
def test_a_change_is_told_each_other_broker_once(what: str, is_chain: bool) -> None:
    """And each asks for the next one."""
    found = told(NODES, is_chain=is_chain)[what]
    assert found.frames == {"Told": NODES - 1, "Ask": NODES - 1}
    assert found.bytes < 155 * (NODES - 1)


def test_a_consumer_that_changes_nothing_costs_nothing() -> None:
    assert told(NODES)["another one comes"].messages == 0


def test_changes_everywhere_grow_with_the_square() -> None:
    found = told(NODES)["the last consumer of a queue leaves at each broker"]
    assert found.frames == {"Told": NODES * (NODES - 1), "Ask": NODES * (NODES - 1)}


def test_who_joins_costs_each_link_some_messages() -> None:
    """So it grows with the square of the brokers; of queues it is a row to each, once."""
    few, many = told(FEWER)[JOINS], told(NODES)[JOINS]
    assert many.messages < 9 * NODES * (NODES - 1)
    assert many.messages < 4.5 * few.messages
    assert many.frames["Told"] == 2 * (NODES - 1)
    assert told(NODES, is_chain=True)[JOINS].messages < 27 * NODES
    assert told(NODES)[AT_ONCE].messages < 3 * NODES**3


def test_who_is_gone_costs_a_message_to_each() -> None:
    assert told(NODES)["a broker is killed"].messages <= NODES
    forgotten = told(NODES)["a broker that is gone is forgotten"]
    assert forgotten.messages < 4.5 * NODES * (NODES - 1)


def test_brokers_that_are_there_at_once_are_as_those_that_were_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So figures of large clusters, which begin like that, are of a cluster as it comes to be."""
    monkeypatch.setattr(events, "STARTED_MAX", 0)
    town = Town(Size(FEWER, FEWER * ROWS, FEWER * ROWS))
    found = {each.what: each.told for each in town.events()}
    assert AT_ONCE not in found
    assert found == {what: each for what, each in told(FEWER).items() if what != AT_ONCE}


def test_a_quiet_link_beats_five_times_a_second_each_way() -> None:
    link = QuietLink(ships=True)
    assert link.waits(0.0).frames.keys() == {
        "Hello", "Challenge", "Proof", "Welcome", "Open", "Opened", "Resume",
    }  # fmt: skip
    beats = link.waits(10.0)
    assert beats.frames.keys() == {"Beat"}
    assert 100 <= beats.messages <= 105
    assert beats.bytes <= 10 * beats.messages


def test_the_command_shows_sizes_beside_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulation", "cost", "--nodes=3,4", "--queues=12", "--consumers=24"]
    monkeypatch.setattr("sys.argv", words)
    assert simulation.main() == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "| | 3 brokers | 4 brokers | grows with |"
    assert any(row.startswith(f"| {JOINS} | ") for row in rows)
    assert "| another one comes | nothing | nothing |  |" in rows


def test_growth_is_the_power_between_the_two_largest() -> None:
    sizes = {5: Tally(), 10: Tally(), 20: Tally()}
    sizes[10].sent("Here", 100)
    for _ in range(4):
        sizes[20].sent("Here", 100)
    assert growth(sizes) == "n^2.0"
    assert growth({10: sizes[10]}) == ""
