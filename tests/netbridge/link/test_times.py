"""The options of [link-defaults] as the times of a link."""

from __future__ import annotations

from shmbroker.netbridge.link.option import times_of
from shmbroker.netbridge.link.times import LinkTimes


def test_without_any_option_they_are_the_defaults() -> None:
    assert times_of({}) == LinkTimes()


def test_what_is_given_counts() -> None:
    times = times_of({"heartbeat-interval": 1.0, "window-size": 0, "max-frame-size": 1 << 16})
    assert (times.heartbeat_interval, times.silence) == (1.0, 3.0)
    assert (times.window_size, times.max_frame_size) == (0, 1 << 16)
    assert times_of({"check-period": 2.0, "connection-ttl": 5.0}).silence == 5.0
