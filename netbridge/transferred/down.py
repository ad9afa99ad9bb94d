"""Agents whose link is not up, and what waits for them: for `shmbroker doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.doctor.finding import Finding
from shmbroker.netbridge.broker.table import Seen, read
from shmbroker.netbridge.broker.waiting import waiting

UP: Final = "up"
REMEDIES: Final = {
    "stopped": "shmbroker link start '{name}' --vhost {vhost}",
    "failed": "make both exchanges the same, or remove what refuses it; it is tried again",
    "refused": "correct [[mta]] here, or [credentials] and [acceptors] at the other broker",
}
OTHERWISE: Final = (
    "see whether the other broker runs and is reached: shmbroker mta list --vhost {vhost}"
)


def findings(broker: Broker) -> Iterator[Finding]:
    table = read(broker.vhost)
    for each in table.rows if table is not None else ():
        state = str(each.text.get("state"))
        if each.text.get("mode") and state != UP:
            name, remedy = each.text["name"], REMEDIES.get(state, OTHERWISE)
            yield Finding(
                "warning",
                f"agent {name!r} of vhost {broker.vhost!r}",
                f"its link is {state}{_why(each)}; {_waiting(broker, str(each.text.get('queue')))}",
                remedy.format(name=name, vhost=broker.vhost),
            )


def _why(seen: Seen) -> str:
    reason = seen.text.get("reason")
    return f" ({reason})" if reason else ""


def _waiting(broker: Broker, name: str) -> str:
    """How much, and for how long."""
    if not name:
        return "what is published there meanwhile does not come"
    count, age = waiting(broker, name)
    if not count:  # or nothing was published yet
        return "nothing waits for it"
    what = "message waits" if count == 1 else "messages wait"
    return f"{count:,} {what} for it, the first for {age or 0.0:.0f} s"
