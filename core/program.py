"""The program of a selector (opcodes.py), checked: so running it checks nothing again.

A skip that is not over yet is two words: its target, and how deep the stack must be there, which
is as deep as it is here.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, load_byte, store
from shmbroker.core.codes import INVALID, OK
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.like import pattern_is_good
from shmbroker.core.names import short_at
from shmbroker.core.opcodes import (
    ADD,
    BETWEEN,
    DOUBLE,
    IN,
    INTEGER,
    IS_NULL,
    LIKE,
    LIKES_MAX,
    NAME,
    NAMES_MAX,
    NEGATE,
    NOT,
    OPCODES,
    PROGRAM_BYTES_MAX,
    SKIP_IF_FALSE,
    SKIP_IF_TRUE,
    SKIPS_MAX,
    SOURCES,
    STACK_MAX,
    TEXT,
    VERSION,
)

SKIP_DEPTH_AT = 8
SKIP_BYTES = 16


@kernel
def is_skip(opcode: int) -> int:
    return int(opcode in (SKIP_IF_FALSE, SKIP_IF_TRUE))


@kernel
def values_taken(opcode: int) -> int:
    """What an instruction takes from the stack; all but the skips leave one value."""
    if opcode < ADD:
        return 0
    if opcode == BETWEEN:
        return 3
    alone = opcode in (NEGATE, IN, LIKE, IS_NULL)
    return 1 if alone or opcode == NOT or is_skip(opcode) else 2


@kernel
def operands_end(opcode: int, at: int, end: int) -> int:
    """Where the operands of an instruction end, which begin here; -1 if they are not all there."""
    if opcode in (INTEGER, DOUBLE):
        at += 8
    elif opcode == NAME:
        at += 1
    elif is_skip(opcode):
        at += 2
    elif opcode in (TEXT, IN, LIKE):
        at += 2 if end - at < 2 else 2 + short_at(at)
    return at if at <= end else -1


@kernel
def constants_are_good(at: int, end: int) -> int:
    while at < end:
        opcode = load_byte(at)
        at = operands_end(opcode, at + 1, end)
        if at < 0 or (opcode != INTEGER and opcode != DOUBLE and opcode != TEXT):
            return 0
    return 1


@kernel
def instructions_start(program: int, end: int) -> int:
    """Behind the names, -1 if these are not good."""
    if load_byte(program) != VERSION or load_byte(program + 1) > NAMES_MAX:
        return -1
    at = program + 2
    for _ in range(load_byte(program + 1)):
        if end - at < 3 or load_byte(at) >= SOURCES or short_at(at + 1) > end - at - 3:
            return -1
        at += 3 + short_at(at + 1)
    return at


@kernel
def operands_are_good(opcode: int, at: int, end: int, names: int) -> int:
    if opcode == NAME:
        return int(load_byte(at) < names)
    if opcode == IN:
        return constants_are_good(at + 2, end)
    if opcode == LIKE:
        return pattern_is_good(at + 2, end)
    return 1


@kernel
def skip_begin(skips: int, first: int, target: int, end: int, depth: int) -> int:
    """The last of the open skips, with this one; -1 if it is not good.

    It leads forwards, and inside of those that are open: so none ends in an operand.
    """
    limit = load(skips) if skips >= first else end
    if target > limit:
        return -1
    if skips >= first and target == limit:
        return skips if load(skips + SKIP_DEPTH_AT) == depth else -1
    skips += SKIP_BYTES
    if skips - first >= SKIPS_MAX * SKIP_BYTES:
        return -1
    store(skips, target)
    store(skips + SKIP_DEPTH_AT, depth)
    return skips


@cold
def instructions_are_good(at: int, end: int, names: int, memory: int) -> int:
    depth, likes, skips = 0, 0, memory - SKIP_BYTES
    while at < end:
        opcode = load_byte(at)
        operands = at + 1
        at = operands_end(opcode, operands, end)
        if opcode == 0 or opcode >= OPCODES or at < 0 or depth < values_taken(opcode):
            return 0
        likes += int(opcode == LIKE)
        if likes > LIKES_MAX or not operands_are_good(opcode, operands, at, names):
            return 0
        depth += 1 - values_taken(opcode)
        if depth > STACK_MAX:
            return 0
        if is_skip(opcode):
            skips = skip_begin(skips, memory, at + short_at(operands), end, depth)
            if skips < 0:
                return 0
        if skips >= memory and at >= load(skips):
            if at > load(skips) or load(skips + SKIP_DEPTH_AT) != depth:
                return 0
            skips -= SKIP_BYTES
    return int(depth == 1 and skips < memory)


@exported_cold
def program_check(program: int, length: int, memory: int) -> int:
    """Whether a program may be run, with OP_ROOM_BYTES of memory to find out: OK or INVALID."""
    if length < 2 or length > PROGRAM_BYTES_MAX:
        return INVALID
    end = program + length
    at = instructions_start(program, end)
    if at < 0 or not instructions_are_good(at, end, load_byte(program + 1), memory):
        return INVALID
    return OK
