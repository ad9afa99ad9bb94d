"""Exporting messages as lines of JSON, and importing them.

A line is one message.  `key` and `properties` may be missing, as may `priority` and `ttl` (the
seconds that were left).  `body` is text, or base64 if `body_encoding` says so.  `deliveries` and
`published_at` tell what was; a message that is imported begins anew.  Bytes in properties are
{"base64": "..."}.  Properties that JSON would not give back as they are, or that nobody can read,
are base64 of their MessagePack: then `properties_encoding` says so.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.base.errors import Error, InvalidArgument, MessageTooLarge
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.message.properties import Packed, pack

if TYPE_CHECKING:
    from shmbroker.ipc.message.copied import CopiedMessage
    from shmbroker.ipc.queue.queue import Queue

FIELDS: dict[str, tuple[type, ...]] = {
    "key": (str, type(None)), "properties": (dict, str), "body": (str,), "body_encoding": (str,),
    "priority": (int, type(None)), "ttl": (int, float, type(None)),
    "deliveries": (int,), "published_at": (int,), "properties_encoding": (str,),
}  # fmt: skip
BYTES, JSON = "base64", "json"


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return {BYTES: b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _decoded(text: Any) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"expected base64: {error}") from error


def _as_was(value: dict[str, Any]) -> Any:
    return _decoded(value[BYTES]) if set(value) == {BYTES} else value


def _properties_of(message: CopiedMessage) -> dict[str, object]:
    given = message.properties
    try:
        comes_back = _read_again(given) == given
    except (TypeError, ValueError, RecursionError):
        comes_back = False
    if comes_back and not message.unreadable:
        return {"properties": given}
    packed = message.unreadable or pack(given)
    return {"properties": b64encode(packed).decode(), "properties_encoding": BYTES}


def _read_again(properties: Mapping[str, Any]) -> Any:
    """As they are after a line was written of them."""
    return json.loads(json.dumps(properties, default=_plain), object_hook=_as_was)


def line_of(message: CopiedMessage) -> str:
    """A message as a line, without its end."""
    try:
        body, encoding = message.body.decode(), "utf-8"
    except UnicodeDecodeError:
        body, encoding = b64encode(message.body).decode(), BYTES
    left = (message.expires_ns - time.monotonic_ns()) / 1e9 if message.expires_ns else None
    fields = {
        "key": message.key,
        **_properties_of(message),
        "body": body,
        "body_encoding": encoding,
        "priority": message.priority,
        "ttl": left,
        "deliveries": message.deliveries,
        "published_at": message.published_at,
    }
    return json.dumps(fields, default=_plain)


def exported(queue: Queue) -> Iterator[str]:
    """All messages that are there, taken or not, oldest first; none is taken.

    What is expired and still there is left out.
    """
    for message in queue.browse():
        if not message.expires_ns or message.expires_ns > time.monotonic_ns():
            yield line_of(message)


def message_of(line: str | bytes) -> tuple[bytes, dict[str, Any]]:
    """Body and arguments of publish; InvalidArgument says what was expected."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"expected a JSON object, {error}") from error
    if not isinstance(fields, dict) or "body" not in fields:
        raise InvalidArgument("expected a JSON object with a body")
    for name, value in fields.items():
        if name not in FIELDS:
            raise InvalidArgument(f"{name!r} is none of {', '.join(FIELDS)}")
        if not isinstance(value, FIELDS[name]) or isinstance(value, bool):
            kinds = " or ".join("null" if k is type(None) else k.__name__ for k in FIELDS[name])
            raise InvalidArgument(f"expected {name} to be {kinds}, not {json.dumps(value)}")
    options = {name: fields.get(name) for name in ("key", "priority", "ttl")}
    return _body_of(fields), options | {"properties": _properties_in(fields) or None}


def _properties_in(fields: dict[str, Any]) -> Mapping[str, Any] | Packed:
    given, encoding = fields.get("properties", {}), fields.get("properties_encoding", JSON)
    if encoding == BYTES and isinstance(given, str):
        return Packed(_decoded(given))
    properties = _read_again(given)
    if encoding != JSON or not isinstance(properties, dict):
        raise InvalidArgument(
            f"expected properties to be a map, or text whose properties_encoding is {BYTES}"
        )
    return properties


def _body_of(fields: dict[str, Any]) -> bytes:
    encoding = fields.get("body_encoding", "utf-8")
    if encoding not in ("utf-8", BYTES):
        raise InvalidArgument(f"expected body_encoding to be utf-8 or {BYTES}, not {encoding!r}")
    if encoding == BYTES:
        return _decoded(fields["body"])
    try:
        body: bytes = fields["body"].encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"expected a body that can be UTF-8: {error}") from error
    return body


def imported(
    queue: Queue,
    lines: Iterable[str | bytes],
    *,
    timeout: Seconds | None = None,
    skip: Callable[[str], object] | None = None,
) -> int:
    """Publish what the lines say: how many.  `importing` says what an error is of."""
    return max(importing(queue, lines, timeout=timeout, skip=skip), default=0)


def importing(
    queue: Queue,
    lines: Iterable[str | bytes],
    *,
    timeout: Seconds | None = None,
    skip: Callable[[str], object] | None = None,
) -> Iterator[int]:
    """Publish what the lines say: after each message how many.

    An error names its line, and those before it are published.  With `skip` that is told of a line
    that is no message, or a larger one than there may be here, and it goes on.
    """
    published = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            body, options = message_of(line)
            queue.publish(body, timeout=timeout, **options)
        except Error as error:
            text = f"line {number}: {error}"
            if skip is None or not isinstance(error, (InvalidArgument, MessageTooLarge)):
                error.published = published
                error.args = (f"{text}; {published} before it are published",)
                raise
            skip(text)
        else:
            published += 1
            yield published
