"""What the bodies of commands and results say.

Most are MessagePack maps (`asked`, `told`).  Messages are records of the journal's format, one
behind the other: a head of 32 bytes, the chunk, zeros up to a multiple of 8.

    of a publish  positions count from 0 in each body: message i has number `value` + i.  The word
                  of expiry is for how many nanoseconds it may be delivered.
    delivered     the position is that in the queue; the head's `frame` is how often the message was
                  delivered before.  The word of expiry is for how many nanoseconds it may still be
                  delivered.
    looked at     the same, and the head's `crc` has 1 if somebody has it, 2 if it is not confirmed.

Fields of the maps, by verb; `->` is the result.

    publish          target: producer, value: first number, count; records -> value: position of the
                     last one; code: 0, PASSED_OVER or SEEN
    publish-behind   the same
    decided          target: producer, value: first number, count
    producer         value: the first number that is not decided; queue or exchange, origin (16
                     bytes; if left out it is made of the session and the target) -> value: the
                     highest number that is known; durable
    schedule         value: a number, as of a transaction; queue or exchange, body, key, properties,
                     ttl (seconds), priority, group, after (seconds) or at (seconds since 1970)
                     -> value: id in the schedule, 0 if it is due; how many queues have it
    request          queue, body, key, properties, ttl, priority, group -> body, properties (as
                     they are packed)
    reply            queue, correlation, body, properties
    get              target: to leave it; count: at most; queue, selector -> code: how many,
                     value: first delivery, records
    ack, give-back,  value: first delivery, count; queue and, for a later session, lists: positions,
    reject           published (when each was).  A reject that finds no room for the dead has the
                     code REVOKED, as it is in hand no more, and the body of a QueueFull
    browse           count: at most; queue, position, unconfirmed, scheduled, selector -> code: how
                     many, value: where to go on, records; code 0: that is all
    commit           value: number of the transaction; a list of [queue or exchange, name, records],
                     as ["queue", "orders", ...], and of ["ack", first delivery, count]
    consumer         value: prefetch; queue, selector, priority, exclusive; with `looks` each
                     message is copied, not taken, from `start` on ("now", "earliest").  Or
                     subscription, exchange, key, durable, shared, slots, settings -> queue, durable
    temporary-queue  name (if left out the broker makes one), slots, settings -> name, durable
    leave            target
    declare          queue, slots, settings; exchange, kind, alternate; with `opens` as it is there,
                     and with `looks` no pattern makes it -> durable, slots, non_destructive; kind
    bind, unbind     exchange, destination, key, arguments, match, to; diverts, exclusive
    delete           queue, exchange or subscription; force
    settings         pattern, settings; or pattern, removes
    operate          queue, does: purge, pause, resume, expire, let_go (group), move_to or copy_to
                     (other, limit, selector), retry (limit), confirm (position, level) -> value:
                     how many; of move_to and copy_to is_full, of retry stayed; of confirm the level
    transactions     open: a list of [number, deliveries that are acknowledged with it]; repeated:
                     in a later session -> whole: the numbers of those that go on in this one
    cancel-scheduled value: the id; queue -> code 1: it is not delivered; 0: there is none
    order            verb: follow (queue, of, settings), detach (queue) or show, of queue replicas
                     -> found: a list of maps, as `shmbroker ha replicas --json` prints them
    look             at: queues, exchanges, bindings, subscriptions, patterns, participants, errors;
                     or queue, at: statistics, length, published, confirmed, level, explain, gates,
                     origins, groups, scheduled, value (key) -> found: a map, a list of maps, a
                     number; of value a record

A delivery without messages ends its consumer: nothing more comes, and its body says why (`ended`).
A result with a code below 0 is an error: `refusal` makes its body, `raised` the error of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgpack

from shmbroker.core.codes import INVALID, OK, TEXTS
from shmbroker.core.layout import RECORD_HEAD_BYTES
from shmbroker.ipc.base import errors
from shmbroker.ipc.base.errors import ERRORS, Error, InvalidArgument
from shmbroker.netbridge.remote.broken import SessionBroken
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.malformed import shown

PASSED_OVER: Final = 1
"""Of a publish: the queue has, or had, a message with this id."""
SEEN: Final = 2
"""Of a publish: it was published before; where is not known."""


MAPS: Final = frozenset({*range(0x80, 0x90), 0xDE, 0xDF})
"""How they begin in MessagePack."""


def asked(**fields: Any) -> bytes:
    """The map of a command or of a result; what is None is left out."""
    packed: bytes = msgpack.packb({name: each for name, each in fields.items() if each is not None})
    return packed


def told(body: Body) -> dict[str, Any]:
    """What `asked` was given; InvalidArgument."""
    found = unpacked(body) if len(body) else {}
    if not isinstance(found, dict):
        raise InvalidArgument("the body of a command is no map")
    return found


def is_map(body: Body) -> bool:
    """Or nothing, by its first byte; what is in it sees who reads it."""
    return not len(body) or body[0] in MAPS


def unpacked(body: Body) -> Any:
    try:
        return msgpack.unpackb(body, strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise InvalidArgument(f"the body of a command is no MessagePack: {error}") from None


def refusal(error: Error) -> tuple[int, bytes]:
    """The code of a result that says so, and its body."""
    code = error.code if error.code < OK else INVALID
    packed: bytes = msgpack.packb([type(error).__name__, str(error)])
    return code, packed


def raised(code: int, body: Body) -> Error:
    """The error that `refusal` was given: of the same class, with the same text."""
    name, text = _said(body)
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Error)):
        kind = ERRORS.get(code, Error)
    error: Error = kind(text or TEXTS.get(code, f"code {code}"))
    error.code = code
    return error


def ended(error: Error) -> bytes:
    """Of the last delivery to a consumer, which has no messages."""
    code, said = refusal(error)
    return asked(code=code, said=said)


def why_ended(body: Body) -> Error:
    """The error that `ended` was given."""
    fields = told(body)
    return raised(named(fields, "code", int), named(fields, "said", bytes))


def _said(body: Body) -> tuple[str, str]:
    """It may be of a broker that is not ours."""
    try:
        found = unpacked(body)
    except InvalidArgument:
        return "", bytes(body).decode(errors="replace")
    is_pair = isinstance(found, list) and [*map(type, found)] == [str, str]
    return (found[0], found[1]) if is_pair else ("", "")


def numbers_of(first: int, messages: int, body: Body) -> range:
    """Of what was delivered.  Each takes memory of the program, so there are no more than have
    come; SessionBroken."""
    if messages * RECORD_HEAD_BYTES > len(body):
        raise SessionBroken(f"{messages} messages are said to be in {len(body)} bytes")
    return range(first, first + messages)


def named(fields: Mapping[str, Any], field: str, kind: type = str) -> Any:
    """A field that must be there and be of this kind; InvalidArgument."""
    value = fields.get(field)
    if not isinstance(value, kind):
        raise InvalidArgument(f"{field!r} of a command is {shown(value)}, no {kind.__name__}")
    return value
