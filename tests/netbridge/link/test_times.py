"""The options of [link-defaults] as the times of a link."""

from __future__ import annotations

from dataclasses import replace

from shmbroker.netbridge.link.option import of_member, times_of
from shmbroker.netbridge.link.times import LinkTimes


def test_without_any_option_they_are_the_defaults() -> None:
    assert times_of({}) == LinkTimes()


def test_what_is_given_counts() -> None:
    times = times_of({"heartbeat-interval": 1.0, "window-size": 0, "max-frame-size": 1 << 16})
    assert (times.heartbeat_interval, times.silence) == (1.0, 3.0)
    assert (times.window_size, times.max_frame_size) == (0, 1 << 16)
    assert times_of({"check-period": 2.0, "connection-ttl": 5.0}).silence == 5.0


def test_a_member_of_a_list_has_times_of_its_own() -> None:
    link = LinkTimes(heartbeat_interval=1.0, heartbeat_misses=4, window_messages=7, memory=5)
    assert of_member(link, {"key": "0" * 64, "vhost": "x"}) == link
    assert of_member(link, {"heartbeat-interval": 7.0}) == replace(link, heartbeat_interval=7.0)
    documented = of_member(link, {"check-period": 2.0, "connection-ttl": 5.0, "window-size": 0})
    assert documented.silence == 5.0
    assert (documented.window_size, documented.window_messages, documented.memory) == (0, 7, 5)
