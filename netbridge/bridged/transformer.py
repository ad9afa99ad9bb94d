"""A function of the user that changes the messages of a bridge, named as `module:callable`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from shmbroker.ipc.message.message import Message

Changed = bytes | tuple[bytes, dict[str, Any]] | None
"""A body, with options of `publish` if more than that is changed; None: it goes as it is."""


LEAST_TTL: Final = 1e-6


class Unusable(Exception):
    """It is not there, or cannot be called."""


class Transformer:
    def __init__(self, name: str) -> None:
        self.name = name
        module, _, callable_name = name.partition(":")
        try:
            found: Any = import_module(module)
            for part in callable_name.split("."):
                found = getattr(found, part)
        except Exception as error:  # a module of the user, which may raise anything
            raise Unusable(f"transformer {name}: {type(error).__name__}: {error}") from error
        if not callable(found):
            raise Unusable(f"transformer {name} is not callable")
        self._function: Callable[[Message], Changed] = found

    def __call__(self, message: Message) -> Changed:
        return self._function(message)


def made(message: Message, changed: Changed, now: datetime) -> tuple[bytes, dict[str, Any]]:
    """Body and options of what goes instead: what is not changed is the message's own."""
    body, options = changed if isinstance(changed, tuple) else (changed, {})
    own: dict[str, Any] = {
        "key": message.key,
        "properties": message.properties,
        "priority": message.priority,
    }
    if message.expires_at is not None:
        own["ttl"] = max(LEAST_TTL, (message.expires_at - now).total_seconds())
    if not isinstance(body, bytes | None):
        raise TypeError(f"it returned {type(body).__name__}, and not bytes")
    return message.body if body is None else body, own | options
