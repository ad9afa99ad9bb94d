"""What is to be published, as C wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shmbroker.core.layout import KEY_BYTES_MAX
from shmbroker.ipc._native import ffi
from shmbroker.ipc.errors import InvalidArgument
from shmbroker.ipc.properties import pack


def as_buffer(body: Any) -> Any:
    """The memory of a body, where it is: bytes, a bytearray, an array, a view."""
    if isinstance(body, str):
        raise InvalidArgument("a body is bytes or another buffer, not text: encode it")
    try:
        return ffi.from_buffer(body)
    except (TypeError, BufferError, ValueError) as error:
        raise InvalidArgument(f"a body is bytes or another contiguous buffer: {error}") from error


def key_bytes(key: str | None) -> bytes:
    if key is None:
        return b""
    if not isinstance(key, str):
        raise InvalidArgument(f"a key is text, not {type(key).__name__}")
    encoded = key.encode(errors="surrogatepass")
    if len(encoded) > KEY_BYTES_MAX:
        raise InvalidArgument(f"a key has at most {KEY_BYTES_MAX} bytes, not {len(encoded)}")
    return encoded


def parts(
    body: Any, key: str | None, properties: Mapping[str, Any] | None
) -> tuple[Any, int, bytes, int, bytes, int]:
    """A message as arguments for C."""
    named = b"" if key is None else key_bytes(key)
    packed = pack(properties) if properties else b""
    held = body if type(body) is bytes else as_buffer(body)
    return held, len(held), named, len(named), packed, len(packed)


def outgoing(
    body: Any, key: str | None, properties: Mapping[str, Any] | None
) -> tuple[Any, tuple[Any, ...]]:
    """A message for C, and what must live as long as it."""
    held, named, packed = as_buffer(body), key_bytes(key), pack(properties)
    held_key, held_properties = ffi.from_buffer(named), ffi.from_buffer(packed)
    message = ffi.new("sb_outgoing *")
    message.body, message.length = held, len(held)
    message.key, message.key_length = held_key, len(named)
    message.properties, message.properties_length = held_properties, len(packed)
    return message, (held, held_key, held_properties)
