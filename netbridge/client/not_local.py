"""What cannot be over a link: NotLocal says why, and what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

from shmbroker.ipc.aio.verb import described
from shmbroker.ipc.base.errors import NotLocal

REASONS: Final[dict[str, str]] = {
    "Queue.loan": "a loan is memory of the broker's host: use publish",
    "Queue.port": "compiled code uses shared memory: connect to shm:// on the broker's host",
    "Queue.producer": "a session numbers its messages: publish, and Broker.retry with the token",
    "Queue.move_to(timeout=...)": "the broker that moves does not wait for room: leave it 0",
    "Queue.histograms": "counts lie in shared memory: look at statistics().latency, or the spool",
    "Queue.latency": "it is switched on at the broker's host: `shmbroker latency`",
    "Broker.repair": "participants are repaired by the broker on their own host",
    "Broker.repair_for": "participants are repaired by the broker on their own host",
    "Broker.participant": "a session is no participant of the vhost: its broker is",
    "Broker.returned": "returns do not go over a link: connect to shm:// on the broker's host",
    "Exchange.publish(immediate=True)": "returns do not go over a link: use request, which waits",
    "Transaction.confirm": "commit waits for its level, and Broker.retry asks again",
    "Transaction.publish(deliver_after=...)": "publish it beside the transaction",
    "Transaction.publish(mandatory=True)": "the broker routes it at commit: publish it beside",
    "Broker.subscribe(lossy=True)": "what is sent over a link has credit, so nothing is missed",
}
"""By class and verb, or argument."""
OF_ASYNCIO: Final[dict[str, str]] = {
    "Queue.published": "await queue.statistics()",
    "Queue.confirmed": "await queue.statistics()",
    "Queue.level": "await queue.confirm()",
    "Queue.is_paused": "await queue.statistics()",
    "Queue.__len__": "await queue.statistics()",
    "Queue.get_nowait": "await queue.get(timeout=0)",
    "Queue.publish_nowait": "await queue.publish(body, timeout=0)",
}
"""What asks the broker and cannot be awaited, and what can."""


def refused(what: str) -> NoReturn:
    raise NotLocal(f"{what} cannot be over a link: {REASONS[what]}")


def not_local(what: str, local: Callable[..., Any]) -> Any:
    """A verb that is refused, with the arguments and the documentation that it has locally."""

    def verb(self: Any, /, *args: Any, **named: Any) -> NoReturn:
        refused(what)

    return described(verb, local)
