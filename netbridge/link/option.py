"""The options of a link: where a broker listens, how others reach it, and the times of a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from shmbroker.ipc.base.units import KIB
from shmbroker.ipc.instance.config.kind import FLAG, Kind, count, duration, size
from shmbroker.ipc.instance.config.option import Default, Option
from shmbroker.netbridge.link.times import LinkTimes

HOUR: Final = 3600.0
TABLE: Final = "link-defaults"
CHECK_PERIOD: Final = 30.0
CONNECTION_TTL: Final = 60.0
"""Seconds.  What the documented names mean where only one of them is given."""
FORMS: Final = ({"heartbeat-interval", "heartbeat-misses"}, {"check-period", "connection-ttl"})
"""Of one of these names are given, not of both."""
FIELDS: Final = {
    "connect-timeout": "connect_timeout",
    "handshake-timeout": "handshake_timeout",
    "pending-ack-timeout": "pending_ack_timeout",
    "window-size": "window_size",
    "window-messages": "window_messages",
    "max-frame-size": "max_frame_size",
    "origin-retention": "origin_retention",
    "use-duplicate-detection": "exact",
}
"""Of LinkTimes, by options, whose defaults they have; for heartbeats there are two forms."""


def _row(name: str, kind: Kind, default: Default | None, help: str) -> Option:
    return Option(TABLE, name, kind, default, help, is_reloaded=True)


# fmt: off
LINK_DEFAULTS: Final = (
    _row("heartbeat-interval", duration(0.01, 60), "200ms",
         "A frame is sent at least so often; any frame counts as a heartbeat."),
    _row("heartbeat-misses", count(2, 100), 3,
         "A link is lost after so many intervals of silence, or at once if its socket closes."),
    _row("check-period", duration(0.01, HOUR), None,
         "The same as heartbeat-interval, by the name that AMQ has."),
    _row("connection-ttl", duration(0.02, 24 * HOUR), None,
         "The silence after which a link is lost; at least twice check-period."),
    _row("connect-timeout", duration(0.001, HOUR), "2s", "For the connection to one member."),
    _row("handshake-timeout", duration(0.001, HOUR), "5s",
         "A handshake that takes longer is a failed attempt."),
    _row("call-timeout", duration(0.001, 24 * HOUR, is_endless=True), "30s",
         "How long a question waits for its answer over the link."),
    _row("call-failover-timeout", duration(0.001, 24 * HOUR, is_endless=True), -1,
         "The same while the link is being made anew."),
    _row("window-size", size(is_endless=True), "1MiB",
         "Bytes in flight to one queue; 0: one message at a time."),
    _row("window-messages", count(is_endless=True), 1000,
         "Messages in flight to one queue; 0: one at a time."),
    _row("use-duplicate-detection", FLAG, True, "Without it a batch in doubt may arrive twice."),
    _row("pending-ack-timeout", duration(0, 24 * HOUR), "60s",
         "How long a graceful stop waits for confirms in flight."),
    _row("origin-retention", duration(HOUR, is_endless=True), "7d",
         "How long the mark of an idle origin is kept."),
    _row("refused-retry-interval", duration(0.1, 24 * HOUR, is_endless=True), "60s",
         "When a refused link is tried again; -1: only by `link start` or a reload."),
    _row("max-frame-size", size(64 * KIB, 64 * KIB**2), "4MiB",
         "Longer messages travel in parts; a longer frame is malformed."),
)
# fmt: on


class Contradiction(ValueError):
    """Options that do not go together; the message says which."""


def overridden(defaults: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a link itself, and of the defaults what does not contradict it: heartbeats
    in one form hide those in the other."""
    form = next((each for each in FORMS if each & own.keys()), set())
    hidden = {each for other in FORMS for each in other if form and other is not form}
    return {key: each for key, each in defaults.items() if key not in hidden} | dict(own)


def times_of(given: Mapping[str, Any]) -> LinkTimes:
    """The times of a link.  `given` has values by name, as far as they were given."""
    return of_member(LinkTimes(), {key: each for key, each in given.items() if each is not None})


def of_member(times: LinkTimes, own: Mapping[str, Any]) -> LinkTimes:
    """The times of a link, with those that this member of a list has itself."""
    of_link = {"heartbeat-interval": times.heartbeat_interval,
               "heartbeat-misses": times.heartbeat_misses}  # fmt: skip
    interval, silence = heartbeat(overridden(of_link, own))
    return replace(
        times,
        heartbeat_interval=interval,
        heartbeat_misses=round(silence / interval, 9),
        **{FIELDS[name]: value for name, value in own.items() if name in FIELDS},
    )


def heartbeat(given: Mapping[str, object]) -> tuple[float, float]:
    """The interval of heartbeats and the silence after which a link is lost, in seconds.

    `given` has values by name, as far as they were given.
    """
    ours, documented = (sorted(given.keys() & form) for form in FORMS)
    if ours and documented:
        raise Contradiction(f"{ours[0]} and {documented[0]} exclude each other")
    if documented:
        period = _seconds(given.get("check-period", CHECK_PERIOD))
        silence = _seconds(given.get("connection-ttl", max(CONNECTION_TTL, 2 * period)))
        if silence < 2 * period:
            raise Contradiction(
                f"connection-ttl is at least twice check-period: {silence:g}s is less than twice "
                f"{period:g}s"
            )
        return period, silence
    by_name = {option.name: option for option in LINK_DEFAULTS}
    interval, misses = (
        given.get(name, by_name[name].value_of(by_name[name].default))
        for name in ("heartbeat-interval", "heartbeat-misses")
    )
    return _seconds(interval), _seconds(interval) * _seconds(misses)


def _seconds(value: object) -> float:
    assert isinstance(value, (int, float))
    return value
