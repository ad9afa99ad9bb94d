"""The metrics of the links of a vhost's broker, from their table in shared memory."""

from __future__ import annotations

from typing import Final

from shmbroker.cli.metrics.histogram import Buckets
from shmbroker.cli.metrics.sheet import Sheet
from shmbroker.netbridge.broker.table import Seen, SeenTable

AGENT: Final = "agent"
COUNTERS: Final = {
    "attempts": "link_attempts_total",
    "losses": "link_losses_total",
    "messages": "link_messages_total",
    "bytes": "link_sent_bytes_total",
    "confirmed": "link_confirmed_total",
    "set_aside": "link_set_aside_total",
    "credit_stalls": "link_credit_stalls_total",
}
OF_AGENTS: Final = {
    "returned": "agent_returned_total",
    "unclaimed": "agent_unclaimed_total",
    "dropped": "agent_dropped_total",
}


def kind_of(seen: Seen) -> str:
    if seen.text.get("mode"):
        return AGENT
    return "bridge" if seen.text.get("queue") else "network"


def collect(sheet: Sheet, vhost: str, table: SeenTable) -> None:
    """As the live has written them last: if it is dead, that is what they were at its end."""
    for each in table.rows:
        kind = kind_of(each)
        labels = (vhost, str(each.text.get("name", "")), kind)
        sheet.put("link_up", each.text.get("state") == "up", *labels)
        for counter, metric in {**COUNTERS, **(OF_AGENTS if kind == AGENT else {})}.items():
            sheet.put(metric, each.counters[counter], *labels)
        waiting = each.counters["messages"] - each.counters["confirmed"]
        sheet.put("link_waiting", max(0, waiting), *labels)
        buckets = Buckets()
        buckets.add(each.counts)
        sheet.put_buckets("link_confirm_seconds", buckets.shown(), buckets.seconds, *labels)
