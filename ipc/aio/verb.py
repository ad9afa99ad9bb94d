"""An awaitable verb from a sync verb that never waits."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

Face = TypeVar("Face")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def awaitable(
    verb: Callable[Concatenate[Face, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    """The same verb, called on the sync object behind ours."""

    async def call(self: Any, /, *args: Parameters.args, **named: Parameters.kwargs) -> Result:
        return verb(self._sync, *args, **named)

    update_wrapper(call, verb)
    return call
