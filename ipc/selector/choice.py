"""A choice among messages: what one of some selectors matches, and none of some others."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from shmbroker.ipc._native import ffi
from shmbroker.ipc.selector.selection import Selection


class Choice:
    __slots__ = ("_kept", "choice")

    def __init__(self, wanted: Collection[str], others: Collection[str] = ()) -> None:
        """Without `wanted` all that the others leave; SelectorError."""
        selections = [Selection(each) for each in (*wanted, *others)]
        copies = [each.selection[0] for each in selections]
        choice: Any = ffi.new("sb_choice *")
        choice.wanted = at_wanted = ffi.new("sb_selection[]", copies[: len(wanted)])
        choice.others = at_others = ffi.new("sb_selection[]", copies[len(wanted) :])
        choice.wanted_count, choice.others_count = len(wanted), len(others)
        self._kept = selections, at_wanted, at_others  # they must live as long as we
        self.choice = choice
