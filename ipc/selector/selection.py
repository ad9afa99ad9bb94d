"""A selection: the selector of one consumer, and how far it has searched the queue."""

from __future__ import annotations

from typing import Any

from shmbroker.ipc._native import ffi
from shmbroker.ipc.selector.selector import Selector


class Selection:
    """Belongs to one consumer: what it has passed over it does not look at again."""

    __slots__ = ("_program", "_text", "selection", "selector")

    def __init__(self, selector: str | Selector) -> None:
        self.selector = selector if isinstance(selector, Selector) else Selector(selector)
        self._program = ffi.from_buffer(self.selector.program)  # named: it must live as long as we
        self.selection: Any = ffi.new("sb_selection *")
        self.selection.program = self._program
        self.selection.bytes = len(self._program)
        self._text = ffi.from_buffer(self.selector.text.encode())
        self.selection.text, self.selection.text_length = self._text, len(self._text)

    @property
    def position(self) -> int:
        """Nothing below is wanted, and was there when we looked."""
        position: int = self.selection.position
        return position

    @property
    def returned(self) -> int:
        """So many messages had come back when we looked."""
        returned: int = self.selection.returned
        return returned
