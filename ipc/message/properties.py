"""Properties of messages and arguments of bindings: MessagePack maps with text keys.

MessagePack because C programs have libraries for it, and an exchange of kind headers compares
encoded values byte by byte (core/headers.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgpack

from shmbroker.core.layout import NAME_BYTES_MAX, PROPERTIES_BYTES_MAX
from shmbroker.ipc.base.errors import InvalidArgument


class Packed(bytes):
    """Properties as they came, where a mapping is expected: they are published as they are."""


def pack(properties: Mapping[str, Any] | Packed | None) -> bytes:
    """The bytes that go with the message; none for no properties."""
    if properties is None:
        return b""
    if isinstance(properties, Packed):
        return checked(properties)
    if not isinstance(properties, Mapping):
        raise InvalidArgument(f"properties are a mapping, not {type(properties).__name__}")
    if not properties:
        return b""
    for name in properties:
        if not isinstance(name, str):
            raise InvalidArgument(f"the names of properties are text, not {name!r}")
    try:
        packed: bytes = msgpack.packb(dict(properties))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"properties {dict(properties)!r}: {error}") from error
    return checked(packed)


def checked(packed: bytes) -> bytes:
    """Not too many."""
    if len(packed) > PROPERTIES_BYTES_MAX:
        raise InvalidArgument(
            f"properties take {len(packed)} bytes, and may have {PROPERTIES_BYTES_MAX}"
        )
    return packed


def unpack(packed: bytes) -> dict[str, Any]:
    """What pack was given."""
    if not packed:
        return {}
    try:
        properties: dict[str, Any] = msgpack.unpackb(packed, strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise InvalidArgument(f"these properties are no MessagePack: {error}") from error
    if not isinstance(properties, dict):
        raise InvalidArgument(f"these properties are no map, but {type(properties).__name__}")
    for name in properties:
        if not isinstance(name, str):
            raise InvalidArgument(f"the names of these properties are no text, but {name!r}")
    return properties


def readable(packed: bytes) -> tuple[dict[str, Any], bytes]:
    """Properties; or none, and what cannot be read: a program in C may write any bytes."""
    try:
        return unpack(packed), b""
    except InvalidArgument:
        return {}, packed


def unpack_all(packed: bytes) -> list[Any]:
    """Objects that lie one behind the other."""
    unpacker = msgpack.Unpacker(strict_map_key=False)
    unpacker.feed(packed)
    return list(unpacker)


MESSAGE_ID = "JMSMessageID"


def message_id_in(properties: dict[str, Any]) -> str | bytes | None:
    """The id that a message was published with, or the property of its name."""
    found = properties.get(MESSAGE_ID)
    return found if isinstance(found, (str, bytes)) else None


def check_reply_to(asked: object) -> None:
    """InvalidArgument: a reply is asked for, and to what can be no queue."""
    is_name = isinstance(asked, str) and len(asked.encode(errors="replace")) <= NAME_BYTES_MAX
    if asked is not None and not is_name:
        raise InvalidArgument(
            f"JMSReplyTo of this message is {asked!r:.100}: a queue has a name of up to "
            f"{NAME_BYTES_MAX} bytes"
        )
