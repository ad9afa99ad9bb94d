"""The names that a selector asks for, looked up in a message: its headers, and its properties,
which are a MessagePack map.

The message may be in nobody's hand yet, and its memory used again at any moment: what is read of
it then is noise (packed.py).  Headers are known at once; the properties are looked through, once
for all, when the first of them is asked for.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, load_byte, store
from shmbroker.core.kernel import cold, kernel
from shmbroker.core.layout import (
    SUBJECT_BODY_LENGTH,
    SUBJECT_DELIVERIES,
    SUBJECT_EXPIRY,
    SUBJECT_KEY,
    SUBJECT_KEY_LENGTH,
    SUBJECT_PRIORITY,
    SUBJECT_PROPERTIES,
    SUBJECT_PROPERTIES_LENGTH,
    SUBJECT_PUBLISHED,
)
from shmbroker.core.opcodes import (
    AN_INTEGER,
    FROM_DELIVERIES,
    FROM_DELIVERY_COUNT,
    FROM_EXPIRY,
    FROM_KEY,
    FROM_PRIORITY,
    FROM_PUBLISHED,
    FROM_SIZE,
    NAME_ENTRY_BYTES,
    NAME_LENGTH_AT,
    NAME_TEXT_AT,
    NOTHING,
    UNSOUGHT,
)
from shmbroker.core.packed import map_start, object_end, string_start
from shmbroker.core.span import span_equals
from shmbroker.core.value import text_put, value_put, value_read

MILLISECOND_NS = 1_000_000


@kernel
def short_at(at: int) -> int:
    """A number of two bytes in a program."""
    return load_byte(at) | load_byte(at + 1) << 8


@kernel
def time_put(value: int, at_ns: int) -> int:
    if at_ns == 0:
        return 0
    return value_put(value, AN_INTEGER, at_ns // MILLISECOND_NS)


@cold
def header_put(source: int, subject: int, value: int) -> int:
    """What the message has under this header, if it has it."""
    if source == FROM_KEY and load(subject + SUBJECT_KEY_LENGTH) > 0:
        text_put(value, load(subject + SUBJECT_KEY), load(subject + SUBJECT_KEY_LENGTH))
    elif source == FROM_SIZE:
        value_put(value, AN_INTEGER, load(subject + SUBJECT_BODY_LENGTH))
    elif source == FROM_PRIORITY:
        value_put(value, AN_INTEGER, load(subject + SUBJECT_PRIORITY))
    elif source == FROM_DELIVERIES:
        value_put(value, AN_INTEGER, load(subject + SUBJECT_DELIVERIES))
    elif source == FROM_DELIVERY_COUNT:
        value_put(value, AN_INTEGER, load(subject + SUBJECT_DELIVERIES) + 1)
    elif source == FROM_PUBLISHED:
        time_put(value, load(subject + SUBJECT_PUBLISHED))
    elif source == FROM_EXPIRY:
        time_put(value, load(subject + SUBJECT_EXPIRY))
    return 0


@kernel
def names_read(names: int, program: int, subject: int) -> int:
    """Read the table of names at the start of a program: where its instructions start."""
    at = program + 2
    for _ in range(load_byte(program + 1)):
        source, length = load_byte(at), short_at(at + 1)
        at += 3
        store(names, UNSOUGHT if length > 0 else NOTHING)
        store(names + NAME_TEXT_AT, at)
        store(names + NAME_LENGTH_AT, length)
        if source:
            header_put(source, subject, names)
        at += length
        names += NAME_ENTRY_BYTES
    return at


@kernel
def name_is(name: int, key: int, length: int) -> int:
    if load(name) != UNSOUGHT or load(name + NAME_LENGTH_AT) != length:
        return 0
    return span_equals(load(name + NAME_TEXT_AT), key, length)


@kernel
def names_offer(names: int, names_end: int, key: int, length: int, value: int, end: int) -> int:
    """How many are called like this key: the first of equal keys counts."""
    found = 0
    each = names
    while each < names_end:
        if name_is(each, key, length):
            value_read(value, end, each)
            found += 1
        each += NAME_ENTRY_BYTES
    return found


@cold
def properties_look(names: int, names_end: int, unsought: int, at: int, end: int) -> int:
    """Look for all that is not known yet among the properties."""
    key = map_start(at, end)
    while unsought > 0 and key >= 0 and key < end:
        value, start = object_end(key, end), string_start(key, end)
        after = object_end(value, end)
        if start < 0 or after < 0:
            return 0
        unsought -= names_offer(names, names_end, start, value - start, value, after)
        key = after
    return 0


@cold
def names_find(names: int, count: int, subject: int) -> int:
    """Nothing is unsought afterwards."""
    names_end = names + count * NAME_ENTRY_BYTES
    unsought = 0
    each = names
    while each < names_end:
        unsought += int(load(each) == UNSOUGHT)
        each += NAME_ENTRY_BYTES
    properties = load(subject + SUBJECT_PROPERTIES)
    length = load(subject + SUBJECT_PROPERTIES_LENGTH)
    if length > 0:
        properties_look(names, names_end, unsought, properties, properties + length)
    each = names
    while each < names_end:
        if load(each) == UNSOUGHT:
            store(each, NOTHING)
        each += NAME_ENTRY_BYTES
    return 0
