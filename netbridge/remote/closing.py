"""A session that its program closes: behind all that was called before, as far as it is answered.

Takes end at once.  What else waits at the broker, for room or for a reply, may wait for ever: it
ends as unknown when nothing was answered for a while.  The broker carries out nothing more of it
once it hears of the end, and has what was sent ahead for others.  If its broker is away for a
while, a session of which nothing is open there ends without that, also if the end was said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.remote.action import Event
from shmbroker.netbridge.remote.call import NEVER, OF_DELIVERIES, Call
from shmbroker.netbridge.remote.outcome import Why
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.remote.client import Client

SILENT_SECONDS: Final = 2.0
"""Longer than a disk takes for a confirm, but for a bad one."""
LETS_GO: Final = OF_DELIVERIES | {Verb.LEAVE}


class Closing:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._has_begun = self._is_late = False
        self.due = NEVER

    def begin(self, now: float) -> None:
        client = self._client
        if not self._has_begun:
            self._has_begun, self.due = True, now + SILENT_SECONDS
        for call in client.calls.of(Verb.GET):
            client.voided.abandon(call, Why.CLOSED)

    def refuses(self, call: Call) -> bool:
        """It is called too late."""
        return self._has_begun and not call.is_internal and call.verb not in LETS_GO

    @property
    def may_end(self) -> bool:
        """What is settled still was said before, and the broker does that before."""
        return self._is_late or not self._client.calls.is_awaited

    def hears(self, now: float, answered: Call | None = None) -> None:
        """An answer, or from its next broker.  A loop that goes on settles as long as messages
        come."""
        is_of_loop = answered is not None and answered.verb in OF_DELIVERIES
        if self.due != NEVER and not is_of_loop:
            self.due = now + SILENT_SECONDS

    def loses(self, now: float) -> None:
        """Its broker, which may have been asked for the end."""
        if self._has_begun and self.due == NEVER:
            self.due = now + SILENT_SECONDS

    def look(self, now: float) -> None:
        client = self._client
        if now < self.due:
            return
        if client.phase is not Phase.UP:  # it is answered, or asked for, when that is over
            self.due = now + SILENT_SECONDS
            if not (client.calls.are_open or client.in_hand or client.consumers):
                client.gives_up(Event.CLOSED)
                client.phase, self.due = Phase.CLOSED, NEVER
            return
        self.due = NEVER
        for call in (*client.calls.sent.values(), *client.calls.waiting):
            if self.refuses(call) and not call.is_abandoned:
                client.voided.abandon(call, Why.CLOSED)
        self._is_late = True
        client.pump()
