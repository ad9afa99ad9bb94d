/* Selectors: the program of one (ipc/selector/opcodes.py), checked and run on a message.
 *
 * A program is private, and was checked: running it checks nothing again.  The properties are
 * neither: the message may be in nobody's hand yet, and its memory used again at any moment.  So
 * each byte of them that says how far to go is read once, and compared with the end before anybody
 * goes there.  What is read of a message that changed meanwhile is noise; whoever takes a message
 * by that finds out by its word. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "selector/selector.h"

/* --- the program ------------------------------------------------------------------------------ */

static int64_t short_at(const uint8_t *at)
{
    return at[0] | at[1] << 8;
}

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

/* --- values ----------------------------------------------------------------------------------- */

enum { NOTHING, TRUTH, INTEGER, DOUBLE, STRING, OTHER, UNSOUGHT };

typedef struct value {
    uint32_t kind;
    uint32_t length; /* of a text */
    union {
        int64_t integer; /* or a truth */
        double number;
        const uint8_t *text;
    };
} value;

static const value UNKNOWN = {.kind = NOTHING};

static value truth(bool holds)
{
    return (value){.kind = TRUTH, .integer = holds};
}

static value integer(int64_t number)
{
    return (value){.kind = INTEGER, .integer = number};
}

static value real(double number)
{
    return (value){.kind = DOUBLE, .number = number};
}

static value text(const void *bytes, int64_t length)
{
    return (value){.kind = STRING, .length = (uint32_t)length, .text = bytes};
}

static bool is_number(value each)
{
    return each.kind == INTEGER || each.kind == DOUBLE;
}

static bool is_truth(value each, bool which)
{
    return each.kind == TRUTH && each.integer == which;
}

static double real_of(value number)
{
    return number.kind == INTEGER ? (double)number.integer : number.number;
}

/* --- MessagePack ------------------------------------------------------------------------------ */

typedef uint16_t loose16 __attribute__((aligned(1), may_alias));
typedef uint32_t loose32 __attribute__((aligned(1), may_alias));
typedef uint64_t loose64 __attribute__((aligned(1), may_alias));

/* A big-endian number, read once. */
static uint64_t number_at(const uint8_t *at, int64_t size)
{
    switch (size) {
    case 1: return *(const volatile uint8_t *)at;
    case 2: return __builtin_bswap16(*(const volatile loose16 *)at);
    case 4: return __builtin_bswap32(*(const volatile loose32 *)at);
    case 8: return __builtin_bswap64(*(const volatile loose64 *)at);
    default: return 0;
    }
}

typedef struct object {
    int64_t length;   /* of the content that its end is behind */
    int64_t children; /* objects that follow it, and are part of it */
    uint8_t kind;
} object;

/* From kind 0xC0 on: the bytes of a length or count that follows, and the content besides. */
static const uint8_t LENGTH_BYTES[32] = {[0x04] = 1, 2, 4, 1, 2, 4, [0x19] = 1, 2, 4, 2, 4, 2, 4};
static const uint8_t FIXED_BYTES[32] = {[0x07] = 1, 1, 1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8,
                                        [0x14] = 2, 3, 5, 9, 17};

/* Read what an object is: where its content ends, NULL if it does not end in here. */
static const uint8_t *object_read(const uint8_t *at, const uint8_t *end, object *found)
{
    if (at >= end)
        return NULL;
    uint8_t kind = (uint8_t)number_at(at++, 1);
    *found = (object){.kind = kind};
    if (kind >= 0x80 && kind < 0xA0) {
        found->children = kind < 0x90 ? 2 * (kind & 0x0F) : kind & 0x0F;
    } else if (kind >= 0xA0 && kind < 0xC0) {
        found->length = kind & 0x1F;
    } else if (kind >= 0xC0 && kind < 0xE0) {
        int64_t size = LENGTH_BYTES[kind - 0xC0];
        if (kind == 0xC1 || size > end - at)
            return NULL;
        int64_t length = (int64_t)number_at(at, size);
        at += size;
        found->length = FIXED_BYTES[kind - 0xC0];
        if (kind < 0xDC)
            found->length += length;
        else
            found->children = kind < 0xDE ? length : 2 * length;
    }
    return found->length <= end - at ? at + found->length : NULL;
}

/* Where the last of its children ends; each takes a byte at least. */
static const uint8_t *children_skip(const uint8_t *at, const uint8_t *end, int64_t left)
{
    while (left > 0 && at) {
        object each;
        if (left > end - at)
            return NULL;
        at = object_read(at, end, &each);
        left += each.children - 1;
    }
    return at;
}

static bool is_text(const object *found)
{
    return (found->kind >= 0xA0 && found->kind < 0xC0) ||
           (found->kind >= 0xD9 && found->kind < 0xDC);
}

static value value_of(const object *found, const uint8_t *content)
{
    uint8_t kind = found->kind;
    if (is_text(found))
        return text(content, found->length);
    if (kind < 0x80 || kind >= 0xE0)
        return integer((int8_t)kind);
    uint64_t bits = found->length <= 8 ? number_at(content, found->length) : 0;
    uint32_t low = (uint32_t)bits;
    float narrow;
    double wide;
    switch (kind) {
    case 0xC0: return UNKNOWN;
    case 0xC2:
    case 0xC3: return truth(kind == 0xC3);
    case 0xCA: memcpy(&narrow, &low, sizeof narrow); return real(narrow);
    case 0xCB: memcpy(&wide, &bits, sizeof wide); return real(wide);
    case 0xCC:
    case 0xCD:
    case 0xCE:
    case 0xCF: return bits > INT64_MAX ? real((double)bits) : integer((int64_t)bits);
    case 0xD0: return integer((int8_t)bits);
    case 0xD1: return integer((int16_t)bits);
    case 0xD2: return integer((int32_t)bits);
    case 0xD3: return integer((int64_t)bits);
    default: return (value){.kind = OTHER};
    }
}

/* --- names ------------------------------------------------------------------------------------ */

typedef struct name {
    const uint8_t *text;
    int64_t length;
} name;

typedef struct names {
    int64_t count, unsought;
    name name[OP_NAMES_MAX];
    value value[OP_NAMES_MAX];
} names;

static value header_value(uint8_t source, const sb_subject *subject)
{
    switch (source) {
    case OP_FROM_KEY:
        return subject->key_length > 0 ? text(subject->key, subject->key_length) : UNKNOWN;
    case OP_FROM_SIZE: return integer(subject->body_length);
    case OP_FROM_PRIORITY: return integer(subject->priority);
    case OP_FROM_DELIVERIES: return integer(subject->deliveries);
    case OP_FROM_DELIVERY_COUNT: return integer(subject->deliveries + 1);
    case OP_FROM_PUBLISHED:
        return subject->published_ns ? integer(subject->published_ns / 1000000) : UNKNOWN;
    case OP_FROM_EXPIRY:
        return subject->expiry_ns ? integer(subject->expiry_ns / 1000000) : UNKNOWN;
    default: return UNKNOWN;
    }
}

/* Read the table of names: where the instructions start.  Headers are known at once; the
 * properties are looked through, once for all, when the first of them is asked for. */
static const uint8_t *names_read(names *made, const uint8_t *at, const sb_subject *subject)
{
    made->count = at[1];
    made->unsought = 0;
    at += 2;
    for (int64_t each = 0; each < made->count; each++) {
        made->name[each] = (name){at + 3, short_at(at + 1)};
        made->value[each] = header_value(at[0], subject);
        if (made->value[each].kind == NOTHING && made->name[each].length > 0) {
            made->value[each].kind = UNSOUGHT;
            made->unsought++;
        }
        at += 3 + made->name[each].length;
    }
    return at;
}

/* The first of equal keys counts, as in an exchange of kind headers. */
static void names_offer(names *wanted, const uint8_t *key, int64_t length, value offered)
{
    for (int64_t each = 0; each < wanted->count; each++) {
        if (wanted->value[each].kind != UNSOUGHT || wanted->name[each].length != length ||
            memcmp(wanted->name[each].text, key, (size_t)length) != 0)
            continue;
        wanted->value[each] = offered;
        wanted->unsought--;
    }
}

static void properties_search(names *wanted, const uint8_t *at, const uint8_t *end)
{
    object map, key, item;
    at = object_read(at, end, &map);
    if (!at || (map.kind & 0xF0) == 0x90 || map.kind == 0xDC || map.kind == 0xDD)
        return;
    for (int64_t pairs = map.children / 2; pairs > 0 && wanted->unsought > 0; pairs--) {
        const uint8_t *key_end = object_read(at, end, &key);
        if (!key_end || !is_text(&key))
            return;
        const uint8_t *item_end = object_read(key_end, end, &item);
        if (!item_end)
            return;
        names_offer(wanted, key_end - key.length, key.length,
                    value_of(&item, item_end - item.length));
        at = item.children ? children_skip(item_end, end, item.children) : item_end;
        if (!at)
            return;
    }
}

static void names_find(names *wanted, const sb_subject *subject)
{
    if (subject->properties_length > 0) {
        const uint8_t *properties = subject->properties;
        properties_search(wanted, properties, properties + subject->properties_length);
    }
    for (int64_t each = 0; each < wanted->count; each++)
        if (wanted->value[each].kind == UNSOUGHT)
            wanted->value[each] = UNKNOWN;
    wanted->unsought = 0;
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

/* --- the machine ------------------------------------------------------------------------------ */

int64_t sb_selector_matches(const void *program, int64_t bytes, const sb_subject *subject)
{
    names known;
    value stack[OP_STACK_MAX], *top = stack - 1;
    const uint8_t *end = (const uint8_t *)program + bytes;
    const uint8_t *at = names_read(&known, program, subject);
    while (at < end) {
        uint8_t opcode = *at++;
        switch (opcode) {
        case OP_FALSE:
        case OP_TRUE:
            *++top = truth(opcode == OP_TRUE);
            break;
        case OP_INTEGER:
        case OP_DOUBLE:
        case OP_TEXT:
            at--;
            *++top = constant(&at);
            break;
        case OP_NAME:
            if (known.value[*at].kind == UNSOUGHT)
                names_find(&known, subject);
            *++top = known.value[*at++];
            break;
        case OP_ADD:
        case OP_SUBTRACT:
        case OP_MULTIPLY:
        case OP_DIVIDE:
            top--;
            top[0] = calculated(opcode, top[0], top[1]);
            break;
        case OP_NEGATE:
            top[0] = negated(top[0]);
            break;
        case OP_EQUAL:
        case OP_UNEQUAL:
        case OP_LESS:
        case OP_AT_MOST:
        case OP_GREATER:
        case OP_AT_LEAST:
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
            if (top[0].kind == STRING)
                top[0] = truth(is_like(top[0].text, top[0].length, at + 2, short_at(at)));
            else
                top[0] = UNKNOWN;
            at += 2 + short_at(at);
            break;
        case OP_IS_NULL:
            top[0] = truth(top[0].kind == NOTHING);
            break;
        case OP_NOT:
            top[0] = top[0].kind == TRUTH ? truth(!top[0].integer) : UNKNOWN;
            break;
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
