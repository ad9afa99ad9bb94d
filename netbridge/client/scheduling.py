"""Messages that are not to be delivered yet, over a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.schedule.scheduled import When, due_ns
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.wire.words import Demand, Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.client.pending import Pending
    from shmbroker.netbridge.client.session import Session

NS: Final = 1e9


def is_delayed(options: dict[str, Any]) -> bool:
    return options.get("deliver_after") is not None or options.get("deliver_at") is not None


def schedule(
    session: Session,
    noun: str,
    name: str,
    deliver_after: Seconds | None,
    deliver_at: When | None,
    *,
    demand: Demand,
    waits: Seconds | None,
    **message: Any,
) -> Pending:
    """`noun`: queue or exchange.  It has a number, so it is there once whatever is lost."""
    after, at = due_ns(deliver_after, deliver_at)
    body = asked(
        **{noun: name}, **message,
        after=None if after is None else after / NS, at=None if at is None else at / NS,
    )  # fmt: skip
    number = next(session.transactions)
    return session.begin(
        f"publishing to {noun} {name!r}", Verb.SCHEDULE, value=number, body=body, demand=demand,
        waits=waits,
    )  # fmt: skip
