"""What a session has, as the next one is asked for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shmbroker.netbridge.remote.action import Say
from shmbroker.netbridge.remote.body import asked, told
from shmbroker.netbridge.remote.call import STANDING, Call
from shmbroker.netbridge.remote.prefetched import Prefetched
from shmbroker.netbridge.remote.producing import Producing
from shmbroker.netbridge.wire.frame import Result
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.remote.client import Client


def opened(client: Client, call: Call, answer: Result) -> None:
    """It is there now; InvalidArgument says what is odd about the answer, and it is not."""
    fields = told(answer.body)
    if call.place is not None:
        call.place.opened(answer.body)
    client.standing[call.target] = call
    if call.verb is Verb.PRODUCER:
        producing = client.producers.setdefault(call.target, Producing())
        producing.next = max(producing.next, answer.value + 1)
        producing.is_open = True
    elif call.verb is Verb.CONSUMER:
        flow = Prefetched(call.target, call.value, client.options.prefetch_bytes)
        flow = client.consumers.setdefault(call.target, flow)
        client.did.append(Say(flow.telling()))
    elif name := fields.get("name"):  # it keeps that at nodes that make other names
        call.body = asked(**{**told(call.body), "name": name})


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
