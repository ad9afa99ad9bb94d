"""A call of a program, from its beginning to its outcome."""

from __future__ import annotations

from dataclasses import dataclass

from shmbroker.netbridge.remote.options import NO_LIMIT
from shmbroker.netbridge.remote.outcome import Outcome
from shmbroker.netbridge.remote.place import Place
from shmbroker.netbridge.wire.frame import Body, Command
from shmbroker.netbridge.wire.words import Demand, Verb

UNSENT = -1
NEVER = float("inf")
OF_DELIVERIES = frozenset({Verb.ACK, Verb.GIVE_BACK, Verb.REJECT})
TAKES = frozenset({Verb.GET, Verb.CONSUMER})
FREE = OF_DELIVERIES | TAKES | {Verb.END}
"""What waits for room may wait for these, or for ever."""
ALONE = frozenset({Verb.COMMIT, Verb.REQUEST})
STANDING = (Verb.TEMPORARY_QUEUE, Verb.PRODUCER, Verb.CONSUMER)
"""What a session has, in the order in which it is made again."""
MADE_AGAIN = (*STANDING, Verb.DECLARE, Verb.TRANSACTIONS)
"""Calls of ours when the session is made again; a declaration only looks whether it is there."""


@dataclass(slots=True, eq=False)
class Many:
    """What the pieces of a `publish_many` have in common."""

    failed: Outcome | None = None
    """One was not done: this is how all end that are called behind it."""
    has_begun: bool = False


@dataclass(slots=True, eq=False)
class Call:
    id: int
    verb: Verb
    target: int = 0
    value: int = 0
    """The first number of a producer or of a delivery, a prefetch, a transaction."""
    count: int = 1
    body: Body = b""
    demand: Demand = Demand.EFFECTIVE
    wait_ms: int = NO_LIMIT
    """For so long the broker may wait for room, for a message, for a reply."""
    waits_until: float = NEVER
    """It waits there until then, whichever broker it is said to: of a publish from when it was
    called, of others from when it was said first.  Not of a request: one broker carries it out,
    and with less time for that nobody would wait for its reply."""
    many: Many | None = None
    """Of a piece of a `publish_many`."""
    is_behind: bool = False
    """It is not the first piece."""
    until: float = NEVER
    number: int = UNSENT
    """Of its command in this session."""
    repeated: bool = False
    is_internal: bool = False
    """Nobody waits for it: the machine makes again what the session had."""
    is_abandoned: bool = False
    """Its outcome was told; what it takes is given back."""
    is_cancelled: bool = False
    """Nobody knows what became of it, and nobody has a token of it."""
    generation: int = 0
    """Of the deliveries that it settles."""
    node: bytes = b""
    """That it was said to first."""
    settles: tuple[int, ...] = ()
    """Of a transaction: deliveries that are acknowledged with it."""
    place: Place | None = None
    """Of a subscription: its body is said anew by it."""

    def again(self, id: int, wait_ms: int | None) -> Call:
        """The same one, of which nobody knows what became of it; None: it waits as long."""
        same = Call(id, self.verb, self.target, self.value, self.count, self.body, self.demand)
        same.wait_ms = self.wait_ms if wait_ms is None else wait_ms
        same.repeated, same.node = True, self.node
        return same

    @property
    def was_sent(self) -> bool:
        return self.number != UNSENT

    @property
    def has_number(self) -> bool:
        """Of its producer: its place does not depend on what goes first."""
        return self.verb is Verb.PUBLISH and self.value > 0

    def begins_to_wait(self, now: float) -> None:
        """Unless it has begun before."""
        if self.wait_ms > 0 and self.waits_until == NEVER and self.verb is not Verb.REQUEST:
            self.waits_until = now + self.wait_ms / 1000

    def waits_again(self, now: float, wait_ms: int | None) -> None:
        """It was said, and is asked for again, with this time; None: as long as the first time."""
        self.wait_ms = self.wait_ms if wait_ms is None else wait_ms
        self.waits_until = NEVER
        self.begins_to_wait(now)

    def wait_left(self, now: float) -> int:
        """In ms, up to a whole one."""
        if self.waits_until == NEVER:
            return self.wait_ms
        return max(0, -(-int((self.waits_until - now) * 1e6) // 1000))

    def command(self, seen: int, now: float) -> Command:
        """As it is said now."""
        return Command(
            number=self.number,
            verb=Verb.PUBLISH_BEHIND if self.is_behind else self.verb,
            target=self.generation if self.verb in OF_DELIVERIES else self.target,
            value=self.value,
            count=self.count,
            demand=self.demand,
            wait_ms=self.wait_left(now),
            repeated=self.repeated,
            seen=seen,
            more=False,
            body=self.body,
        )

    @property
    def numbers(self) -> range:
        return range(self.value, self.value + self.count)

    @property
    def size(self) -> int:
        """Of the window; what settles, takes or ends may always be said.  A consumer that is made
        again is behind the queue that it takes from."""
        is_free = self.verb in FREE and not (self.verb in TAKES and self.is_internal)
        return 0 if is_free else len(self.body) + 64

    @property
    def share(self) -> int | Call:
        """Whose window it is in: what waits for room in one queue holds up nothing of another one,
        and a commit, or a request, nothing at all."""
        return self if self.verb in ALONE else self.target
