"""One group under load: how long a confirm takes, and how long nothing is confirmed after a blow.

    program ══ TCP ══ who answers   <-- kill -9, or SIGSTOP
       └───── then ══ who takes over

The program waits for each confirm, and goes on by itself.  The one outstanding publish may have
been confirmed by who was struck, so a pause ends behind the longer one of two gaps: that from the
last confirm before the blow to the first one after it, and the one after that.
"""

from __future__ import annotations

import random
import signal
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from shmbroker.perf.replicated.group import PATIENCE_S, Group
from shmbroker.perf.scenarios.durable.contender import Contender, sliced
from shmbroker.perf.server.connection import BATCH, Connection

BODY: Final = struct.Struct("<q56x")
"""64 bytes."""
END: Final = -1
AT_REST_S: Final = 0.5
RANDOM_S: Final = 0.05
BETWEEN_S: Final = 0.0005


@dataclass(slots=True)
class Outcome:
    contender: Contender
    pauses: dict[str, list[int]] = field(default_factory=dict)
    """By what struck who answered: from the blow to the next confirm, in ns."""
    confirmed: int = 0
    lost: int = 0
    twice: int = 0

    @property
    def faults(self) -> list[str]:
        lost = [f"{self.lost} of {self.confirmed} confirmed messages lost"] if self.lost else []
        return [*self.contender.failures, *lost]


class Publisher:
    """Of one thread, until it is over."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.times: list[int] = []
        """When each was confirmed."""
        self.failure: BaseException | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                self._connection.publish(BODY.pack(len(self.times)))
                self.times.append(time.monotonic_ns())
        except BaseException as failure:  # noqa: BLE001 - told by who waits for it
            self.failure = failure

    def waits(self, count: int) -> None:
        """Until so many are confirmed."""
        ends_at = time.monotonic() + PATIENCE_S
        while len(self.times) < count:
            if self.failure is not None:
                raise RuntimeError(f"the publisher has ended: {self.failure!r}")
            if time.monotonic() > ends_at:
                raise TimeoutError("nothing is confirmed any more")
            time.sleep(BETWEEN_S)

    def ends(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE_S)


def tried(
    group: Group, folder: Path, rounds: int, singles: int, many: int, blows: int, seed: int,
    tell: Callable[[str], None],
) -> Outcome:  # fmt: skip
    outcome = Outcome(Contender(group.name, group.version()))
    moments = random.Random(seed)
    try:
        with group.hosted(folder):
            tell("starting")
            group.whole()
            connection = group.connect()
            group.whole()
            for number in range(rounds):
                tell(f"confirms, round {number + 1}")
                measured = sliced(connection, BODY.size, singles, many)
                outcome.contender.note(BODY.size, measured)
            publisher = Publisher(connection)
            kinds = [signal.SIGKILL, *([signal.SIGSTOP] if group.told_of_silence else [])]
            for kind in kinds:
                pauses = outcome.pauses[kind.name] = []
                for number in range(blows):
                    tell(f"{kind.name} {number + 1}")
                    pauses.append(struck(group, publisher, kind, moments))
            publisher.ends()
            tell("taking what was confirmed")
            account(connection, len(publisher.times), outcome)
            connection.close()
    except Exception as failure:  # noqa: BLE001 - one that fails must not stop the others
        outcome.contender.failures.append(f"{type(failure).__name__}: {failure}")
    return outcome


def struck(group: Group, publisher: Publisher, what: signal.Signals, moments: random.Random) -> int:
    name = group.whole()
    time.sleep(AT_REST_S + moments.uniform(0, RANDOM_S))
    publisher.waits(len(publisher.times) + 1)
    at = group.strike(name, what)
    before = sum(each < at for each in publisher.times[-BATCH:])
    first = len(publisher.times[:-BATCH]) + before
    publisher.waits(first + 2)
    last, one, two = (publisher.times[each] for each in (first - 1, first, first + 1))
    group.revive(name)
    return (one if one - last >= two - one else two) - at


def account(connection: Connection, confirmed: int, outcome: Outcome) -> None:
    """All that was confirmed is there; what was published again may be there twice."""
    connection.publish(BODY.pack(END))
    numbers: Counter[int] = Counter()
    while END not in numbers:
        numbers.update(BODY.unpack(body)[0] for body in connection.take(BATCH))
    outcome.confirmed = confirmed
    outcome.lost = sum(number not in numbers for number in range(confirmed))
    outcome.twice = sum(each > 1 for each in numbers.values())
