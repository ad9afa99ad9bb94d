"""Headers: a binding's arguments against a message's properties, both MessagePack maps.

An argument holds if the message has its key with the very same bytes as value; if the argument is
nil, the key only has to be there.  Arguments that start with `x-` say how to match, as in AMQP, and
are left out.  With no arguments (left), all of them hold and not any.
"""

from __future__ import annotations

from shmbroker.core.atomics import load_byte
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.packed import NIL, map_check, map_find, map_start, object_end, string_start
from shmbroker.core.span import span_equals

LETTER_X = 0x78
HYPHEN = 0x2D


@kernel
def argument_says_how(name: int, name_end: int) -> int:
    if name_end - name < 2:
        return 0
    return int(load_byte(name) == LETTER_X and load_byte(name + 1) == HYPHEN)


@kernel
def argument_holds(
    name: int, value: int, value_end: int, properties: int, properties_end: int
) -> int:
    """Whether the message has this key (the name ends where its value starts) and value."""
    found = map_find(properties, properties_end, name, value)
    if found < 0:
        return 0
    if load_byte(value) == NIL:
        return 1
    length = value_end - value
    if object_end(found, properties_end) - found != length:
        return 0
    return span_equals(found, value, length)


@cold
def headers_hold(
    arguments: int, arguments_length: int, properties: int, properties_length: int, any: int
) -> int:
    """headers_match for properties that were checked."""
    end = arguments + arguments_length
    if not map_check(arguments, end):
        return 0
    key = map_start(arguments, end)
    while key >= 0 and key < end:
        value = object_end(key, end)
        value_end = object_end(value, end)
        name = string_start(key, end)
        # the catalog may be changed while we read it: what was checked is no promise
        if name < 0 or value < 0 or value_end < 0:
            return 0
        if not argument_says_how(name, value):
            holds = argument_holds(
                name, value, value_end, properties, properties + properties_length
            )
            if holds == int(any != 0):
                return holds
        key = value_end
    return int(any == 0)


@exported_cold
def headers_match(
    arguments: int, arguments_length: int, properties: int, properties_length: int, any: int
) -> int:
    """1 if the arguments hold for the properties: all of them, or any; 0 if not, or malformed."""
    if arguments_length < 0 or properties_length < 0:
        return 0
    if not map_check(properties, properties + properties_length):
        return 0
    return headers_hold(arguments, arguments_length, properties, properties_length, any)
