/* Selectors: the machine that runs the program of one (ipc/selector/opcodes.py) on a message.
 *
 * A program is private, and was checked (program.c): running it checks nothing again.  The message
 * may be in nobody's hand yet, and change meanwhile (names.c): then the answer is noise, and
 * whoever takes a message by that finds out by its word. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "selector/selector.h"
#include "selector/value.h"

static int64_t integer_at(const uint8_t *at)
{
    int64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static double double_at(const uint8_t *at)
{
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* --- operators -------------------------------------------------------------------------------- */

static value integers(uint8_t opcode, int64_t left, int64_t right)
{
    int64_t result;
    switch (opcode) {
    case OP_ADD:
        return __builtin_add_overflow(left, right, &result) ? real((double)left + (double)right)
                                                            : integer(result);
    case OP_SUBTRACT:
        return __builtin_sub_overflow(left, right, &result) ? real((double)left - (double)right)
                                                            : integer(result);
    case OP_MULTIPLY:
        return __builtin_mul_overflow(left, right, &result) ? real((double)left * (double)right)
                                                            : integer(result);
    default:
        if (right == 0)
            return UNKNOWN;
        return left == INT64_MIN && right == -1 ? real(-(double)left) : integer(left / right);
    }
}

static value calculated(uint8_t opcode, value left, value right)
{
    if (!is_number(left) || !is_number(right))
        return UNKNOWN;
    if (left.kind == INTEGER && right.kind == INTEGER)
        return integers(opcode, left.integer, right.integer);
    double first = real_of(left), second = real_of(right);
    switch (opcode) {
    case OP_ADD: return real(first + second);
    case OP_SUBTRACT: return real(first - second);
    case OP_MULTIPLY: return real(first * second);
    default: return real(first / second);
    }
}

static value negated(value number)
{
    if (number.kind == DOUBLE)
        return real(-number.number);
    return number.kind == INTEGER ? integers(OP_SUBTRACT, 0, number.integer) : UNKNOWN;
}

#define COMPARED(opcode, left, right) \
    ((opcode) == OP_EQUAL     ? (left) == (right) \
     : (opcode) == OP_UNEQUAL ? (left) != (right) \
     : (opcode) == OP_LESS    ? (left) < (right) \
     : (opcode) == OP_AT_MOST ? (left) <= (right) \
     : (opcode) == OP_GREATER ? (left) > (right) \
                              : (left) >= (right))

static value compared(uint8_t opcode, value left, value right)
{
    if (left.kind == INTEGER && right.kind == INTEGER)
        return truth(COMPARED(opcode, left.integer, right.integer));
    if (is_number(left) && is_number(right)) {
        double first = real_of(left), second = real_of(right);
        return truth(COMPARED(opcode, first, second));
    }
    if (opcode > OP_UNEQUAL || left.kind != right.kind)
        return UNKNOWN;
    bool equal;
    if (left.kind == STRING)
        equal = left.length == right.length && memcmp(left.text, right.text, left.length) == 0;
    else if (left.kind == TRUTH)
        equal = left.integer == right.integer;
    else
        return UNKNOWN;
    return truth(equal == (opcode == OP_EQUAL));
}

static value both(value left, value right)
{
    if (is_truth(left, false) || is_truth(right, false))
        return truth(false);
    return is_truth(left, true) && is_truth(right, true) ? truth(true) : UNKNOWN;
}

static value either(value left, value right)
{
    if (is_truth(left, true) || is_truth(right, true))
        return truth(true);
    return is_truth(left, false) && is_truth(right, false) ? truth(false) : UNKNOWN;
}

/* The constant at a place, and where the next instruction is. */
static value constant(const uint8_t **at)
{
    const uint8_t *operand = *at + 1;
    uint8_t opcode = **at;
    *at = operand + (opcode == OP_TEXT ? 2 + short_at(operand) : 8);
    if (opcode == OP_TEXT)
        return text(operand + 2, short_at(operand));
    return opcode == OP_INTEGER ? integer(integer_at(operand)) : real(double_at(operand));
}

static value is_in(value left, const uint8_t *at, const uint8_t *end)
{
    value found = truth(false);
    while (at < end && !is_truth(found, true))
        found = either(found, compared(OP_EQUAL, left, constant(&at)));
    return found;
}

static value like(value left, const uint8_t *pattern, int64_t length)
{
    return left.kind == STRING ? truth(is_like(left.text, left.length, pattern, length)) : UNKNOWN;
}

static value inverted(value each)
{
    return each.kind == TRUTH ? truth(!each.integer) : UNKNOWN;
}

/* --- the machine ------------------------------------------------------------------------------ */

_Static_assert(OP_TEXT == OP_INTEGER + 2 && OP_DIVIDE == OP_ADD + 3 &&
               OP_AT_LEAST == OP_EQUAL + 5, "these follow each other");

/* One switch decides: a second one costs a tenth of the time that a message takes. */
int64_t sb_selector_matches(const void *program, int64_t bytes, const sb_subject *subject)
{
    names known;
    value stack[OP_STACK_MAX], *top = stack - 1;
    const uint8_t *end = (const uint8_t *)program + bytes;
    const uint8_t *at = names_read(&known, program, subject);
    while (at < end) {
        uint8_t opcode = *at++;
        switch (opcode) {
        case OP_FALSE: *++top = truth(false); break;
        case OP_TRUE: *++top = truth(true); break;
        case OP_INTEGER ... OP_TEXT:
            at--;
            *++top = constant(&at);
            break;
        case OP_NAME:
            if (known.value[*at].kind == UNSOUGHT)
                names_find(&known, subject);
            *++top = known.value[*at++];
            break;
        case OP_ADD ... OP_DIVIDE:
            top--;
            top[0] = calculated(opcode, top[0], top[1]);
            break;
        case OP_NEGATE: top[0] = negated(top[0]); break;
        case OP_EQUAL ... OP_AT_LEAST:
            top--;
            top[0] = compared(opcode, top[0], top[1]);
            break;
        case OP_BETWEEN:
            top -= 2;
            top[0] = both(compared(OP_AT_LEAST, top[0], top[1]),
                          compared(OP_AT_MOST, top[0], top[2]));
            break;
        case OP_IN:
            top[0] = is_in(top[0], at + 2, at + 2 + short_at(at));
            at += 2 + short_at(at);
            break;
        case OP_LIKE:
            top[0] = like(top[0], at + 2, short_at(at));
            at += 2 + short_at(at);
            break;
        case OP_IS_NULL: top[0] = truth(top[0].kind == NOTHING); break;
        case OP_NOT: top[0] = inverted(top[0]); break;
        case OP_AND:
            top--;
            top[0] = both(top[0], top[1]);
            break;
        case OP_OR:
            top--;
            top[0] = either(top[0], top[1]);
            break;
        case OP_SKIP_IF_FALSE:
        case OP_SKIP_IF_TRUE:
            at += 2 + (is_truth(top[0], opcode == OP_SKIP_IF_TRUE) ? short_at(at) : 0);
            break;
        }
    }
    return is_truth(*top, true);
}

int64_t sb_selector_count(const void *program, int64_t bytes, const sb_subject *subjects,
                          int64_t count)
{
    int64_t selected = 0;
    for (int64_t each = 0; each < count; each++)
        selected += sb_selector_matches(program, bytes, &subjects[each]);
    return selected;
}

/* --- messages --------------------------------------------------------------------------------- */

int64_t sb_subject_of(const sb_message *message, sb_subject *subject)
{
    if (!message->chunk)
        return fail(SB_INVALID, "there is no message in this structure");
    int64_t flags = (message->mark >> L_MARK_FLAGS_SHIFT) & L_MARK_FLAGS_MASK;
    int64_t priority = (message->mark >> L_MARK_PRIORITY_SHIFT) & L_MARK_PRIORITY_MASK;
    *subject = (sb_subject){
        .body_length = message->length,
        .published_ns = sb_message_published_at(message),
        .priority = priority ? priority - 1 : L_LEVEL_DEFAULT,
        .deliveries = sb_message_deliveries(message),
    };
    int64_t expiry = flags & L_CHUNK_EXTENDED ? word_load(message->chunk, L_CHUNK_EXPIRY_AT) : 0;
    if (expiry > 0) /* people count from the epoch */
        subject->expiry_ns = realtime_ns() + (expiry - sb_system_clock());
    subject->key = sb_message_key(message, &subject->key_length);
    subject->properties = sb_message_properties(message, &subject->properties_length);
    return SB_OK;
}
