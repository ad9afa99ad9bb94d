"""Publishing from the command line: it counts what is published, and says what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from shmbroker.cli.connection import exchange_named, is_over_link, queue_named
from shmbroker.cli.output import say
from shmbroker.cli.units import DURATION
from shmbroker.ipc.base.errors import Error, GroupingTimeout, QueueFull, Unconfirmed
from shmbroker.ipc.base.timeout import nanoseconds
from shmbroker.ipc.vhost import vhost as vhosts

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.message.confirm import Confirm

QUIET_SECONDS = 1.0

confirm_option = click.option(
    "--confirm", type=click.Choice(["shm", "disk", "replicated", "disk+replicated"]),
    help="Durable queue: wait until the message is in shared memory, on disk, or with all replicas "
    "that are in sync.  [default: what the queue is set to wait for; through an exchange shm]",
)  # fmt: skip
timeout_option = click.option(
    "--timeout", type=DURATION,
    help="Wait at most this long for room in a queue, and as long for the disk.  [for ever]",
)  # fmt: skip


class Publisher:
    """Publishes one body a call, to a queue or to an exchange."""

    def __init__(self, broker: Broker, place: str, timeout: float | None) -> None:
        self.published = 0
        self.taken = 0
        """By how many queues."""
        self.unconfirmed = 0
        """Published, and not known to be safe."""
        self.unknown = 0
        """Nobody has said whether they are published: the link was lost, or the broker hangs."""
        self.waits = False
        """For a confirm."""
        self._level: Confirm | None = None
        self._vhost = broker.vhost
        self._place = place
        self._timeout = timeout
        self._is_said: set[str] = set()

    def __call__(self, body: bytes) -> None:
        self._begin(body)
        try:
            self.taken += self._patiently(
                self._publish, (QueueFull, GroupingTimeout), self._why_unpublished
            )
        except Unconfirmed:
            self.unknown += 1
            raise
        self.published += 1
        if self.waits:
            self.unconfirmed += 1
            self._patiently(self._confirm, (Unconfirmed,), self._why_unconfirmed)
            self.unconfirmed -= 1

    def _patiently(
        self,
        step: Callable[[float | None], int],
        ends: tuple[type[Error], ...],
        why: Callable[[Error], str],
    ) -> int:
        """Do it; if that takes longer than a second, say why, once.

        `ends`: how it ends if it may be done again.  A publish over a link may be Unconfirmed.
        """
        timeout = self._timeout
        quiet = QUIET_SECONDS if timeout is None else min(QUIET_SECONDS, timeout)
        try:
            return step(quiet)
        except ends as error:
            if quiet == timeout:
                raise
            if (text := why(error)) not in self._is_said:
                self._is_said.add(text)
                say(text)
            return step(None if timeout is None else timeout - quiet)

    def _why_unpublished(self, error: Error) -> str:
        if isinstance(error, GroupingTimeout):
            return "waiting until it is decided to which node its group goes"
        return f"waiting for room: {self._place} is full"

    def _why_unconfirmed(self, _error: Error) -> str:
        if self._level in ("replicated", "disk+replicated"):
            return f"waiting for replicas: not all have the message that is in {self._place}"
        runs = is_over_link() or vhosts.has_journaler(self._vhost)
        why = "its broker has not written it yet" if runs else "no broker writes its journal"
        return f"waiting for the disk: the message is in shared memory of {self._place}, and {why}"

    def _begin(self, body: bytes) -> None:
        raise NotImplementedError

    def _publish(self, timeout: float | None) -> int:
        """How many queues took it."""
        raise NotImplementedError

    def _confirm(self, timeout: float | None) -> int:
        raise NotImplementedError


class QueuePublisher(Publisher):
    def __init__(
        self, broker: Broker, name: str, timeout: float | None, confirm: Confirm | None,
        options: dict[str, Any],
    ) -> None:  # fmt: skip
        from shmbroker.ipc.queue.durable import DurableQueue

        super().__init__(broker, f"queue {name!r}", timeout)
        self._queue = queue_named(broker, name)
        is_durable = isinstance(self._queue, DurableQueue)
        is_durable |= is_over_link() and getattr(self._queue, "is_durable", False)
        if confirm not in (None, "shm") and not is_durable:
            raise click.ClickException(f"queue {name!r} is not durable: it is not on disk")
        self._level = confirm
        self.waits = is_durable and confirm != "shm"
        self._options = {**options, "confirm": "shm"} if is_durable else options
        times = options.get("deliver_after"), options.get("deliver_at")
        self._is_scheduled = any(each is not None for each in times)
        self._position: int | None = None

    def _begin(self, body: bytes) -> None:
        self._body = body

    def _publish(self, timeout: float | None) -> int:
        position = self._queue.publish(self._body, timeout=timeout, **self._options)
        self._position = None if self._is_scheduled else position
        return int(position is not None)

    def _confirm(self, timeout: float | None) -> int:
        # None waits for all that was published before: also for the schedule, and for a duplicate
        self._queue.confirm(self._position, level=self._level, timeout=timeout)
        return 1


class ExchangePublisher(Publisher):
    def __init__(
        self, broker: Broker, name: str, timeout: float | None, confirm: Confirm | None,
        options: dict[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(broker, f"a queue of exchange {name!r}", timeout)
        self._exchange = exchange_named(broker, name)
        self._level = confirm
        self.waits = confirm not in (None, "shm")
        self._options = {**options, "confirm": confirm}

    def _begin(self, body: bytes) -> None:
        from shmbroker.ipc.exchange.publication import Publication

        self._publication = Publication(self._exchange, body, **self._options)

    def _publish(self, timeout: float | None) -> int:
        return self._publication.go_on(nanoseconds(timeout))

    def _confirm(self, timeout: float | None) -> int:
        return self._publication.confirm(timeout)


class FarExchangePublisher(Publisher):
    """One command: the broker waits for room and confirms, and nobody asks how far it is."""

    def __init__(
        self, broker: Broker, name: str, timeout: float | None, options: dict[str, Any]
    ) -> None:
        super().__init__(broker, f"a queue of exchange {name!r}", timeout)
        self._exchange = exchange_named(broker, name)
        self._options = options

    def __call__(self, body: bytes) -> None:
        try:
            self.taken += self._exchange.publish(body, timeout=self._timeout, **self._options)
        except Unconfirmed:
            self.unknown += 1
            raise
        self.published += 1


def publisher(
    broker: Broker,
    queue: str | None,
    exchange: str | None,
    key: str | None,
    wishes: Mapping[str, bool],
    timeout: float | None,
    confirm: Confirm | None,
    options: dict[str, Any],
) -> Publisher:
    """`wishes`: `mandatory` and `immediate`, of what goes to an exchange."""
    if exchange is not None:
        given = {**options, "key": key or "", **wishes}
        if is_over_link():
            return FarExchangePublisher(broker, exchange, timeout, {**given, "confirm": confirm})
        return ExchangePublisher(broker, exchange, timeout, confirm, given)
    assert queue is not None
    return QueuePublisher(broker, queue, timeout, confirm, {**options, "key": key})
