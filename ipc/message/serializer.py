"""Serializers: how the values of a program become bodies, at a queue's handle (docs/handles.md).

A body says nothing of how it was written: publishers and consumers agree on that.  There is no
default, and pickle least of all: reading a pickle runs what its writer wants.
"""

from __future__ import annotations

from importlib import import_module
from pickle import PickleError
from types import ModuleType
from typing import Any, Final, Literal, Protocol

from msgpack import UnpackException

from shmbroker.ipc.base.errors import InvalidArgument

SerializerName = Literal["json", "orjson", "msgpack", "pickle"]
NAMES: Final = ("json", "orjson", "msgpack", "pickle")

UNWRITABLE = (TypeError, ValueError, OverflowError, AttributeError, RecursionError, PickleError)
UNREADABLE = (*UNWRITABLE, EOFError, LookupError, ImportError, UnpackException)


class Serializer(Protocol):
    """A module or an object; text that dumps answers is written as UTF-8."""

    def dumps(self, value: Any, /) -> Any: ...
    def loads(self, body: bytes, /) -> Any: ...


AnySerializer = Serializer | SerializerName


class Codec:
    """A serializer whose errors are ours."""

    __slots__ = ("_dumps", "_loads", "_serializer", "name")

    def __init__(self, serializer: Any, name: str) -> None:
        self._serializer = serializer
        self._dumps = _compact if name == "json" else serializer.dumps
        self._loads = serializer.loads
        self.name = name

    def dumps(self, value: Any) -> bytes:
        """The body; InvalidArgument if there is none for this value."""
        try:
            body = self._dumps(value)
        except UNWRITABLE as error:
            raise InvalidArgument(f"{self.name} cannot write this value: {error}") from error
        return body.encode() if isinstance(body, str) else body

    def loads(self, body: bytes) -> Any:
        """The value; InvalidArgument if this serializer has not written the body."""
        try:
            return self._loads(body)
        except UNREADABLE as error:
            raise InvalidArgument(
                f"{self.name} cannot read a body of {len(body)} bytes: {error}"
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._serializer, ModuleType):
            return _of_module, (self._serializer.__name__,)
        return Codec, (self._serializer, self.name)

    def __repr__(self) -> str:
        return f"<serializer {self.name}>"


def _compact(value: Any) -> str:
    import json

    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _of_module(name: str) -> Codec:
    return Codec(import_module(name), name)


def codec_of(asked: AnySerializer | Codec | None) -> Codec | None:
    """For a name, a module or an object with dumps and loads."""
    if asked is None or isinstance(asked, Codec):
        return asked
    if isinstance(asked, str):
        if asked not in NAMES:
            raise InvalidArgument(
                f"a serializer is {', '.join(NAMES)}, or has dumps and loads; not {asked!r}"
            )
        try:
            return _of_module(asked)
        except ModuleNotFoundError as error:
            raise InvalidArgument(
                f"serializer {asked!r} is not installed: pip install 'shmbroker[{asked}]'"
            ) from error
    if not callable(getattr(asked, "dumps", None)) or not callable(getattr(asked, "loads", None)):
        raise InvalidArgument(f"a serializer has dumps and loads, and {asked!r} has not")
    return Codec(asked, getattr(asked, "__name__", type(asked).__name__))


def value_of(body: bytes, codec: Codec | None) -> Any:
    """For Message.value."""
    if codec is None:
        raise InvalidArgument(
            "this queue was opened without a serializer: open it with one, or read the body"
        )
    return codec.loads(body)
