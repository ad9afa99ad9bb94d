"""What the scenarios of a ring remember about a run, beside its memory."""

from __future__ import annotations

from typing import NamedTuple


class Ledger(NamedTuple):
    """The less it holds, the fewer states there are."""

    published: tuple[int, ...] = ()
    """The body of each message, in the order of positions; 0 once head has passed it."""
    last: tuple[tuple[int, int], ...] = ()
    """The number of the last message of each producer."""
    done: int = 0
    """Bit i: the i-th message was acknowledged."""
    cursors: tuple[tuple[int, int], ...] = ()
    """Of each cursor that has joined and not left: whose it is, the position that it sees next."""
    counted: tuple[tuple[int, int, int], ...] = ()
    """Of the messages of which one counts: what those were that do, in order."""

    held: tuple[tuple[int, int], ...] = ()
    """What somebody was told to have, and whose it is; in rings with groups only."""

    def holding(self, number: int, actor: int) -> Ledger:
        return self._replace(held=tuple(sorted((*self.held, (number, actor)))))

    def letting_go(self, number: int) -> Ledger:
        return self._replace(held=tuple(each for each in self.held if each[0] != number))

    def publishing(self, body: int, producer: int, number: int) -> Ledger:
        others = (each for each in self.last if each[0] != producer)
        last = tuple(sorted((*others, (producer, number))))
        return self._replace(published=(*self.published, body), last=last)

    def last_of(self, producer: int) -> int:
        return dict(self.last).get(producer, 0)

    def forgetting(self, passed: int) -> Ledger:
        """Head has passed so many messages: their bodies are no longer part of the state."""
        return self._replace(published=(*(0,) * passed, *self.published[passed:]))

    def finishing(self, number: int) -> Ledger:
        return self.letting_go(number)._replace(done=self.done | (1 << number))

    def is_done(self, number: int) -> bool:
        return bool(self.done >> number & 1)

    def following(self, actor: int) -> int:
        """The position that this actor's cursor sees next, -1 if it has none."""
        return dict(self.cursors).get(actor, -1)

    def moving(self, actor: int, position: int) -> Ledger:
        others = (each for each in self.cursors if each[0] != actor)
        return self._replace(cursors=tuple(sorted((*others, (actor, position)))))

    def leaving(self, actor: int) -> Ledger:
        return self._replace(cursors=tuple(each for each in self.cursors if each[0] != actor))

    @property
    def all_done(self) -> bool:
        return self.done == (1 << len(self.published)) - 1
