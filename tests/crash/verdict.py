"""The verdict: every message of a round accounted for, by what all incarnations have noted.

    confirmed, and received by nobody                       lost
    received, and neither confirmed nor possible            from nowhere
    received twice with the same number of deliveries       doubled, and not flagged
    acknowledged twice, or delivered again afterwards       doubled, although acknowledged
    received, and acknowledged by nobody                    forgotten
    other content than was published                        damaged
    positions against the order of a producer's numbers     reordered

A producer that was killed may have published what it had no time to note: such a message is
unknown, and may exist or not.  A consumer that was killed may have acknowledged what it was about
to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.crash.journal import ACKED, ACKING, CONFIRMED, DAMAGED, GOT, NOWHERE, Records
from tests.crash.part import NAMES, ONE
from tests.crash.producers import BATCH_MAX

Words = npt.NDArray[np.int64]

DELIVERIES_MAX = 15
"""The counter stays there."""
IDENTITY_SHIFT, QUEUE_SHIFT = 36, 56
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Life:
    """What one incarnation has left behind."""

    role: str
    identity: int
    was_killed: bool
    records: Records


@dataclass(frozen=True, slots=True)
class Tally:
    """What a round has moved."""

    confirmed: int = 0
    delivered: int = 0
    redelivered: int = 0
    unknown: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.confirmed + other.confirmed,
            self.delivered + other.delivered,
            self.redelivered + other.redelivered,
            self.unknown + other.unknown,
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Records of one kind, of all incarnations, in the order of these; column by column."""

    message: Words
    """Queue, identity and number in one word."""
    deliveries: Words
    position: Words
    by: Words
    """The incarnation that noted it."""

    @classmethod
    def of(cls, lives: Sequence[Life], kind: int) -> Table:
        parts, by = [], []
        for life in lives:
            chosen = life.records["kind"] == kind
            part = life.records[chosen & (life.records["queue"] < len(NAMES))]
            parts.append(part)
            by.append(np.full(len(part), life.identity, np.int64))
        whole = np.concatenate(parts)
        return cls(
            (whole["queue"].astype(np.int64) << QUEUE_SHIFT)
            | (whole["identity"].astype(np.int64) << IDENTITY_SHIFT)
            | whole["number"].astype(np.int64),
            whole["deliveries"].astype(np.int64),
            whole["position"].astype(np.int64),
            np.concatenate(by),
        )

    def where(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Table:
        return Table(
            self.message[chosen], self.deliveries[chosen], self.position[chosen], self.by[chosen]
        )


def name_of(message: int) -> str:
    queue, identity = message >> QUEUE_SHIFT, (message >> IDENTITY_SHIFT) & 0xFFFFF
    return f"{NAMES[queue]}:{identity}.{message & ((1 << IDENTITY_SHIFT) - 1)}"


def _some(what: str, messages: Words) -> Iterator[str]:
    if len(messages):
        shown = ", ".join(name_of(int(each)) for each in messages[:SHOWN])
        yield f"{len(messages)} messages {what}: {shown}{' ...' * (len(messages) > SHOWN)}"


def faults(lives: Sequence[Life]) -> Iterator[str]:
    """Everything that should not have happened, a line each."""
    lives = sorted(lives, key=lambda life: life.identity)
    confirmed, got, acked = (Table.of(lives, kind) for kind in (CONFIRMED, GOT, ACKED))
    for life in lives:
        if damaged := int((life.records["kind"] == DAMAGED).sum()):
            yield f"{damaged} messages damaged in the hands of {life.role} {life.identity}"
    yield from _some("confirmed twice", _repeated(confirmed.message))
    yield from _some("lost", np.setdiff1d(confirmed.message, got.message))
    yield from _some("from nowhere", _strays(lives, confirmed, got)[1])
    yield from _doubled(got, acked)
    yield from _some("forgotten", _forgotten(lives, got, acked))
    yield from _misplaced(confirmed, got)
    yield from _some("out of order at the single consumer", _late(got))


def tally(lives: Sequence[Life]) -> Tally:
    confirmed, got = Table.of(lives, CONFIRMED), Table.of(lives, GOT)
    return Tally(
        len(confirmed.message),
        len(got.message),
        int((got.deliveries > 0).sum()),
        len(_strays(lives, confirmed, got)[0]),
    )


def _repeated(words: Words) -> Words:
    values, counts = np.unique(words, return_counts=True)
    return values[counts > 1]


def _strays(lives: Sequence[Life], confirmed: Table, got: Table) -> tuple[Words, Words]:
    """What was received and not confirmed: as it may be after a kill, and as it may not."""
    strays = np.setdiff1d(got.message, confirmed.message)
    last = {life.identity: -1 for life in lives if life.was_killed}
    mask = (1 << IDENTITY_SHIFT) - 1
    identities = (confirmed.message >> IDENTITY_SHIFT) & 0xFFFFF
    numbers = confirmed.message & mask
    for identity in last:
        own = numbers[identities == identity]
        last[identity] = int(own.max()) if len(own) else -1
    possible = np.zeros(len(strays), np.bool_)
    for index, message in enumerate(strays.tolist()):
        identity, number = (message >> IDENTITY_SHIFT) & 0xFFFFF, message & mask
        if identity in last:
            # the last number itself: noted for the first queue of two
            possible[index] = 0 <= number - last[identity] <= BATCH_MAX
    return strays[possible], strays[~possible]


def _doubled(got: Table, acked: Table) -> Iterator[str]:
    counted = got.where(got.deliveries < DELIVERIES_MAX)
    order = np.lexsort((counted.deliveries, counted.message))
    message, deliveries = counted.message[order], counted.deliveries[order]
    same = (message[1:] == message[:-1]) & (deliveries[1:] == deliveries[:-1])
    yield from _some("delivered twice without a flag", np.unique(message[1:][same]))
    yield from _some("acknowledged twice", _repeated(acked.message))
    order = np.argsort(acked.message)
    known, at = acked.message[order], acked.deliveries[order]
    place = np.minimum(np.searchsorted(known, got.message), max(0, len(known) - 1))
    if len(known):
        after = (known[place] == got.message) & (got.deliveries > at[place])
        yield from _some("delivered although acknowledged", np.unique(got.message[after]))


def _forgotten(lives: Sequence[Life], got: Table, acked: Table) -> Words:
    """Never acknowledged, and nobody was killed in the middle of doing so."""
    last = [
        Life(life.role, life.identity, True, life.records[-1:]) for life in lives if life.was_killed
    ]
    settled = acked.message
    if last:
        settled = np.append(settled, Table.of(last, ACKING).message)
    return np.setdiff1d(got.message, settled)


def _misplaced(confirmed: Table, got: Table) -> Iterator[str]:
    told = confirmed.where(confirmed.position != NOWHERE)
    every = np.unique(
        np.stack(
            [np.append(told.message, got.message), np.append(told.position, got.position)], axis=1
        ),
        axis=0,
    )
    message, position = every[:, 0], every[:, 1]
    yield from _some("at two positions", _repeated(message))
    queue = message >> QUEUE_SHIFT
    places = (queue << QUEUE_SHIFT) | position
    yield from _some("at one position with another", message[np.isin(places, _repeated(places))])
    # sorted by queue, producer, number: so positions rise within the same queue and producer
    same = (message[1:] >> IDENTITY_SHIFT) == (message[:-1] >> IDENTITY_SHIFT)
    yield from _some("reordered", message[1:][same & (position[1:] <= position[:-1])])


def _late(got: Table) -> Words:
    """First deliveries of the queue with one consumer, as it saw them one after another."""
    first = got.where((got.message >> QUEUE_SHIFT == ONE) & (got.deliveries == 0))
    return first.message[1:][first.position[1:] <= first.position[:-1]]
