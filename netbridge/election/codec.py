"""What members and voters say to each other, and ledgers, to bytes and back.

It is the body of a frame `Vote`: a MessagePack array of the kind and its fields, in their order.
Everything has bounds, which are the same for who writes and who reads.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, Final

import msgpack

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import (
    Answer,
    Ballot,
    Copy,
    FromMember,
    FromVoter,
    Grant,
    Question,
    Release,
    Renew,
    Renewed,
    Stale,
    Step,
    Verdict,
)
from shmbroker.netbridge.wire.field import (
    NAME_BYTES_MAX,
    REASON_BYTES_MAX,
    Bound,
    Choice,
    Flag,
    Number,
    Octets,
    Text,
)
from shmbroker.netbridge.wire.frame import COUNT_MAX, ID_BYTES, Body
from shmbroker.netbridge.wire.malformed import Malformed

BYTES_MAX: Final = 32 << 10
COPIES_MAX: Final = 16
BOOT_BYTES_MAX: Final = 64
LEASE_MS_MAX: Final = 24 * 3600 * 1000
ASKER_BYTES_MAX: Final = 2 * NAME_BYTES_MAX
"""Of a ballot: a member, and the life of its process."""


class Made(Bound):
    """An object with fields: an array, or a map by their names."""

    def __init__(self, kind: type[Any], *bounds: Bound) -> None:
        self._kind = kind
        self._names = tuple(each.name for each in fields(kind))
        self._bounds = bounds
        assert len(self._names) == len(bounds)

    def read(self, value: object) -> Any:
        if type(value) is dict:
            if value.keys() != set(self._names):
                raise Malformed(f"has not the fields {', '.join(self._names)}")
            value = [value[name] for name in self._names]
        if type(value) is not list or len(value) != len(self._names):
            raise Malformed(f"is no list of {', '.join(self._names)}")
        return self._kind(*_each(self._names, self._bounds, value))

    def write(self, value: Any) -> list[object]:
        values = [getattr(value, name) for name in self._names]
        return _each(self._names, self._bounds, values, is_written=True)


class Many(Bound):
    def __init__(self, of: Bound, most: int) -> None:
        self._of, self._most = of, most

    def read(self, value: object) -> tuple[object, ...]:
        if type(value) is not list or len(value) > self._most:
            raise Malformed(f"is no list of up to {self._most}")
        return tuple(self._of.read(each) for each in value)

    def write(self, value: Any) -> list[object]:
        if len(value) > self._most:
            raise Malformed(f"are {len(value)}, and may be {self._most}")
        return [self._of.write(each) for each in value]


class Pair(Bound):
    def __init__(self, first: Bound, second: Bound) -> None:
        self._both = first, second

    def read(self, value: object) -> tuple[object, ...]:
        if type(value) is not list or len(value) != 2:
            raise Malformed("is no pair")
        return tuple(_each(("first", "second"), self._both, value))

    def write(self, value: Any) -> list[object]:
        return _each(("first", "second"), self._both, value, is_written=True)


class Perhaps(Bound):
    """Or nothing."""

    def __init__(self, of: Bound) -> None:
        self._of = of

    def read(self, value: object) -> object:
        return None if value is None else self._of.read(value)

    def write(self, value: Any) -> object:
        return None if value is None else self._of.write(value)


def _each(
    names: Sequence[str],
    bounds: Sequence[Bound],
    values: Sequence[Any],
    *,
    is_written: bool = False,
) -> list[object]:
    found = []
    for name, bound, value in zip(names, bounds, values, strict=True):
        try:
            found.append(bound.write(value) if is_written else bound.read(value))
        except Malformed as error:
            raise Malformed(f"{name} {error}") from None
    return found


NODE: Final = Octets(ID_BYTES, ID_BYTES)
COUNT: Final = Number(0, COUNT_MAX)
EPOCH: Final = Number(1, COUNT_MAX)
MEMBER: Final = Text(NAME_BYTES_MAX, 1)
BOOT: Final = Text(BOOT_BYTES_MAX)
BALLOT: Final = Made(Ballot, COUNT, Text(ASKER_BYTES_MAX, 1))
COPY: Final = Made(Copy, MEMBER, BOOT)
GRANT: Final = Made(Grant, EPOCH, MEMBER, Many(COPY, COPIES_MAX))
ACCEPTED: Final = Perhaps(Pair(BALLOT, GRANT))
LEASE: Final = Number(0, LEASE_MS_MAX)
LEDGER: Final = Made(Ledger, Perhaps(GRANT), COUNT, Perhaps(Pair(EPOCH, BALLOT)), ACCEPTED, LEASE)
STEP: Final = Choice(Step)

SHAPES: Final[tuple[tuple[type[Any], Made], ...]] = (
    (Question, Made(Question, NODE, STEP, COUNT, MEMBER, GRANT, BOOT, Perhaps(BALLOT), Flag(),
                    Flag())),
    (Answer, Made(Answer, NODE, STEP, COUNT, Choice(Verdict), Text(REASON_BYTES_MAX),
                  Perhaps(BALLOT), ACCEPTED, Perhaps(GRANT))),
    (Renew, Made(Renew, NODE, GRANT, COUNT, COUNT, LEASE)),
    (Renewed, Made(Renewed, NODE, EPOCH, COUNT, COUNT)),
    (Release, Made(Release, NODE, EPOCH)),
    (Stale, Made(Stale, NODE, EPOCH, GRANT, Flag())),
)  # fmt: skip
"""By the number of their kind, which never changes."""
NUMBER_OF: Final = {kind: number for number, (kind, _) in enumerate(SHAPES)}
OF_MEMBERS: Final = (Question, Renew, Release)
OF_VOTERS: Final = (Answer, Renewed, Stale)

_NOT_MESSAGEPACK: Final = (
    ValueError,  # with it: too deep, too long, no UTF-8, bytes behind it
    TypeError,
    OverflowError,
    msgpack.exceptions.UnpackException,
)


def encode(what: FromMember | FromVoter) -> bytes:
    number = NUMBER_OF[type(what)]
    packed: bytes = msgpack.packb([number, *SHAPES[number][1].write(what)])
    return packed


def from_member(body: Body) -> FromMember:
    """Malformed, and no other error, says what is wrong."""
    found = decoded(body, SHAPES, "a vote")
    if not isinstance(found, OF_MEMBERS):
        raise Malformed(f"a member says no {type(found).__name__.lower()}")
    return found


def from_voter(body: Body) -> FromVoter:
    found = decoded(body, SHAPES, "a vote")
    if not isinstance(found, OF_VOTERS):
        raise Malformed(f"a voter says no {type(found).__name__.lower()}")
    return found


def decoded(body: Body, shapes: Sequence[tuple[type[Any], Made]], what: str) -> Any:
    """`what` its kinds are called.  Malformed, and no other error, says what is wrong."""
    values = unpacked(body)
    number = values.pop(0) if type(values) is list and values else None
    if type(number) is not int or not 0 <= number < len(shapes):
        raise Malformed(f"{what} of kind {number!r:.40}")
    kind, shape = shapes[number]
    try:
        return shape.read(values)
    except Malformed as error:
        raise Malformed(f"{kind.__name__.lower()}: {error}") from None


def unpacked(body: Body) -> Any:
    if len(body) > BYTES_MAX:
        raise Malformed(f"a vote of {len(body)} bytes")
    try:
        return msgpack.unpackb(
            body, max_array_len=COPIES_MAX, max_map_len=0, max_ext_len=0, max_str_len=BYTES_MAX,
            max_bin_len=BYTES_MAX,
        )  # fmt: skip
    except _NOT_MESSAGEPACK as error:
        raise Malformed(f"a vote that is not MessagePack: {error}") from None


def text_of(ledger: Ledger) -> str:
    """For an engine, and for people who look into it."""
    LEDGER.write(ledger)
    return json.dumps(asdict(ledger))


def ledger_of(text: str) -> Ledger:
    """Malformed if it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"a ledger that is not JSON: {error}") from None
    ledger: Ledger = LEDGER.read(value)
    return ledger
