"""Targets: numbers by which messages on their way say which queue or exchange of a node they are
for."""

from __future__ import annotations

from shmbroker.ipc._native import lib


def target_of(name: str) -> int:
    """Of the queue of this name, at any node; never 0."""
    given = name.encode()
    number: int = lib.sb_target_of(given, len(given))
    return number


def target_of_reply(name: str) -> int:
    """Of the temporary queue of this name, at which whoever has asked waits."""
    given = name.encode()
    number: int = lib.sb_target_of_reply(given, len(given))
    return number


def target_of_agent(hops_max: int, *, comes_back: bool = False) -> int:
    """Of messages that go over so many message transfer agents at most.

    `comes_back`: to here, where nobody has them, as to whoever has subscribed to them there.
    """
    number: int = lib.sb_target_of_agent(hops_max, comes_back)
    return number


def target_of_exchange(name: str) -> int:
    """Of the exchange of this name: for all queues that are bound to it there."""
    given = name.encode()
    number: int = lib.sb_target_of_exchange(given, len(given))
    return number
