"""Verbs for asyncio, told by the sync ones: name, arguments, defaults, hints and documentation are
written there, and nowhere else.

    pause = awaitable(sync.Queue.pause)                    never waits: a call, and nothing more
    get_many = waits(sync.Queue.get_many, _messages)       tried again whenever that bell rings
    queue = opens(sync.Broker.queue, _queue)               what it answers gets a face for asyncio
    rollback = at_once(sync.Transaction.rollback)          never waits, and is not awaited
    subscribe = begins(sync.Broker.subscribe, Subscription)  nor is this; its answer gets a face

    @twin(sync.Queue.confirm)                              with a body of its own: it names only
    async def confirm(self, position: int | None, *, timeout: Seconds | None) -> None: ...

tests/ipc/aio/test_twins.py lists what is on one side only, and why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from functools import partial
from inspect import Parameter, signature
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from shmbroker.ipc.base.timeout import Seconds

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Answer = TypeVar("Answer")
First = TypeVar("First")

KEYWORD, REST, MORE = Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL


def documentation(sync: Any) -> str | None:
    """That of the sync verb or class, as it reads for asyncio."""
    text: str | None = sync.__doc__
    return text and re.sub(r"`(with|for)\b", r"`async \1", text)


def described(body: Any, verb: Any) -> Any:
    """The body under the name, the arguments, the defaults and the documentation of the verb."""
    told = signature(verb)
    given = list(signature(body).parameters.values())[1:]
    kinds = {each.kind for each in given}
    named = [each for each in given if each.kind not in (REST, MORE)]
    unknown = [each.name for each in named if each.name not in told.parameters]
    known = {each.name for each in named}
    left = [
        name
        for name, each in list(told.parameters.items())[1:]
        if name not in known and REST not in kinds and (each.kind == KEYWORD or MORE not in kinds)
    ]
    if unknown or left:
        raise TypeError(f"{verb.__qualname__}: it has no {unknown}, and {left} is left out")
    default = {
        each.name: told.parameters[each.name].default
        for each in named
        if told.parameters[each.name].default is not Parameter.empty
    }
    keywords = {each.name for each in named if each.kind == KEYWORD}
    body.__kwdefaults__ = {name: default[name] for name in default if name in keywords}
    body.__defaults__ = tuple(default[name] for name in default if name not in keywords)
    body.__name__, body.__qualname__ = verb.__name__, verb.__qualname__
    body.__doc__ = documentation(verb)
    body.__signature__ = told
    return body


def twin(
    verb: Callable[Concatenate[Any, Parameters], Any],
) -> Callable[[Callable[..., Answer]], Callable[Concatenate[Any, Parameters], Answer]]:
    """For a body of our own, which names the arguments that it uses."""
    return partial(described, verb=verb)


def twin_function(
    verb: Callable[Parameters, Any],
) -> Callable[[Callable[..., Answer]], Callable[Parameters, Answer]]:
    """The same for a function."""
    return partial(described, verb=verb)


def twin_to(
    verb: Callable[Concatenate[Any, Any, Parameters], Any],
) -> Callable[
    [Callable[Concatenate[Any, First, ...], Answer]],
    Callable[Concatenate[Any, First, Parameters], Answer],
]:
    """The same, where the first argument is a face for asyncio."""
    return partial(described, verb=verb)


def awaited(
    verb: Callable[Concatenate[Any, Parameters], Result], body: Callable[..., Any]
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    """twin as a call: so the verb may be overloaded."""
    described(body, verb)
    return body


def at_once(
    verb: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Result]:
    name = verb.__name__

    def call(self: Any, /, *args: Any, **named: Any) -> Any:
        return getattr(self._sync, name)(*args, **named)

    described(call, verb)
    return call


def awaitable(
    verb: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    name = verb.__name__

    async def call(self: Any, /, *args: Any, **named: Any) -> Any:
        given = [each._sync if isinstance(each, Face) else each for each in args]
        named = {key: each._sync if isinstance(each, Face) else each for key, each in named.items()}
        return getattr(self._sync, name)(*given, **named)

    return awaited(verb, call)


def begins(
    verb: Callable[Concatenate[Any, Parameters], Result], face: Callable[[Any, Any], Answer]
) -> Callable[Concatenate[Any, Parameters], Answer]:
    name = verb.__name__

    def call(self: Any, /, *args: Any, **named: Any) -> Any:
        return face(self, getattr(self._sync, name)(*args, **named))

    described(call, verb)
    return call


def opens(
    verb: Callable[Concatenate[Any, Parameters], Result], face: Callable[[Any, Any], Answer]
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Answer]]:
    name = verb.__name__

    async def call(self: Any, /, *args: Any, **named: Any) -> Any:
        return face(self, getattr(self._sync, name)(*args, **named))

    described(call, verb)
    return call


def waits(
    verb: Callable[Concatenate[Any, Parameters], Result], bell: Callable[[Any], Any]
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    name = verb.__name__

    async def call(self: Any, /, *args: Any, timeout: Seconds | None, **named: Any) -> Any:
        attempt = partial(getattr(self._sync, name), *args, timeout=0, **named)
        return await self._until_done(attempt, partial(bell, self), timeout)

    return awaited(verb, call)


class Face:
    """What stands for a sync object in asyncio, and is documented as it is."""

    of: ClassVar[type]
    _sync: Any

    def __init_subclass__(cls, *, of: type) -> None:
        cls.of = of
        cls.__doc__ = documentation(of)
        for name, each in vars(cls).items():
            if isinstance(each, property):
                told = getattr(of, name, None)
                each.__doc__ = documentation(told) if isinstance(told, property) else None

    def __repr__(self) -> str:
        return f"<aio {self._sync!r}>"
