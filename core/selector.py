"""Selectors: the machine that runs the program of one (opcodes.py) on a message.

A program is private, and was checked (program.py): running it checks nothing again.  The message
may be in nobody's hand yet, and change meanwhile (names.py): then the answer is noise, and whoever
takes a message by that finds out by its word.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, load_byte, store
from shmbroker.core.kernel import cold, exported, kernel
from shmbroker.core.like import is_like
from shmbroker.core.names import names_find, names_read, short_at
from shmbroker.core.opcodes import (
    A_DOUBLE,
    A_TEXT,
    ADD,
    AN_INTEGER,
    AND,
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    DIVIDE,
    DOUBLE,
    EQUAL,
    FALSE,
    GREATER,
    IN,
    INTEGER,
    IS_NULL,
    LESS,
    LIKE,
    MULTIPLY,
    NAME,
    NAME_ENTRY_BYTES,
    NEGATE,
    NO,
    NOT,
    NOTHING,
    OR,
    ROOM_BITS_AT,
    ROOM_STACK_AT,
    SKIP_IF_TRUE,
    SUBTRACT,
    TEXT,
    TRUE,
    UNEQUAL,
    UNSOUGHT,
    VALUE_AT,
    VALUE_BYTES,
    VALUE_LENGTH_AT,
    YES,
)
from shmbroker.core.value import (
    both,
    calculate,
    compared,
    either,
    inverted,
    negate,
    text_put,
    value_copy,
    value_put,
)


@kernel
def word_at(at: int) -> int:
    """A word in a program."""
    low = short_at(at) | short_at(at + 2) << 16
    return low | short_at(at + 4) << 32 | short_at(at + 6) << 48


@kernel
def constant(opcode: int, at: int, value: int) -> int:
    """The constant whose opcode this is and whose operand is here: where the next one is."""
    if opcode == TEXT:
        length = short_at(at)
        text_put(value, at + 2, length)
        return at + 2 + length
    value_put(value, AN_INTEGER if opcode == INTEGER else A_DOUBLE, word_at(at))
    return at + 8


@cold
def is_in(value: int, at: int, end: int, each: int) -> int:
    """Whether a value is one of these constants; with memory for one value."""
    found = NO
    while at < end and found != YES:
        at = constant(load_byte(at), at + 1, each)
        found = either(found, compared(EQUAL, value, each))
    return found


@kernel
def like(value: int, pattern: int, length: int, bits: int) -> int:
    if load(value) != A_TEXT:
        return NOTHING
    return is_like(load(value + VALUE_AT), load(value + VALUE_LENGTH_AT), pattern, length, bits)


@kernel
def is_comparison(opcode: int) -> int:
    ordered = opcode == LESS or opcode == AT_MOST or opcode == GREATER or opcode == AT_LEAST
    return int(ordered or opcode == EQUAL or opcode == UNEQUAL)


@kernel
def is_between(top: int) -> int:
    lowest, highest = top + VALUE_BYTES, top + 2 * VALUE_BYTES
    return both(compared(AT_LEAST, top, lowest), compared(AT_MOST, top, highest))


@exported
def selector_run(program: int, length: int, subject: int, memory: int) -> int:
    """Whether the program selects the message, with OP_ROOM_BYTES of memory to do it in."""
    end = program + length
    at = names_read(memory, program, subject)
    top = memory + ROOM_STACK_AT - VALUE_BYTES
    while at < end:
        opcode = load_byte(at)
        at += 1
        if opcode == FALSE or opcode == TRUE:
            top += VALUE_BYTES
            store(top, YES if opcode == TRUE else NO)
        elif opcode == INTEGER or opcode == DOUBLE or opcode == TEXT:
            top += VALUE_BYTES
            at = constant(opcode, at, top)
        elif opcode == NAME:
            top += VALUE_BYTES
            name = memory + load_byte(at) * NAME_ENTRY_BYTES
            at += 1
            if load(name) == UNSOUGHT:
                names_find(memory, load_byte(program + 1), subject)
            value_copy(top, name)
        elif opcode == ADD or opcode == SUBTRACT or opcode == MULTIPLY or opcode == DIVIDE:
            top -= VALUE_BYTES
            calculate(opcode, top, top + VALUE_BYTES)
        elif opcode == NEGATE:
            negate(top)
        elif is_comparison(opcode):
            top -= VALUE_BYTES
            store(top, compared(opcode, top, top + VALUE_BYTES))
        elif opcode == BETWEEN:
            top -= 2 * VALUE_BYTES
            store(top, is_between(top))
        elif opcode == IN:
            operands_end = at + 2 + short_at(at)
            store(top, is_in(top, at + 2, operands_end, top + VALUE_BYTES))
            at = operands_end
        elif opcode == LIKE:
            bytes_of_pattern = short_at(at)
            store(top, like(top, at + 2, bytes_of_pattern, memory + ROOM_BITS_AT))
            at += 2 + bytes_of_pattern
        elif opcode == IS_NULL:
            store(top, YES if load(top) == NOTHING else NO)
        elif opcode == NOT:
            store(top, inverted(load(top)))
        elif opcode == AND:
            top -= VALUE_BYTES
            store(top, both(load(top), load(top + VALUE_BYTES)))
        elif opcode == OR:
            top -= VALUE_BYTES
            store(top, either(load(top), load(top + VALUE_BYTES)))
        else:
            skips = load(top) == (YES if opcode == SKIP_IF_TRUE else NO)
            at += 2 + (short_at(at) if skips else 0)
    return int(load(top) == YES)
