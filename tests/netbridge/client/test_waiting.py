"""Signals that are set by several threads."""

from __future__ import annotations

from shmbroker.netbridge.client.waiting import Blocking, finished


def test_a_signal_that_two_threads_set_at_once_is_set() -> None:
    """The second one has looked before the first one has set it."""
    way = Blocking()
    signal = way.signal()
    signal.set()
    signal.is_set = False
    signal.set()
    assert finished(way.wait(signal))
