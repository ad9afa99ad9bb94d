"""The settings of queues that a configuration gives by pattern: a live puts them into its vhost.

What a program has set for the same pattern wins.  A file in the store has what was put last, by
whichever instance was live: what is still as it says is the configuration's, and changes with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance.whole import read_whole, write_whole

FILE: Final = "queue-settings"
NOTHING: Final[Mapping[str, Any]] = {}

Patterns = Mapping[str, Mapping[str, Any]]
"""Settings, by pattern."""


def put(broker: Broker, wanted: Patterns, store: Path) -> list[str]:
    """Patterns of which something changed."""
    place = store / FILE
    last = read_whole(place)
    if not wanted and not last:
        return []
    there = {each.pattern: each.settings for each in broker.patterns()}
    changed = []
    for pattern in sorted({*wanted, *last}):
        has, given = there.get(pattern, NOTHING), wanted.get(pattern, NOTHING)
        merged = {**given, **_of_programs(has, given, last.get(pattern))}
        if merged == has:
            continue
        changed.append(pattern)
        if merged:
            broker.settings(pattern, **merged)
        else:
            with suppress(NotFound):  # a program was faster
                broker.remove_settings(pattern)
    # killed before this, the next one finds what is wanted already
    write_whole(place, {pattern: dict(given) for pattern, given in wanted.items()})
    return changed


def _of_programs(has: Mapping[str, Any], given: Mapping[str, Any], last: object) -> dict[str, Any]:
    """What neither was put last nor is wanted now."""
    former = last if isinstance(last, dict) else {}
    return {
        name: value
        for name, value in has.items()
        if not any(name in of and of[name] == value for of in (former, given))
    }
