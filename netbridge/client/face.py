"""The classes that programs see: of the verbs, which are coroutines, those that block, and those
of asyncio."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any, Final

from shmbroker.ipc.aio.getting import Getting
from shmbroker.netbridge.client.broker import Broker
from shmbroker.netbridge.client.consumer import Consumer
from shmbroker.netbridge.client.exchange import Exchange
from shmbroker.netbridge.client.queue import Queue
from shmbroker.netbridge.client.subscription import NamedSubscription, Subscription
from shmbroker.netbridge.client.transaction import Transaction, TransactionQueue
from shmbroker.netbridge.client.waiting import blocking, finished

KINDS: Final[tuple[type, ...]] = (
    Broker, Consumer, Exchange, NamedSubscription, Queue, Subscription, Transaction,
    TransactionQueue,
)  # fmt: skip


def iterated(verb: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    @wraps(verb)
    def call(*args: Any, **named: Any) -> Iterator[Any]:
        steps = verb(*args, **named)
        try:
            while True:
                try:
                    each = finished(steps.__anext__())
                except StopAsyncIteration:
                    return
                yield each
        finally:
            finished(steps.aclose())

    return call


def got(verb: Callable[..., Any]) -> Callable[..., Any]:
    """`async with queue.get() as message`, too."""

    @wraps(verb)
    def call(*args: Any, **named: Any) -> Any:
        return Getting(verb(*args, **named))

    return call


def _blocks(verb: Any) -> Any:
    if isasyncgenfunction(verb):
        return iterated(verb)
    return blocking(verb) if iscoroutinefunction(verb) else None


def _awaits(verb: Any) -> Any:
    return got(verb) if verb.__name__ in ("get", "select") else None


def _enter(self: Any) -> Any:
    return self


def _exit(self: Any, *told: Any) -> None:
    finished(self.__aexit__(*told))


def _next(self: Any) -> Any:
    try:
        return finished(self.__anext__())
    except StopAsyncIteration:
        raise StopIteration from None


BLOCKS: Final = {
    "__aenter__": ("__enter__", _enter),
    "__aexit__": ("__exit__", _exit),
    "__aiter__": ("__iter__", _enter),
    "__anext__": ("__next__", _next),
}


def _face(kind: type, turned: Callable[[Any], Any]) -> type:
    verbs: dict[str, Any] = {"__doc__": kind.__doc__, "__module__": kind.__module__}
    if turned is _blocks:
        verbs |= dict(BLOCKS[name] for name in BLOCKS if hasattr(kind, name))
    for name in dir(kind):
        verb = getattr(kind, name)
        if name[0] != "_" and callable(verb) and hasattr(verb, "__name__"):
            made = turned(verb)
            if made is not None:
                verbs[name] = made
    return type(kind.__name__, (kind,), verbs)


def _faces(turned: Callable[[Any], Any]) -> dict[str, Any]:
    faces = {kind.__name__: _face(kind, turned) for kind in KINDS}
    opens: Any = faces["Broker"]
    opens.kinds = faces
    return faces


BLOCKING: Final = _faces(_blocks)
AWAITING: Final = _faces(_awaits)
