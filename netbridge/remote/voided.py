"""Numbers of a producer that will not come: of what was refused, and of what is not said again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmbroker.netbridge.remote.call import Call
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.remote.client import Client


class Voided:
    def __init__(self, client: Client) -> None:
        self._client = client

    def refused(self, call: Call, published: int) -> None:
        self._decide(call, call.value + published)

    def dropped(self, call: Call) -> None:
        """Nobody waits for it, and it is not said.  A former session may have said it; but nobody
        will ask what became of it, and nobody answers."""
        if call.is_cancelled:
            self._client.doubt.forgets([call])
            self._decide(call, call.value)

    def _decide(self, call: Call, first: int) -> None:
        """The broker need not keep them."""
        client = self._client
        if call.verb is Verb.PUBLISH and call.value and call.target in client.producers:
            count = call.value + call.count - first
            void = Call(client.next_id(), Verb.DECIDED, call.target, first, count)
            void.is_internal = True
            client.calls.put(void)
