"""Bridges, links and agents that are not up, and messages that have waited long for one.

Read from shared memory, so it is seen also if the broker hangs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from shmbroker.ipc.doctor.finding import Finding
from shmbroker.netbridge.broker import table
from shmbroker.netbridge.broker.waiting import waiting

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

UP: Final = "up"
LONG_SECONDS: Final = 60.0
"""A message that waits for a link that is up is told of after so long."""
START: Final = "shmbroker link start '{name}' --vhost {vhost}"
LINK: Final = {
    "stopped": f"start it: {START}",
    "refused": f"see its reason, and what the other broker's log says; then {START}",
    "unreachable": f"see whether the other broker runs and is reached; then {START}",
}
AGENT: Final = {
    "stopped": f"start it: {START}",
    "failed": "make both exchanges the same, or remove what refuses it; it is tried again",
    "refused": "correct [[mta]] here, or [credentials] and [acceptors] at the other broker",
}
OTHERWISE: Final = "see whether the other broker runs and is reached, and what the logs of both say"


def findings(broker: Broker) -> Iterator[Finding]:
    found = table.read(broker.vhost)
    for row in found.rows if found is not None else ():
        name, state = str(row.text.get("name", "")), str(row.text.get("state", ""))
        queue, is_agent = str(row.text.get("queue", "")), bool(row.text.get("mode"))
        count, age = waiting(broker, queue)
        subject = f"{'agent' if is_agent else 'link'} {name!r} of vhost {broker.vhost!r}"
        if state != UP:
            reason = f": {row.text['reason']}" if row.text.get("reason") else ""
            lacks = "; what is published there does not come" if is_agent and not queue else ""
            remedy = (AGENT if is_agent else LINK).get(state, OTHERWISE)
            yield Finding(
                "warning" if count or is_agent else "note", subject,
                f"it is {state}{reason}{behind(count, age)}{lacks}",
                remedy.format(name=name, vhost=broker.vhost),
            )  # fmt: skip
        elif count and age is not None and age > LONG_SECONDS:
            yield Finding(
                "warning", subject, f"it is up, and slow{behind(count, age)}",
                "see whether the target is full or paused: shmbroker queue stat there, and "
                "credit_stalls of shmbroker link list --json",
            )  # fmt: skip


def behind(count: int | None, age: float | None) -> str:
    """What waits, in words to go on a sentence."""
    if not count:
        return ""
    messages = "1 message waits" if count == 1 else f"{count:,} messages wait"
    since = "" if age is None else f", {'it' if count == 1 else 'the first'} for {age:,.0f} s"
    return f"; {messages}{since}"
