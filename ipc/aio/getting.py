"""What `get` of asyncio answers: a coroutine, which `async with` awaits as well."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shmbroker.ipc.message.message import Message

if TYPE_CHECKING:
    from types import TracebackType

Got = TypeVar("Got", bound=Message)


class Getting(Coroutine[Any, Any, Got], Generic[Got]):
    """`message = await queue.get()`, or `async with queue.get() as message`."""

    __slots__ = ("_coroutine", "_message")

    def __init__(self, coroutine: Coroutine[Any, Any, Got]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, None, Got]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        return self._coroutine.send(value)

    def throw(self, *told: Any) -> Any:
        return self._coroutine.throw(*told)

    def close(self) -> None:
        self._coroutine.close()

    async def __aenter__(self) -> Got:
        self._message = await self._coroutine
        return self._message

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._message.__exit__(kind, error, traceback)
