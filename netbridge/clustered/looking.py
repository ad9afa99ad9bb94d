"""What the vhost of a live has, for the others of its cluster: looked at as long as it is live."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgpack

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, NotFound
from shmbroker.ipc.connection.outline import Outline, Outlines
from shmbroker.netbridge.cluster.advert import Advert, Binding, Queue
from shmbroker.netbridge.cluster.redistribution import Here

LOOK_SECONDS: Final = 0.2
"""Between two looks: nothing tells yet that a queue was declared, or that a consumer came."""
OWN: Final = "$"
"""Names of the broker's own queues and exchanges begin so."""


@dataclass(frozen=True, slots=True)
class Looked:
    adverts: list[Advert]
    """All that others are to know."""
    here: list[Here]
    """What may become of messages here."""


class Looking(Closable):
    """Of one thread at a time."""

    def __init__(self, vhost: str) -> None:
        self._vhost = vhost
        self._outlines: Outlines | None = None
        self._delays: dict[tuple[str, int], float | None] = {}

    def look(self) -> Looked | None:
        """None: nothing has changed, or the vhost is not there yet."""
        try:
            if self._outlines is not None and not self._outlines.is_current:
                self.close()
            if self._outlines is None:
                self._outlines = Outlines(self._vhost)
            found = self._outlines.look()
            return None if found is None else Looked(adverts(found), self._here(found))
        except (Error, OSError):
            self.close()  # it is being made, or removed: the next look tells
            return None

    def _here(self, outline: Outline) -> list[Here]:
        own = [each for each in outline.queues if not each.name.startswith(OWN)]
        former, self._delays = self._delays, {}
        for each in own:
            known = each.name, each.reference
            with suppress(NotFound):
                self._delays[known] = former[known] if known in former else self._delay(each.name)
        return [
            Here(each.name, each.is_consumed, self._delays.get((each.name, each.reference)))
            for each in own
        ]

    def _delay(self, queue: str) -> float | None:
        assert self._outlines is not None
        found: float | None = self._outlines.setting(queue, "redistribution_delay")
        return found

    def close(self) -> None:
        outlines, self._outlines = self._outlines, None
        if outlines is not None:
            outlines.close()


def adverts(outline: Outline) -> list[Advert]:
    kinds = {each.name: each.kind for each in outline.exchanges}
    queues = [Queue(each.name, each.is_durable, each.is_consumed) for each in outline.queues]
    bindings = [
        Binding(
            each.exchange, kinds[each.exchange], each.destination, each.to == "exchange", each.key,
            msgpack.packb(each.arguments), each.match == "any", each.exclusive,
        )
        for each in outline.bindings
        if each.exchange in kinds
    ]  # fmt: skip
    return [
        *(each for each in queues if not each.name.startswith(OWN)),
        *(each for each in bindings if not _is_own(each)),
    ]


def _is_own(binding: Binding) -> bool:
    return binding.exchange.startswith(OWN) or binding.destination.startswith(OWN)
