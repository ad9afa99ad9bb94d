"""What the vhost of a live has, for the others of its cluster: looked at as long as it is live."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import msgpack

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, NotFound
from shmbroker.ipc.base.names import OWN
from shmbroker.ipc.connection.outline import Outline, Outlook, QueueOutline
from shmbroker.ipc.queue_replica.copy import followed_by
from shmbroker.ipc.settings.settings import Pattern
from shmbroker.netbridge.broker.own import OF_ONE_PLACE
from shmbroker.netbridge.cluster.address import Addresses
from shmbroker.netbridge.cluster.advert import SELECTORS_MAX, Advert, Binding, Queue
from shmbroker.netbridge.cluster.redistribution import Here

LOOK_SECONDS: Final = 0.2
"""Between two looks: nothing tells yet that a queue was declared, or that a consumer came."""


@dataclass(frozen=True, slots=True)
class Looked:
    adverts: list[Advert]
    """All that others are to know."""
    here: list[Here]
    """What may become of messages here."""
    exchanges: dict[str, str]
    """Their kinds, by name."""


class Looking(Closable):
    """Of one thread at a time."""

    def __init__(self, vhost: str, undeliverable: str, addresses: Addresses) -> None:
        """`undeliverable`: a queue that each node has for itself; `addresses`: all else is for
        this broker alone."""
        self._outlook = Outlook(vhost)
        self._undeliverable, self._addresses = undeliverable, addresses
        self._known: dict[tuple[str, int], Here] = {}
        """By name and reference: settings stay, as long as the patterns do."""
        self._follow: set[str] = set()
        """Replicas: they may be detached, and then they are queues like any other."""
        self._patterns: tuple[Pattern, ...] = ()

    def look(self) -> Looked | None:
        """None: nothing has changed, or the vhost is not there yet."""
        try:
            found = self._outlook.look()
            return None if found is None else self._looked(found)
        except (Error, OSError):
            self.close()  # it is being made, or removed: the next look tells
            return None

    def _looked(self, outline: Outline) -> Looked:
        here = self._here(outline)
        one_place = frozenset(each.name for each in here if not each.may_be_balanced)
        kinds = {
            each.name: each.kind
            for each in outline.exchanges
            if is_shared(each.name, self._addresses)
        }
        return Looked(adverts(outline, self._addresses, one_place), here, kinds)

    def _here(self, outline: Outline) -> list[Here]:
        own = [each for each in outline.queues if is_shared(each.name, self._addresses)]
        former, self._known = self._known, {}
        followed, self._follow = self._follow, set()
        if outline.patterns != self._patterns:
            former, self._patterns = {}, outline.patterns
        for each in own:
            which = each.name, each.reference
            with suppress(NotFound):  # it was deleted: the next look tells
                known = None if each.name in followed else former.get(which)
                self._known[which] = known or self._looked_at(each)
        return [
            replace(known, is_consumed=each.is_consumed, selectors=each.selectors)
            for each in own
            if (known := self._known.get((each.name, each.reference))) is not None
        ]

    def _looked_at(self, queue: QueueOutline) -> Here:
        opened = self._outlook.queue(queue.name)
        settings = opened.explain()
        if follows := bool(followed_by(opened)):
            self._follow.add(queue.name)
        is_kept = queue.is_temporary or queue.name == self._undeliverable
        is_of_one_place = (
            is_kept
            or any(settings[each].value for each in OF_ONE_PLACE)
            or settings["when_full"].value == "page"
            or follows
        )
        is_kept |= any(settings[each].value for each in ("last_value", "non_destructive"))
        delay = None if is_kept else settings["redistribution_delay"].value
        matches = settings["redistribution_filters"].value == "match"
        return Here(
            queue.name, queue.is_consumed, delay, queue.reference, not is_of_one_place,
            matches=matches, has_groups=bool(settings["groups"].value),
        )  # fmt: skip

    def close(self) -> None:
        self._outlook.close()


def is_shared(name: str, addresses: Addresses) -> bool:
    """A queue or an exchange that concerns others, by its name."""
    return not name.startswith(OWN) and addresses.has(name)


def adverts(
    outline: Outline, addresses: Addresses, of_one_place: frozenset[str] = frozenset()
) -> list[Advert]:
    """`of_one_place`: names of queues that are not balanced."""
    kinds = {each.name: each.kind for each in outline.exchanges}
    queues = [
        Queue(
            each.name, each.is_durable, each.is_consumed, each.name not in of_one_place,
            each.selectors if len(each.selectors) <= SELECTORS_MAX else (),
        )
        for each in outline.queues
    ]  # fmt: skip
    bindings = [
        Binding(
            each.exchange, kinds[each.exchange], each.destination, each.to == "exchange", each.key,
            msgpack.packb(each.arguments), each.match == "any", each.exclusive,
        )
        for each in outline.bindings
        if each.exchange in kinds
    ]  # fmt: skip
    return [
        *(each for each in queues if is_shared(each.name, addresses)),
        *(
            each
            for each in bindings
            if is_shared(each.exchange, addresses) and not each.destination.startswith(OWN)
        ),
    ]
