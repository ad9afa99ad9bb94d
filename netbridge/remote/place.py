"""Where a subscription stands in its queue: in the next session it goes on there."""

from __future__ import annotations

from shmbroker.netbridge.remote.body import asked, named, told
from shmbroker.netbridge.wire.frame import Body


class Place:
    def __init__(self, queue: str, start: str) -> None:
        self._queue, self._start = queue, start
        self._identity: int | None = None
        """Of the queue: one that is made in its place has another, and positions of its own."""
        self.position = 0
        """Of the first message that the program has not asked for."""
        self.missed = 0
        """Messages that had left the queue before the next session."""

    def asks(self) -> bytes:
        stands = None if self._identity is None else [self._identity, self.position]
        return asked(queue=self._queue, looks=True, start=self._start, stands=stands)

    def opened(self, body: Body) -> None:
        """The broker says where it begins."""
        fields = told(body)
        is_known = fields.get("identity") is not None  # its queue may be deleted by now
        identity = named(fields, "identity", int) if is_known else None
        position = named({"position": 0} | fields, "position", int)
        if identity is not None and identity == self._identity:
            self.missed += max(0, position - self.position)
        self._identity, self.position = identity, position
