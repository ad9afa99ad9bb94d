"""A session that was asked to go to another broker of its cluster: when it may, and how.

    STAYS --asked--> WAITS --nothing is open--> HOLDS --all is answered--> LEAVES
    LEAVES --its session here is over--> ARRIVES --all that it uses is there--> STAYS
    WAITS, HOLDS --its time is over, or the link is lost--> STAYS

While it waits, calls go on, and its consumers ask for nothing more.  It goes only when nothing is
in hand, in a transaction or in doubt, and nothing is unanswered but what would take messages: so
nothing is sent twice, and nothing comes again.  What is called meanwhile is said there.  If the
other broker has not all queues and exchanges that it uses, it comes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.remote.action import Drop, Event, Go, Tell
from shmbroker.netbridge.remote.body import told
from shmbroker.netbridge.remote.call import MADE_AGAIN, NEVER, Call
from shmbroker.netbridge.remote.options import Mode
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.remote.client import Client

WAITING_SECONDS: Final = 10.0
"""Then the request is forgotten: its consumers would starve."""
HOLDING_SECONDS: Final = 1.0
"""So long at most the program waits for a broker that does not answer; the same."""
BOUND: Final = ("looks", "subscription")
"""A consumer with one of these has its place at one broker."""


class Stage(Enum):
    STAYS = "stays"
    WAITS = "waits"
    HOLDS = "holds"
    LEAVES = "leaves"
    ARRIVES = "arrives"


class Moving:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.stage = Stage.STAYS
        self._uri = self._former = ""
        self._uses: tuple[bytes, ...] = ()
        self._until = self._holds_until = NEVER
        self.end: Call | None = None
        """Of the session at the broker that it leaves."""

    def asked(self, uri: str, former: str, uses: tuple[bytes, ...], now: float) -> None:
        """`uses`: what opens each queue and exchange that the program uses."""
        client = self._client
        may = self.stage is Stage.STAYS and client.phase is Phase.UP
        if may and client.options.reconnect_deadline and not _is_bound(client.standing.values()):
            self.stage, self._until = Stage.WAITS, now + WAITING_SECONDS
            self._uri, self._former, self._uses = uri, former, uses
            self.look(now)

    @property
    def due(self) -> float:
        if self.stage not in (Stage.WAITS, Stage.HOLDS):
            return NEVER
        return min(self._until, self._holds_until)

    def look(self, now: float) -> None:
        """Whether it may go now."""
        if self.stage not in (Stage.WAITS, Stage.HOLDS):
            return
        client = self._client
        if client.phase is not Phase.UP or now >= self.due:
            self._forget()
            return
        sent = {call.verb for call in client.calls.sent.values()} - {Verb.GET}
        if self._is_open or Verb.REQUEST in sent:
            self._becomes(Stage.WAITS)
        elif sent:
            if self.stage is Stage.WAITS:
                self._becomes(Stage.HOLDS, until=now + HOLDING_SECONDS)
        else:
            self._becomes(Stage.LEAVES)
            self.end = Call(client.next_id(), Verb.END, is_internal=True)
            client.calls.put_first(self.end)
            client.pump()

    @property
    def _is_open(self) -> bool:
        client = self._client
        closes = any(call.verb is Verb.END for call in client.calls.waiting)
        works = client.travelling.works
        return bool(client.in_hand or works or client.doubt.is_open or closes)

    def _becomes(self, stage: Stage, until: float = NEVER) -> None:
        former, self.stage, self._holds_until = self.stage, stage, until
        if former is Stage.HOLDS and stage is Stage.WAITS:
            self._client.pump()

    def _forget(self) -> None:
        self._becomes(Stage.STAYS)
        if self._client.phase is Phase.UP:
            self._client.tells_credit()
            self._client.pump()

    # --- what the session may do meanwhile ----------------------------------------------------

    def holds(self, call: Call) -> bool:
        """It is not said to this broker."""
        return self.stage is Stage.HOLDS or (self.is_leaving and call is not self.end)

    @property
    def is_leaving(self) -> bool:
        """What still comes has been given back here, or will be."""
        return self.stage is Stage.LEAVES

    @property
    def gives_credit(self) -> bool:
        return self.stage in (Stage.STAYS, Stage.ARRIVES)

    def lost(self) -> None:
        """The link; who was leaving goes on with it, because the broker may know that."""
        if self.stage in (Stage.WAITS, Stage.HOLDS):
            self._becomes(Stage.STAYS)

    def remade(self) -> None:
        """What was to end had ended, in another way."""
        if self.is_leaving:
            self._becomes(Stage.STAYS)

    def ends(self) -> None:
        """Everything was given up."""
        self._becomes(Stage.STAYS)

    # --- there and back -----------------------------------------------------------------------

    def has_left(self, call: Call, now: float) -> bool:
        """The session is over here: whether it was to go on elsewhere."""
        client = self._client
        if not self.is_leaving or call is not self.end:
            return False
        if client.options.failover_mode is Mode.APPLICATION:
            client.gives_up(Event.MOVED, self._uri)
        else:
            self._becomes(Stage.ARRIVES)
            client.did += [Go(self._uri), Tell(Event.MOVING, self._uri)]
            self._goes(now)
        return True

    def _goes(self, now: float) -> None:
        """What was called and not said, or would take messages, is said at the next broker."""
        client = self._client
        client.next_generation()
        for work in client.travelling.works.values():
            work.generation = client.generation
        for call in client.calls.withdraw():
            if not (call.is_abandoned or (call.is_internal and call.verb in MADE_AGAIN)):
                client.calls.put(call)
        for consumer in client.consumers.values():
            consumer.again()
            client.did.append(Drop(consumer.target))
        client.recovers(now)

    def looks_first(self) -> bool:
        """At whether all that it uses is here, before anything is made again."""
        if self.stage is not Stage.ARRIVES:
            return False
        for body in self._uses:
            call = Call(self._client.next_id(), Verb.DECLARE, body=body, is_internal=True)
            self._client.calls.put_first(call)
        self._client.pump()
        if not self._uses:
            self._becomes(Stage.STAYS)
        return bool(self._uses)

    def has_found(self) -> bool:
        """The last of these."""
        client = self._client
        calls = (*client.calls.sent.values(), *client.calls.waiting)
        if any(call.is_internal and call.verb is Verb.DECLARE for call in calls):
            return False
        self._becomes(Stage.STAYS)
        return True

    def turns_back(self, now: float) -> None:
        self._becomes(Stage.STAYS)
        self._client.did.append(Go(self._former))
        self._goes(now)


def _is_bound(standing: Iterable[Call]) -> bool:
    """It has something that is at this broker only."""
    return any(
        call.verb is Verb.TEMPORARY_QUEUE
        or (call.verb is Verb.CONSUMER and not told(call.body).keys().isdisjoint(BOUND))
        for call in standing
    )
