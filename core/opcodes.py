"""The program of a selector: ipc/selector/program.py writes it, core/program.py checks it,
core/selector.py runs it.

    0    version
    1    how many names, at most NAMES_MAX; for each of them
             source:8 | length:16 | name in UTF-8     the property that is meant, if any
    ...  instructions, to the end: an opcode of a byte, its operands; all numbers little-endian

A source that is a header comes first, and the property only if the message has no such header.

The machine has a stack of values: nothing (unknown, NULL), truth, integer, double, text, other.  An
instruction takes its operands from there and leaves its result; TRUE alone selects the message.

    FALSE, TRUE          push it
    INTEGER value:64     push it
    DOUBLE value:64      push it
    TEXT length:16 ...   push it
    NAME index:8         push what the message has under that name
    ADD ... DIVIDE       two numbers; NEGATE: one
    EQUAL ... AT_LEAST   two values; only numbers have an order
    BETWEEN              value, lowest, highest
    IN length:16 ...     one value; the operand is instructions that push constants
    LIKE length:16 ...   one text; ANY_CHARACTER and ANY_TEXT in the operand stand for _ and %
    IS_NULL              one value
    NOT, AND, OR         unknown as in SQL
    SKIP_IF_FALSE, SKIP_IF_TRUE distance:16
                         leave the value where it is; go on so many bytes further if it is so
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 1
PROGRAM_BYTES_MAX: Final = 1 << 16
NAMES_MAX: Final = 64
STACK_MAX: Final = 640  # 100 levels of nesting, on each 6 values that wait for the right side
# a LIKE may look at all of a text: these two bound what one message can cost
LIKES_MAX: Final = 64
PART_BYTES_MAX: Final = 64  # of a pattern, between two %, with a _ in it: bits of a word (like.py)
SKIPS_MAX: Final = 256  # that are not over yet: at most an OR and an AND on each level

FALSE: Final = 1
TRUE: Final = 2
INTEGER: Final = 3
DOUBLE: Final = 4
TEXT: Final = 5
NAME: Final = 6
ADD: Final = 7
SUBTRACT: Final = 8
MULTIPLY: Final = 9
DIVIDE: Final = 10
NEGATE: Final = 11
EQUAL: Final = 12
UNEQUAL: Final = 13
LESS: Final = 14
AT_MOST: Final = 15
GREATER: Final = 16
AT_LEAST: Final = 17
BETWEEN: Final = 18
IN: Final = 19
LIKE: Final = 20
IS_NULL: Final = 21
NOT: Final = 22
AND: Final = 23
OR: Final = 24
SKIP_IF_FALSE: Final = 25
SKIP_IF_TRUE: Final = 26
OPCODES: Final = 27

# bytes that UTF-8 does not have
ANY_CHARACTER: Final = 0xFE
ANY_TEXT: Final = 0xFF

FROM_PROPERTY: Final = 0
FROM_KEY: Final = 1
FROM_SIZE: Final = 2
FROM_PRIORITY: Final = 3
FROM_DELIVERIES: Final = 4
FROM_DELIVERY_COUNT: Final = 5
FROM_PUBLISHED: Final = 6
FROM_EXPIRY: Final = 7
SOURCES: Final = 8

# a value: its kind, what it is (a number, the bits of a double, the address of a text), its length
VALUE_AT: Final = 8
VALUE_LENGTH_AT: Final = 16  # of a text
VALUE_BYTES: Final = 24

# kinds of values; the first three are what is known of a condition
NO: Final = 0
YES: Final = 1
NOTHING: Final = 2
AN_INTEGER: Final = 3
A_DOUBLE: Final = 4
A_TEXT: Final = 5
ANOTHER: Final = 6  # that nothing can be done with
UNSOUGHT: Final = 7

# a name, while a message is looked at: its value, and the name itself
NAME_TEXT_AT: Final = VALUE_BYTES  # address
NAME_LENGTH_AT: Final = VALUE_BYTES + 8
NAME_ENTRY_BYTES: Final = VALUE_BYTES + 16

# the memory that it takes to run a program: names, the stack with room for one value more, and
# the bits of LIKE; to check one, the skips take less than that
ROOM_STACK_AT: Final = NAMES_MAX * NAME_ENTRY_BYTES
ROOM_BITS_AT: Final = ROOM_STACK_AT + (STACK_MAX + 1) * VALUE_BYTES
ROOM_BYTES: Final = ROOM_BITS_AT + 256 * 8

assert OPCODES == OR + 3
assert TEXT == INTEGER + 2
assert AT_LEAST == EQUAL + 5
assert SKIPS_MAX * 16 <= ROOM_BYTES
