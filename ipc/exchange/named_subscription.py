"""A subscription by name: a queue of its own behind an exchange (ipc/exchange/subscription.c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.names import name_bytes
from shmbroker.ipc.message.outgoing import key_bytes
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.settings.setting import CommonSettings
from shmbroker.ipc.settings.settings import for_c

if TYPE_CHECKING:
    from types import TracebackType

    from shmbroker.ipc.connection.broker import Broker


class NamedSubscription(Queue):
    """Made by Broker.subscription.  Leaving `with` lets others consume it, if it is not shared."""

    __slots__ = ("_asked", "subscription")

    _asked: dict[str, Any]
    """What Broker.subscription was given, for another process that is to have the same."""

    def __init__(self, broker: Broker, subscription: str, queue: Any) -> None:
        name = ffi.string(lib.sb_queue_name(queue)).decode()
        super().__init__(broker, name, queue, broker._arena)
        self.subscription = subscription

    def close(self) -> None:
        """Consume it no more; one that is not durable vanishes with its last consumer."""
        code = lib.sb_subscription_close(self._broker._connection, name_bytes(self.subscription))
        self._broker._check(code, f"closing subscription {self.subscription!r}")

    def delete(self, *, force: bool = False) -> None:
        """Delete the subscription and what it has collected; InUse if another one has it."""
        self._broker.unsubscribe(self.subscription, force=force)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, (self._broker, self.subscription, self._asked)

    def __enter__(self) -> NamedSubscription:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._broker.is_closed:
            self.close()


def open_subscription(
    broker: Broker,
    kind: type[NamedSubscription],
    name: str,
    exchange: str,
    key: str,
    durable: bool,
    shared: bool,
    slots: int,
    settings: CommonSettings,
) -> NamedSubscription:
    wanted, _kept = for_c(settings)
    texts = [ffi.new("char[]", name_bytes(each)) for each in (name, exchange)]
    encoded = key_bytes(key)
    held = ffi.from_buffer(encoded)
    asked = ffi.new(
        "sb_subscription *",
        {
            "name": texts[0],
            "exchange": texts[1],
            "key": held,
            "key_length": len(encoded),
            "durable": bool(durable),
            "shared": bool(shared),
            "slots": slots,
            "settings": wanted,
        },
    )
    queue = ffi.new("sb_queue **")
    code = lib.sb_subscription_open(broker._connection, asked, queue)
    broker._check(code, f"subscription {name!r}")
    return kind(broker, name, broker._handles.opened(queue[0]))


def _open(broker: Broker, name: str, asked: dict[str, Any]) -> NamedSubscription:
    """What it is pickled as: another process opens the subscription for itself."""
    return broker.subscription(name, **asked)
