"""A contender: a server that runs, what it was measured to do, and whether it keeps its promise."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import median, quantiles

from shmbroker.ipc.latency.latency import Histogram
from shmbroker.perf.machine.histograms import histogram_of
from shmbroker.perf.server.connection import BATCH, Connection

COUNT_MAX = 1 << 17
"""Messages of one slice: with those of its own, what fits our queue and its arena."""
WEAR_COUNT, WEAR_BYTES = 1 << 14, 4 << 10
_NUMBER = struct.Struct("<q")
_numbers = count()

Clock = Callable[[], int]


class NotWhatWasSent(Exception):
    """What was consumed is not what was confirmed, or in another order."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What one contender did in one round, for one size."""

    waits_ns: tuple[int, ...]
    """For each confirm, one outstanding."""
    per_s: float
    """Messages a second, many outstanding. Of the bare disk: bytes."""

    @property
    def median_ns(self) -> float:
        return median(self.waits_ns)


@dataclass(frozen=True, slots=True)
class Promise:
    """Confirms and syncs that were counted together."""

    confirms: int
    syncs: int

    @property
    def per_sync(self) -> float:
        return self.confirms / self.syncs if self.syncs else float("inf")

    @property
    def is_kept(self) -> bool:
        """Of confirms that were waited for one after the other: each had a sync of its own."""
        return self.syncs >= self.confirms


@dataclass(slots=True)
class Contender:
    name: str
    version: str = ""
    slices: dict[int, list[Slice]] = field(default_factory=dict)
    singly: Promise | None = None
    in_batches: Promise | None = None
    failures: list[str] = field(default_factory=list)

    @property
    def syncs(self) -> bool:
        """Whether its figures may be compared with those of who syncs."""
        return self.singly is not None and self.singly.is_kept

    def note(self, size: int, measured: Slice) -> None:
        self.slices.setdefault(size, []).append(measured)

    def wait_ns(self, size: int, percent: int) -> float:
        """Of all confirms of all rounds."""
        waits = [wait for each in self.slices[size] for wait in each.waits_ns]
        return quantiles(waits, n=100)[percent - 1]

    def histogram(self, size: int) -> Histogram:
        return histogram_of([wait for each in self.slices[size] for wait in each.waits_ns])

    def per_s(self, size: int) -> float:
        return median(each.per_s for each in self.slices[size])

    def ratio(self, other: Contender, size: int, of: Callable[[Slice], float]) -> float:
        """The median over the rounds of this one's figure / the other's in the same round."""
        pairs = zip(self.slices[size], other.slices[size], strict=True)
        return median(of(mine) / of(theirs) for mine, theirs in pairs)


def made(number: int, size: int) -> list[bytes]:
    """So many messages, none of which was there before."""
    rest = bytes(size - _NUMBER.size)
    return [_NUMBER.pack(next(_numbers)) + rest for _ in range(number)]


def waited_ns(publish: Callable[[bytes], object], bodies: Iterable[bytes]) -> Iterator[int]:
    clock: Clock = time.perf_counter_ns
    for body in bodies:
        before = clock()
        publish(body)
        yield clock() - before


def sliced(connection: Connection, size: int, singles: int, many: int) -> Slice:
    """One slice, whose messages are consumed and compared; that is not timed."""
    one_by_one, together = made(singles, size), made(many, size)
    waits = tuple(waited_ns(connection.publish, one_by_one))
    before = time.perf_counter()
    connection.publish_many(together)
    spent = time.perf_counter() - before
    consume(connection, one_by_one + together)
    return Slice(waits, many / spent)


def wear(connection: Connection, log_bytes: int) -> None:
    """Publish and consume until so many bytes have gone through the server's files."""
    for _ in range(-(-log_bytes // (WEAR_BYTES * WEAR_COUNT))):
        together = made(WEAR_COUNT, WEAR_BYTES)
        connection.publish_many(together)
        consume(connection, together)


def consume(connection: Connection, sent: Sequence[bytes]) -> None:
    """NotWhatWasSent unless just this comes, in this order."""
    at = 0
    while at < len(sent):
        taken = connection.take(min(BATCH, len(sent) - at))
        if taken != sent[at : at + len(taken)]:
            odd = next(i for i, body in enumerate(taken) if body != sent[at + i])
            raise NotWhatWasSent(
                f"message {at + odd} of {len(sent)} is {taken[odd][:16]!r}..., "
                f"not {sent[at + odd][:16]!r}..."
            )
        at += len(taken)


def calibrated(connection: Connection, size: int, seconds: float) -> int:
    """How many messages take about so long when many are outstanding."""
    many = BATCH // 4
    while True:
        spent = many / sliced(connection, size, 1, many).per_s
        if spent >= seconds / 4 or many == COUNT_MAX:
            return min(max(int(many * seconds / spent), BATCH // 4), COUNT_MAX)
        many = min(4 * many, COUNT_MAX)
