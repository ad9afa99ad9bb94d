"""Raised inside of the machine where the link cannot go on; the machine ends it."""

from __future__ import annotations

from shmbroker.netbridge.link.ending import Ending, Reason, ending


class Broken(Exception):
    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.detail)
        self.ending = ending


def broken(reason: Reason, detail: str) -> Broken:
    return Broken(ending(reason, detail))
