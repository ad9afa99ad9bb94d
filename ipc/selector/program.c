/* The program of a selector (ipc/selector/opcodes.py), checked: so running it checks nothing
 * again. */

#define _GNU_SOURCE

#include "base/base.h"
#include "selector/selector.h"
#include "selector/value.h"

/* What an instruction takes from the stack; all but the skips leave one value. */
static const int8_t TAKES[OP_OPCODES] = {
    [OP_ADD] = 2,      [OP_SUBTRACT] = 2, [OP_MULTIPLY] = 2, [OP_DIVIDE] = 2,
    [OP_NEGATE] = 1,   [OP_EQUAL] = 2,    [OP_UNEQUAL] = 2,  [OP_LESS] = 2,
    [OP_AT_MOST] = 2,  [OP_GREATER] = 2,  [OP_AT_LEAST] = 2, [OP_BETWEEN] = 3,
    [OP_IN] = 1,       [OP_LIKE] = 1,     [OP_IS_NULL] = 1,  [OP_NOT] = 1,
    [OP_AND] = 2,      [OP_OR] = 2,       [OP_SKIP_IF_FALSE] = 1, [OP_SKIP_IF_TRUE] = 1,
};

/* How long its operands are, -1 if they are not all there; `left` bytes follow the opcode. */
static int64_t operands_bytes(uint8_t opcode, const uint8_t *at, int64_t left)
{
    int64_t bytes = 0;
    switch (opcode) {
    case OP_INTEGER:
    case OP_DOUBLE:
        bytes = 8;
        break;
    case OP_NAME:
        bytes = 1;
        break;
    case OP_SKIP_IF_FALSE:
    case OP_SKIP_IF_TRUE:
        bytes = 2;
        break;
    case OP_TEXT:
    case OP_IN:
    case OP_LIKE:
        bytes = left < 2 ? 2 : 2 + short_at(at);
        break;
    }
    return bytes <= left ? bytes : -1;
}

static bool constants_are_good(const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        uint8_t opcode = *at++;
        int64_t operands = operands_bytes(opcode, at, end - at);
        if (operands < 0 || (opcode != OP_INTEGER && opcode != OP_DOUBLE && opcode != OP_TEXT))
            return false;
        at += operands;
    }
    return true;
}

/* Where the instructions start, NULL if the names in front of them are not good. */
static const uint8_t *instructions(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 2 || at[0] != OP_VERSION || at[1] > OP_NAMES_MAX)
        return NULL;
    int64_t names = at[1];
    for (at += 2; names; names--) {
        if (end - at < 3 || at[0] >= OP_SOURCES || short_at(at + 1) > end - at - 3)
            return NULL;
        at += 3 + short_at(at + 1);
    }
    return at;
}

/* A skip that is not over yet: the stack must be as deep at its target as it is here. */
typedef struct skip {
    const uint8_t *target;
    int64_t depth;
} skip;

int64_t sb_selector_check(const void *program, int64_t bytes)
{
    const uint8_t *at = program, *end = at + bytes;
    int64_t depth = 0, open = 0, likes = 0, names;
    skip skips[OP_SKIPS_MAX];
    if (bytes < 2 || bytes > OP_PROGRAM_BYTES_MAX)
        return SB_INVALID;
    names = at[1];
    if (!(at = instructions(at, end)))
        return SB_INVALID;
    for (;;) {
        if (open && skips[open - 1].target == at && skips[--open].depth != depth)
            return SB_INVALID;
        if (at == end)
            return depth == 1 && !open ? SB_OK : SB_INVALID;
        uint8_t opcode = *at++;
        int64_t operands = operands_bytes(opcode, at, end - at);
        if (opcode == 0 || opcode >= OP_OPCODES || operands < 0 || depth < TAKES[opcode])
            return SB_INVALID;
        if (opcode == OP_NAME && at[0] >= names)
            return SB_INVALID;
        if (opcode == OP_IN && !constants_are_good(at + 2, at + operands))
            return SB_INVALID;
        if (opcode == OP_LIKE &&
            (++likes > OP_LIKES_MAX || !pattern_is_good(at + 2, operands - 2)))
            return SB_INVALID;
        depth += 1 - TAKES[opcode];
        if (depth > OP_STACK_MAX)
            return SB_INVALID;
        if (opcode == OP_SKIP_IF_FALSE || opcode == OP_SKIP_IF_TRUE) {
            /* forwards, and inside of the skips that are open: so none ends in an operand */
            const skip made = {at + 2 + short_at(at), depth};
            const uint8_t *limit = open ? skips[open - 1].target : end;
            bool same = open && made.target == limit;
            if (made.target > limit || (same && skips[open - 1].depth != depth))
                return SB_INVALID;
            if (!same && open == OP_SKIPS_MAX)
                return SB_INVALID;
            if (!same)
                skips[open++] = made;
        }
        at += operands;
        if (open && at > skips[open - 1].target)
            return SB_INVALID;
    }
}
