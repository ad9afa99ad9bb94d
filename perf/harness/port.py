"""A port: the calls by which the shared Python loops drive one process's end of a transport."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shmbroker.perf.harness.tally import Message


def _absent(*_: Any) -> Any:
    raise NotImplementedError("this port has no such direction")


class NeverFull(Exception):
    """Never raised."""


@dataclass(frozen=True, slots=True)
class Port:
    """Give the library's own bound methods wherever they fit: a wrapper costs 50 ns a call."""

    send: Callable[[bytes], object] = _absent
    """Blocks, or returns ``False`` (nothing else is False) or raises for: full, try again."""
    receive: Callable[[], Message | None] = _absent
    """Blocks, or returns ``None`` for: nothing there, try again."""
    send_many: Callable[[list[bytes]], int | None] | None = None
    """How many of the list, from its front, were sent; None for all."""
    receive_many: Callable[[], Sequence[Message]] | None = None
    """What is there, perhaps nothing. Without it mode batch receives one at a time."""
    full: type[Exception] = NeverFull
    """What ``send`` raises for: full, try again."""
    close: Callable[[], object] = lambda: None
