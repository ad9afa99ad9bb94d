"""The links and agents of a broker, as commands and the console show them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import Any, Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.connection.broker import SCHEME, Broker, connect
from shmbroker.netbridge.broker.table import Seen, read
from shmbroker.netbridge.broker.waiting import waiting

LINKS: Final = "links"
"""The noun of orders over links."""
Row = dict[str, Any]
PERCENTILES: Final = (50, 99, 99.9)


def rows(vhost: str) -> tuple[Seen, ...]:
    table = read(vhost)
    return table.rows if table is not None else ()


def fields_of(found: Iterable[Seen], vhost: str) -> list[Row]:
    with ExitStack() as opened:
        broker = None
        with suppress(Error):  # a vhost that is damaged
            broker = opened.enter_context(connect(f"{SCHEME}{vhost}", observe=True))
        return [fields(each, broker) for each in found]


def fields(seen: Seen, broker: Broker | None) -> Row:
    text, histogram = dict(seen.text), seen.histogram
    began = text.pop("since", None)
    lag, oldest = waiting(broker, str(text.get("queue", "")))
    return {
        **text,
        "since": datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds")
        if began
        else None,
        "seconds": round(time.time() - began, 3) if began else None,
        "lag": lag,
        "oldest_seconds": oldest,
        **seen.counters,
        "append_confirm_ns": {
            **{f"p{percent:g}": histogram.percentile(percent) for percent in PERCENTILES},
            "max": histogram.maximum,
            "messages": histogram.total,
        },
    }
