"""The two ends of an agent's link: what each hears and sees in, what it says and does out.

    near    the end of the broker that has the agent: joins, and asks
    far     the end of the other broker: answers, binds what it is asked for, and ships that

Nothing is shipped before both exchanges are joined.  An agent that forwards and subscribes ships
when what it wants is bound there: else what comes back from there would be lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from shmbroker.netbridge.agent.option import Mode
from shmbroker.netbridge.agent.said import Apart, Bound, Joined, Joins, Said, Wanted, Wants
from shmbroker.netbridge.agent.subscription import Asked, Asking
from shmbroker.netbridge.wire.malformed import Malformed


@dataclass(frozen=True, slots=True)
class Say:
    what: Said


@dataclass(frozen=True, slots=True)
class Ship:
    """What waits; whoever does it sets `is_open`."""


@dataclass(frozen=True, slots=True)
class Look:
    """Soon: at the exchange and its bindings."""


@dataclass(frozen=True, slots=True)
class Copied:
    """So many bindings are wanted there."""

    bindings: int


@dataclass(frozen=True, slots=True)
class NotJoined:
    """The link is of no use."""

    why: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Declare this exchange, and say `answered` whether it is so."""

    said: Joins


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Somebody subscribes: from now on bindings may come for it."""

    exchange: str


@dataclass(frozen=True, slots=True)
class Bind:
    """What is `asked` for is another set; say `bound` when it is so here."""


Act: TypeAlias = Say | Ship | Look | Copied | NotJoined | Answer | Subscribe | Bind
Acts: TypeAlias = Iterator[Act]


class Near:
    def __init__(self, exchange: str, mode: Mode, hops: int) -> None:
        self.exchange, self.mode, self._hops = exchange, mode, hops
        self._joins = ""
        """The kind of exchange that was said."""
        self._is_joined = False
        self.is_open = False
        """What waits is shipped."""
        self._asking: Asking | None = None

    def looks(self, kind: str | None, wanted: frozenset[Wanted] | None) -> Acts:
        """At the exchange here.  `kind` None: it is not there; `wanted`: its bindings, if they were
        looked for."""
        if kind is None:
            return
        if not self._joins:
            self._joins = kind
            yield Say(Joins(self.exchange, kind))
        elif kind != self._joins:
            yield NotJoined(f"exchange {self.exchange!r} was {self._joins} here, and is {kind} now")
        elif self._is_joined and self.mode.subscribes and wanted is not None:
            if self._asking is None:
                self._asking = Asking(self._hops)
            for each in self._asking.wants(wanted):
                yield Say(each)
            yield Copied(len(wanted))

    def heard(self, said: Said) -> Acts:
        if isinstance(said, Bound):
            if self._asking is None:
                raise Malformed("nobody has asked for a binding")
            if self.mode.forwards and not self.is_open:
                yield Ship()
        elif isinstance(said, Joins):
            raise _joined_once(said)
        elif isinstance(said, Wants):
            raise _wanted_of_none()
        elif not self._joins or self._is_joined:
            raise _not_asked()
        elif isinstance(said, Apart):
            yield NotJoined(said.why)
        else:
            self._is_joined = True
            # what was bound at the last look may be so no more
            yield Look() if self.mode.subscribes else Ship()


class Far:
    def __init__(self) -> None:
        self._joins: Joins | None = None
        self._is_joined = False
        self.is_open = False
        """What waits is shipped."""
        self.asked: Asked | None = None
        """None: nobody subscribes."""

    def heard(self, said: Said) -> Acts:
        if isinstance(said, Joins):
            if self._joins is not None:
                raise _joined_once(said)
            self._joins = said
            yield Answer(said)
        elif isinstance(said, Wants):
            yield from self._wanted(said)
        elif isinstance(said, Bound):
            raise Malformed("nobody has asked for a binding")
        else:
            raise _not_asked()

    def answered(self, said: Said) -> Acts:
        self._is_joined = isinstance(said, Joined)
        yield Say(said)

    def _wanted(self, said: Wants) -> Acts:
        if not self._is_joined or self._joins is None:
            raise _wanted_of_none()
        if self.asked is None:
            self.asked = Asked()
            yield Subscribe(self._joins.exchange)
            yield Look()  # from now on, whether the exchange is the same
        if self.asked.heard(said):
            yield Bind()

    def bound(self) -> Acts:
        """What is asked for."""
        if not self.is_open:
            yield Ship()
            yield Say(Bound())


def _joined_once(said: Joins) -> Malformed:
    return Malformed(f"exchange {said.exchange!r} is joined once, by one end")


def _wanted_of_none() -> Malformed:
    return Malformed("bindings are wanted of an exchange that is not joined")


def _not_asked() -> Malformed:
    return Malformed("nobody has asked whether an exchange is joined")
