"""What the scenarios of a ring remember about a run, beside its memory."""

from __future__ import annotations

from typing import NamedTuple


class Ledger(NamedTuple):
    """The less it holds, the fewer states there are."""

    published: tuple[int, ...] = ()
    """The body of each message, in the order of positions."""
    done: int = 0
    """Bit i: the i-th message was acknowledged."""
    cursors: tuple[tuple[int, int], ...] = ()
    """Of each cursor that has joined and not left: the position that it sees next, its gate."""

    def publishing(self, body: int) -> Ledger:
        return self._replace(published=(*self.published, body))

    def finishing(self, number: int) -> Ledger:
        return self._replace(done=self.done | (1 << number))

    def is_done(self, number: int) -> bool:
        return bool(self.done >> number & 1)

    @property
    def all_done(self) -> bool:
        return self.done == (1 << len(self.published)) - 1
