"""What comes of a verb that is carried out in one go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shmbroker.core.codes import OK
from shmbroker.ipc.base.errors import Error, InvalidArgument, MessageTooLarge
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.words import Level


@dataclass(frozen=True, slots=True)
class Answer:
    code: int = OK
    value: int = 0
    body: Body = b""
    level: Level = Level.SHM
    in_journal: bool = False
    """It has changed what the journal has."""


def too_large(what: str, length: int, limit: int) -> MessageTooLarge:
    return MessageTooLarge(
        f"{what}: {length:,} bytes are more than goes over a link at once, which is {limit:,}; "
        "a program on the broker's host may have them"
    )


UNFIT: Final = (
    TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError
)  # fmt: skip
"""What an argument of another type raises, or a number that is too large, as msgpack brings it; or
lists in lists, when an error is to show them."""


def unfit(error: Exception) -> Error:
    return InvalidArgument(f"{type(error).__name__}: {error}")
