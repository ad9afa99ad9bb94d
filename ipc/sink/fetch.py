"""Which messages of a queue go to a broker that fetches them (travelled.c)."""

from __future__ import annotations

from typing import Any

from shmbroker.ipc._native import ffi, lib


class Fetch:
    """What came over no network link, and of each `cycle` positions one."""

    __slots__ = ("chooses",)

    def __init__(self, cycle: int, turn: int) -> None:
        context = ffi.new("sb_fetch *", (cycle, turn))
        self.chooses: tuple[Any, Any] = ffi.addressof(lib, "sb_is_fetched"), context
