"""What is announced, and when, by a pretended clock."""

from __future__ import annotations

from shmbroker.netbridge.discovery.announcing import NEVER, Announcing

NODE = b"N" * 16


def test_nothing_until_it_is_something() -> None:
    machine = Announcing("east", "tcp://east", 2.0, b"1" * 16, 1000)
    assert machine.deadline == NEVER
    assert machine.tick(5) is None


def test_at_once_then_each_period() -> None:
    machine = Announcing("east", "tcp://east", 2.0, b"1" * 16, 1000)
    machine.becomes(NODE, 3, is_live=True, now=5)
    first = machine.tick(5)
    assert first is not None
    assert (first.node, first.sequence, first.is_live, first.epoch) == (NODE, 1, True, 3)
    assert (first.started, first.period_ms) == (1000, 2000)
    assert machine.tick(6.9) is None
    assert machine.deadline == 7
    second = machine.tick(7)
    assert second is not None
    assert second.sequence == 2


def test_at_once_when_it_has_changed() -> None:
    """A backup, as soon as it is live."""
    machine = Announcing("east", "tcp://east", 2.0, b"1" * 16, 1000)
    machine.becomes(NODE, 3, is_live=False, now=0)
    assert machine.tick(0) is not None
    machine.becomes(NODE, 3, is_live=False, now=1)
    assert machine.deadline == 2  # that was no change
    machine.becomes(NODE, 4, is_live=True, now=1.5)
    found = machine.tick(1.5)
    assert found is not None
    assert (found.is_live, found.epoch, found.sequence) == (True, 4, 2)
    assert machine.deadline == 3.5
