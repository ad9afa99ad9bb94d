/* Properties, pairs in a MessagePack map: those that the broker itself reads and adds, which are
 * texts, and those that C programs set. */

#include <string.h>

#include "base/base.h"
#include "message/message.h"

static int64_t address(const void *at)
{
    return (int64_t)(intptr_t)at;
}

static unsigned char *put_text(unsigned char *at, const char *text, int64_t length, bool is_bytes)
{
    if (is_bytes) {
        *at++ = 0xC4;
        *at++ = (unsigned char)length;
    } else if (length < 32)
        *at++ = (unsigned char)(0xA0 | length);
    else {
        *at++ = 0xD9;
        *at++ = (unsigned char)length;
    }
    memcpy(at, text, (size_t)length);
    return at + length;
}

/* The characters of a text of up to 255 bytes, as every writer of MessagePack shortens it. */
static int64_t text_at(int64_t at, const char **text)
{
    const unsigned char *object = (const unsigned char *)(intptr_t)at;
    if ((object[0] & 0xE0) == 0xA0) {
        *text = (const char *)object + 1;
        return object[0] & 0x1F;
    }
    *text = (const char *)object + 2;
    return object[0] == 0xD9 ? object[1] : -1;
}

static bool is_named(int64_t key, const char *name)
{
    const char *text;
    int64_t length = text_at(key, &text);
    return length == (int64_t)strlen(name) && memcmp(text, name, (size_t)length) == 0;
}

/* Where the value of a property is, -1 if there is none. */
static int64_t value_of(const void *properties, int64_t length, const char *name)
{
    int64_t start = address(properties);
    return sb_map_find(start, start + length, name, address(name) + (int64_t)strlen(name));
}

int64_t property_text(const void *properties, int64_t length, const char *name, const char **text)
{
    int64_t value = value_of(properties, length, name);
    return value < 0 ? -1 : text_at(value, text);
}

int64_t property_id(const void *properties, int64_t length, const char *name, const char **id)
{
    int64_t value = value_of(properties, length, name);
    if (value < 0)
        return 0;
    const unsigned char *object = (const unsigned char *)(intptr_t)value;
    if (object[0] == 0xC4) {
        *id = (const char *)object + 2;
        return -(int64_t)object[1];
    }
    int64_t bytes = text_at(value, id);
    return bytes > 0 ? bytes : 0;
}

static int64_t too_many_bytes(int64_t properties)
{
    return fail(SB_TOO_LARGE, "the properties of a message have at most %d bytes, not %lld",
                (int)L_PROPERTIES_BYTES_MAX, (long long)properties);
}

int64_t outgoing_check(const sb_outgoing *message)
{
    if ((message->length | message->key_length | message->properties_length) < 0)
        return fail(SB_INVALID, "a body, a key and properties have 0 bytes or more each, not %lld, "
                    "%lld and %lld", (long long)message->length, (long long)message->key_length,
                    (long long)message->properties_length);
    if (message->key_length > L_KEY_BYTES_MAX)
        return fail(SB_TOO_LARGE, "a key has at most %d bytes, not %lld", (int)L_KEY_BYTES_MAX,
                    (long long)message->key_length);
    if (message->properties_length > L_PROPERTIES_BYTES_MAX)
        return too_many_bytes(message->properties_length);
    if (message->ttl_ns < 0)
        return fail(SB_INVALID, "a time to live is a number of ns above 0, or 0 for none, not %lld",
                    (long long)message->ttl_ns);
    if (message->priority < 0 || message->priority > L_LEVELS)
        return fail(SB_INVALID,
                    "a priority is SB_PRIORITY(0) to SB_PRIORITY(%d), or 0 for none, not %lld",
                    (int)L_LEVELS - 1, (long long)message->priority);
    int64_t start = address(message->properties);
    if (message->properties_length > 0 &&
        !sb_map_check(start, start + message->properties_length))
        return fail(SB_INVALID, "properties are a MessagePack map with text keys");
    return SB_OK;
}

int64_t properties_with(unsigned char *made, const void *properties, int64_t length,
                        const text_pair *pairs, int count)
{
    unsigned char *at = made + 3;
    int64_t total = 0, end = address(properties) + length, key = end;
    if (length > 0 && (key = sb_map_start(address(properties), end)) < 0)
        return fail(SB_INVALID, "properties are a MessagePack map with text keys");
    while (key < end) {
        int64_t after = sb_object_end(sb_object_end(key, end), end);
        bool replaced = false;
        if (after < 0)
            return fail(SB_INVALID, "properties are a MessagePack map with text keys");
        for (int each = 0; each < count; each++)
            replaced |= is_named(key, pairs[each].name);
        if (!replaced) {
            memcpy(at, (const void *)(intptr_t)key, (size_t)(after - key));
            at += after - key;
            total++;
        }
        key = after;
    }
    for (int each = 0; each < count; each++) {
        at = put_text(at, pairs[each].name, (int64_t)strlen(pairs[each].name), false);
        at = put_text(at, pairs[each].value, pairs[each].length, pairs[each].is_bytes);
        total++;
    }
    made[0] = 0xDE;
    made[1] = (unsigned char)(total >> 8);
    made[2] = (unsigned char)total;
    return at - made <= L_PROPERTIES_BYTES_MAX ? at - made : too_many_bytes(at - made);
}

/* --- what C programs set ---------------------------------------------------------------------- */

#define MAP_HEAD 3   /* of a map with 16 bits of count, as we write it */
#define VALUE_HEAD 9 /* the first byte of a value and a number behind it */

typedef struct property {
    const char *name;
    unsigned char head[VALUE_HEAD]; /* of its value */
    int64_t head_length;
    const char *text; /* behind the head */
    int64_t text_length;
} property;

static int64_t put_big_endian(unsigned char *at, unsigned kind, uint64_t bits, int64_t size)
{
    *at++ = (unsigned char)kind;
    for (int64_t each = size - 1; each >= 0; each--)
        *at++ = (unsigned char)(bits >> (8 * each));
    return 1 + size;
}

/* The pairs of the map are counted, and the one of this name is found: SB_INVALID if they are no
 * map. */
static int64_t pairs_find(const void *properties, int64_t length, const char *name, int64_t *start,
                          int64_t *key, int64_t *after)
{
    int64_t end = address(properties) + length, pairs = 0;
    *start = *key = *after = end;
    if (length == 0)
        return 0;
    if (!sb_map_check(address(properties), end))
        return fail(SB_INVALID, "properties are a MessagePack map with text keys");
    *start = sb_map_start(address(properties), end);
    for (int64_t each = *start, next; each < end; each = next, pairs++) {
        next = sb_object_end(sb_object_end(each, end), end);
        if (is_named(each, name)) {
            *key = each;
            *after = next;
        }
    }
    return pairs;
}

static int64_t set_check(const void *buffer, int64_t capacity, const int64_t *length,
                         const property *set)
{
    size_t bytes = set->name ? strlen(set->name) : 0;
    if (!buffer || !length || *length < 0 || *length > capacity)
        return fail(SB_INVALID,
                    "properties are built in a buffer, of which `length` bytes are used");
    if (bytes == 0 || bytes > L_NAME_BYTES_MAX)
        return fail(SB_INVALID, "the name of a property is 1 to %d bytes, this one has %zu",
                    (int)L_NAME_BYTES_MAX, bytes);
    if (!is_utf8(set->name, (int64_t)bytes))
        return fail(SB_INVALID, "the name of a property is UTF-8, this one is not");
    return SB_OK;
}

/* Nothing is changed unless all of it has room. */
static int64_t property_set(void *buffer, int64_t capacity, int64_t *length, const property *set)
{
    int64_t start, key, after, code = set_check(buffer, capacity, length, set);
    if (code != SB_OK)
        return code;
    int64_t pairs = pairs_find(buffer, *length, set->name, &start, &key, &after);
    if (pairs < 0)
        return pairs;
    int64_t end = address(buffer) + *length, name_length = (int64_t)strlen(set->name);
    int64_t kept = end - start - (after - key);
    int64_t needed = MAP_HEAD + kept + 2 + name_length + set->head_length + set->text_length;
    needed -= name_length < 32; /* its length takes no byte then */
    if (needed > L_PROPERTIES_BYTES_MAX)
        return too_many_bytes(needed);
    if (needed > capacity)
        return fail(SB_TOO_SMALL, "the properties need a buffer of %lld bytes, this one has %lld",
                    (long long)needed, (long long)capacity);
    pairs += key == after;
    memmove((void *)(intptr_t)key, (void *)(intptr_t)after, (size_t)(end - after));
    unsigned char *at = (unsigned char *)buffer + MAP_HEAD;
    memmove(at, (void *)(intptr_t)start, (size_t)kept);
    at = put_text(at + kept, set->name, name_length, false);
    memcpy(at, set->head, (size_t)set->head_length);
    if (set->text_length > 0)
        memcpy(at + set->head_length, set->text, (size_t)set->text_length);
    put_big_endian(buffer, 0xDE, (uint64_t)pairs, 2);
    *length = needed;
    return SB_OK;
}

int64_t sb_properties_set_text(void *buffer, int64_t capacity, int64_t *length, const char *name,
                               const char *text, int64_t text_length)
{
    property set = {.name = name, .text = text, .text_length = text_length};
    if (text_length < 0 || text_length > L_PROPERTIES_BYTES_MAX || (!text && text_length > 0))
        return fail(SB_INVALID, "the text of a property has 0 to %d bytes, not %lld",
                    (int)L_PROPERTIES_BYTES_MAX, (long long)text_length);
    if (!is_utf8(text, text_length))
        return fail(SB_INVALID, "the text of a property is UTF-8, this one is not");
    uint64_t bits = (uint64_t)text_length;
    if (text_length < 32)
        set.head_length = put_big_endian(set.head, 0xA0 | (unsigned)text_length, 0, 0);
    else if (text_length < 256)
        set.head_length = put_big_endian(set.head, 0xD9, bits, 1);
    else
        set.head_length = put_big_endian(set.head, 0xDA, bits, 2);
    return property_set(buffer, capacity, length, &set);
}

/* As short as can be, as all writers of MessagePack do: a binding of headers compares the bytes. */
int64_t sb_properties_set_int(void *buffer, int64_t capacity, int64_t *length, const char *name,
                              int64_t value)
{
    property set = {.name = name};
    uint64_t bits = (uint64_t)value;
    if (value >= -32 && value < 128)
        set.head_length = put_big_endian(set.head, (unsigned char)bits, 0, 0);
    else if (value >= INT8_MIN && value <= UINT8_MAX)
        set.head_length = put_big_endian(set.head, value < 0 ? 0xD0 : 0xCC, bits, 1);
    else if (value >= INT16_MIN && value <= UINT16_MAX)
        set.head_length = put_big_endian(set.head, value < 0 ? 0xD1 : 0xCD, bits, 2);
    else if (value >= INT32_MIN && value <= UINT32_MAX)
        set.head_length = put_big_endian(set.head, value < 0 ? 0xD2 : 0xCE, bits, 4);
    else
        set.head_length = put_big_endian(set.head, value < 0 ? 0xD3 : 0xCF, bits, 8);
    return property_set(buffer, capacity, length, &set);
}

int64_t sb_properties_set_double(void *buffer, int64_t capacity, int64_t *length,
                                 const char *name, double value)
{
    property set = {.name = name};
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    set.head_length = put_big_endian(set.head, 0xCB, bits, 8);
    return property_set(buffer, capacity, length, &set);
}

int64_t sb_properties_set_bool(void *buffer, int64_t capacity, int64_t *length, const char *name,
                               int64_t value)
{
    property set = {.name = name};
    set.head_length = put_big_endian(set.head, value ? 0xC3 : 0xC2, 0, 0);
    return property_set(buffer, capacity, length, &set);
}
