/* Properties that the broker itself reads and adds: pairs of texts in a MessagePack map. */

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

/* sb_object_end, quickly for short texts, which are most of it. */
static inline int64_t object_end(int64_t at, int64_t end)
{
    if (at < 0 || at >= end)
        return -1;
    int kind = *(const unsigned char *)(intptr_t)at;
    if ((kind & 0xE0) != 0xA0)
        return sb_object_end(at, end);
    int64_t length = 1 + (kind & 0x1F);
    return length <= end - at ? at + length : -1;
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
    int64_t end = address(properties) + length, key = sb_map_start(address(properties), end);
    while (key >= 0 && key < end) {
        int64_t value = object_end(key, end), after = object_end(value, end);
        if (after < 0)
            return -1;
        if (is_named(key, name))
            return value;
        key = after;
    }
    return -1;
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

int64_t outgoing_check(const sb_outgoing *message)
{
    if (message->ttl_ns < 0)
        return fail(SB_INVALID, "a time to live is a number of ns above 0, or 0 for none, not %lld",
                    (long long)message->ttl_ns);
    if (message->priority < 0 || message->priority > L_LEVELS)
        return fail(SB_INVALID,
                    "a priority is SB_PRIORITY(0) to SB_PRIORITY(%d), or 0 for none, not %lld",
                    (int)L_LEVELS - 1, (long long)message->priority);
    int64_t start = address(message->properties);
    if (message->properties_length > 0 && /* below 0 is refused with the other lengths */
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
        int64_t after = object_end(object_end(key, end), end);
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
    return at - made <= L_PROPERTIES_BYTES_MAX ? at - made : SB_TOO_LARGE;
}
