"""What a selector reckons with: values of three words (opcodes.py), and the operators on them.

    kind           NO, YES, NOTHING; AN_INTEGER, A_DOUBLE, A_TEXT; ANOTHER
    VALUE_AT       the integer; the bits of the double; the address of the text
    VALUE_LENGTH_AT                                     and its length

What is known of a condition is its kind alone: it holds, it does not, or that is unknown.  What is
no condition counts as unknown there.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    difference_overflows,
    load,
    load_byte,
    product_overflows,
    real_add,
    real_divide,
    real_equal,
    real_less,
    real_multiply,
    real_of,
    real_widened,
    store,
    sum_overflows,
)
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.opcodes import (
    A_DOUBLE,
    A_TEXT,
    ADD,
    AN_INTEGER,
    ANOTHER,
    AT_LEAST,
    AT_MOST,
    DIVIDE,
    EQUAL,
    GREATER,
    LESS,
    MULTIPLY,
    NO,
    NOTHING,
    SUBTRACT,
    UNEQUAL,
    VALUE_AT,
    VALUE_LENGTH_AT,
    YES,
)
from shmbroker.core.packed import (
    DOUBLE,
    FALSE,
    FLOAT,
    INT8,
    INT64,
    NIL,
    TRUE,
    UINT64,
    big_endian,
    is_string,
    length_size,
    map_check,
    map_find,
    object_end,
)
from shmbroker.core.span import span_equals

SIGN = -(1 << 63)

BELOW = 1
SAME = 2
ABOVE = 4
UNORDERED = 8
"""Of doubles, if one of them is no number."""

ACCEPTS = (
    SAME
    | (BELOW | ABOVE | UNORDERED) << 4 * (UNEQUAL - EQUAL)
    | BELOW << 4 * (LESS - EQUAL)
    | (BELOW | SAME) << 4 * (AT_MOST - EQUAL)
    | ABOVE << 4 * (GREATER - EQUAL)
    | (ABOVE | SAME) << 4 * (AT_LEAST - EQUAL)
)
"""Four bits for each comparison: with which order it holds."""


# --- values ---------------------------------------------------------------------------------------


@kernel
def value_put(at: int, kind: int, content: int) -> int:
    store(at, kind)
    return store(at + VALUE_AT, content)


@kernel
def text_put(at: int, text: int, length: int) -> int:
    value_put(at, A_TEXT, text)
    return store(at + VALUE_LENGTH_AT, length)


@kernel
def value_copy(to: int, value: int) -> int:
    value_put(to, load(value), load(value + VALUE_AT))
    return store(to + VALUE_LENGTH_AT, load(value + VALUE_LENGTH_AT))


@kernel
def is_number(kind: int) -> int:
    return int(kind == AN_INTEGER or kind == A_DOUBLE)


@kernel
def real_in(value: int) -> int:
    """The double that a number is, or is nearest to."""
    if load(value) == AN_INTEGER:
        return real_of(load(value + VALUE_AT))
    return load(value + VALUE_AT)


# --- what a message has ---------------------------------------------------------------------------


@cold
def number_read(kind: int, at: int, value: int) -> int:
    """A number of this kind, whose bytes are here."""
    bits = big_endian(at, 1 << (kind & 3))
    if kind == FLOAT:
        return value_put(value, A_DOUBLE, real_widened(bits))
    if kind == DOUBLE:
        return value_put(value, A_DOUBLE, bits)
    if kind == UINT64 and bits < 0:  # beyond an integer: half of it, and what is left over, doubled
        half = real_of(((bits >> 1) & ~SIGN) | (bits & 1))
        return value_put(value, A_DOUBLE, real_add(half, half))
    if kind >= INT8 and kind < INT64 and bits >> ((8 << (kind & 3)) - 1):
        bits -= 1 << (8 << (kind & 3))
    return value_put(value, AN_INTEGER, bits)


@kernel
def value_read(at: int, end: int, value: int) -> int:
    """What the object is that was seen to end here."""
    kind = load_byte(at)
    at += 1
    if kind < 0x80 or kind >= 0xE0:
        value_put(value, AN_INTEGER, kind if kind < 0x80 else kind - 0x100)
    elif is_string(kind):
        at += length_size(kind)
        text_put(value, at, max(end - at, 0))
    elif kind == FALSE or kind == TRUE:
        store(value, YES if kind == TRUE else NO)
    elif kind >= FLOAT and kind <= INT64 and end - at >= 1 << (kind & 3):
        number_read(kind, at, value)
    else:
        store(value, NOTHING if kind == NIL else ANOTHER)
    return 0


@exported_cold
def property_find(properties: int, length: int, name: int, name_length: int, found: int) -> int:
    """Find a property of a message, of kind NOTHING if it has none: 1, or 0 if that is no map."""
    end = properties + length
    if length < 0 or not map_check(properties, end):
        return 0
    at = map_find(properties, end, name, name + name_length)
    if at < 0:
        store(found, NOTHING)
    else:
        value_read(at, object_end(at, end), found)
    return 1


# --- arithmetic -----------------------------------------------------------------------------------


@kernel
def integers_divide(left: int, right: int, value: int) -> int:
    """Towards zero; by zero it is unknown."""
    if right == 0:
        return store(value, NOTHING)
    if right == -1:
        if left == SIGN:
            return value_put(value, A_DOUBLE, real_of(left) ^ SIGN)
        return store(value + VALUE_AT, -left)
    quotient = left // right
    if (left ^ right) < 0 and quotient * right != left:
        quotient += 1
    return store(value + VALUE_AT, quotient)


@kernel
def reals_calculate(opcode: int, left: int, right: int, value: int) -> int:
    if opcode == ADD:
        result = real_add(left, right)
    elif opcode == SUBTRACT:
        result = real_add(left, right ^ SIGN)
    elif opcode == MULTIPLY:
        result = real_multiply(left, right)
    else:
        result = real_divide(left, right)
    return value_put(value, A_DOUBLE, result)


@kernel
def integers_calculate(opcode: int, left: int, right: int, value: int) -> int:
    """A double where the result is no word."""
    if opcode == ADD and not sum_overflows(left, right):
        return store(value + VALUE_AT, left + right)
    if opcode == SUBTRACT and not difference_overflows(left, right):
        return store(value + VALUE_AT, left - right)
    if opcode == MULTIPLY and not product_overflows(left, right):
        return store(value + VALUE_AT, left * right)
    if opcode == DIVIDE:
        return integers_divide(left, right, value)
    return reals_calculate(opcode, real_of(left), real_of(right), value)


@cold
def calculate(opcode: int, left: int, right: int) -> int:
    """The result replaces the left one."""
    first, second = load(left), load(right)
    if first == AN_INTEGER and second == AN_INTEGER:
        return integers_calculate(opcode, load(left + VALUE_AT), load(right + VALUE_AT), left)
    if not is_number(first) or not is_number(second):
        return store(left, NOTHING)
    return reals_calculate(opcode, real_in(left), real_in(right), left)


@cold
def negate(value: int) -> int:
    if load(value) == A_DOUBLE:
        return store(value + VALUE_AT, load(value + VALUE_AT) ^ SIGN)
    if load(value) == AN_INTEGER:
        return integers_calculate(SUBTRACT, 0, load(value + VALUE_AT), value)
    return store(value, NOTHING)


# --- conditions -----------------------------------------------------------------------------------


@kernel
def order_of(left: int, right: int) -> int:
    if left == right:
        return SAME
    return BELOW if left < right else ABOVE


@kernel
def order_of_reals(left: int, right: int) -> int:
    if real_equal(left, right):
        return SAME
    if real_less(left, right):
        return BELOW
    return ABOVE if real_less(right, left) else UNORDERED


@kernel
def accepted(opcode: int, order: int) -> int:
    return int((ACCEPTS >> 4 * (opcode - EQUAL)) & order != 0)


@kernel
def compared(opcode: int, left: int, right: int) -> int:
    """Only numbers have an order."""
    first, second = load(left), load(right)
    if first == AN_INTEGER and second == AN_INTEGER:
        return accepted(opcode, order_of(load(left + VALUE_AT), load(right + VALUE_AT)))
    if is_number(first) and is_number(second):
        return accepted(opcode, order_of_reals(real_in(left), real_in(right)))
    if opcode > UNEQUAL:
        return NOTHING
    if first == A_TEXT and second == A_TEXT:
        length = load(left + VALUE_LENGTH_AT)
        same = int(length == load(right + VALUE_LENGTH_AT))
        if same:
            same = span_equals(load(left + VALUE_AT), load(right + VALUE_AT), length)
    elif first <= YES and second <= YES:
        same = int(first == second)
    else:
        return NOTHING
    return int(same == int(opcode == EQUAL))


@kernel
def both(left: int, right: int) -> int:
    if left == NO or right == NO:
        return NO
    return YES if left == YES and right == YES else NOTHING


@kernel
def either(left: int, right: int) -> int:
    if left == YES or right == YES:
        return YES
    return NO if left == NO and right == NO else NOTHING


@kernel
def inverted(condition: int) -> int:
    return 1 - condition if condition <= YES else NOTHING
