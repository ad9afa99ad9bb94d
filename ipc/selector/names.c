/* The names that a selector asks for, looked up in a message: its headers, and its properties,
 * which are a MessagePack map.
 *
 * The message may be in nobody's hand yet, and its memory used again at any moment.  So each byte
 * of its properties that says how far to go is read once, and compared with the end before anybody
 * goes there.  What is read of a message that changed meanwhile is noise. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "selector/value.h"

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
const uint8_t *names_read(names *made, const uint8_t *at, const sb_subject *subject)
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

void names_find(names *wanted, const sb_subject *subject)
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
