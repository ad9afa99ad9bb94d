"""What a link has shipped or fetched, counted in its row of the table of links.

The time of a batch is that of its oldest message: from when it was published here until its far
end has confirmed it.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from functools import cache

from shmbroker.core.layout import CHUNK_PUBLISHED_AT, RECORD_HEAD_BYTES
from shmbroker.netbridge.broker.table import RANGE, Row
from shmbroker.netbridge.link.outflow import Batch, Outflow

PUBLISHED_AT = RECORD_HEAD_BYTES + CHUNK_PUBLISHED_AT


@cache
def _lowest() -> list[int]:
    return [RANGE.lowest_of(index) for index in range(RANGE.length)]


def bucket_of(nanoseconds: int) -> int | None:
    """None: longer than the highest, or below 0 (the clock was set)."""
    if not 0 <= nanoseconds <= RANGE.highest:
        return None
    return max(0, bisect_right(_lowest(), nanoseconds) - 1)


class BridgeMeter:
    def __init__(self, row: Row) -> None:
        self.row = row
        self._sent: deque[tuple[int, int, int]] = deque()
        """What is not confirmed: where it ends, when its first message was published, messages."""

    def read(self, flow: Outflow, batch: Batch) -> None:
        while self._sent and self._sent[-1][0] > batch.first:  # a former connection had it
            self._sent.pop()
        published = int.from_bytes(batch.records[PUBLISHED_AT : PUBLISHED_AT + 8], "little")
        self._sent.append((batch.end, published, batch.messages))
        self.row.add("messages", batch.messages)
        self.row.add("bytes", len(batch.records))
        if not flow.allowance.is_open:
            self.row.add("credit_stalls")
        self._credit(flow)

    def released(self, flow: Outflow) -> None:
        now = time.time_ns()
        while self._sent and self._sent[0][0] <= flow.confirmed:
            _, published, messages = self._sent.popleft()
            self.row.count(bucket_of(now - published), messages)
            self.row.add("confirmed", messages)  # last: whoever sees it finds their times
        self._credit(flow)

    def _credit(self, flow: Outflow) -> None:
        self.row.set("credit_messages", flow.allowance.left_messages)
        self.row.set("credit_bytes", flow.allowance.left_bytes)

    def set_aside(self) -> None:
        self.row.add("set_aside")

    def returned(self, *, is_claimed: bool) -> None:
        self.row.add("returned")
        self.row.add("unclaimed", not is_claimed)

    def bound(self, bindings: int) -> None:
        self.row.set("bindings", bindings)

    def poured(self, messages: int, size: int) -> None:
        self.row.add("messages", messages)
        self.row.add("confirmed", messages)  # nothing of it waits here
        self.row.add("fetched", messages)
        self.row.add("bytes", size)
