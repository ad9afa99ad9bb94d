"""What a session has, as the next one is asked for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shmbroker.netbridge.remote.call import STANDING, Call
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.remote.client import Client


def made_again(client: Client, waiting: list[Call]) -> Iterator[Call]:
    """Before what waits to be said."""
    for call in sorted(client.standing.values(), key=lambda call: STANDING.index(call.verb)):
        body = call.body if call.place is None else call.place.asks()
        made = Call(client.next_id(), call.verb, call.target, call.value, body=body)
        made.place = call.place
        if call.verb is Verb.PRODUCER:
            made.value = client.producers[call.target].floor(
                [each for each in waiting if each.target == call.target]
            )
        made.is_internal = made.repeated = True
        yield made
