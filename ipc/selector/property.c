/* The properties of a message as C programs read them: found as a selector finds its names. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "selector/value.h"

static const char *const KINDS[] = {[NOTHING] = "nil", [TRUTH] = "a bool", [INTEGER] = "an integer",
                                    [DOUBLE] = "a double", [STRING] = "a text",
                                    [OTHER] = "bytes, a list or a map"};

static int64_t property_find(const void *properties, int64_t length, const char *wanted,
                             value *found)
{
    const sb_subject subject = {.properties = properties, .properties_length = length};
    int64_t start = (int64_t)(intptr_t)properties;
    names asked;
    if (!wanted || length < 0 || (!properties && length > 0) ||
        !sb_map_check(start, start + length))
        return fail(SB_INVALID, "properties are a MessagePack map with text keys");
    asked.count = asked.unsought = 1;
    asked.name[0] = (name){(const uint8_t *)wanted, (int64_t)strlen(wanted)};
    asked.value[0] = (value){.kind = UNSOUGHT};
    names_find(&asked, &subject);
    *found = asked.value[0];
    if (found->kind == NOTHING)
        return fail(SB_NOT_FOUND, "the message has no property '%.255s'", wanted);
    return SB_OK;
}

static int64_t other_kind(const char *name, value found, const char *wanted)
{
    return fail(SB_INVALID, "property '%.255s' is %s, not %s", name, KINDS[found.kind], wanted);
}

int64_t sb_properties_get_text(const void *properties, int64_t length, const char *name,
                               const char **text, int64_t *text_length)
{
    value found;
    int64_t code = property_find(properties, length, name, &found);
    if (code == SB_OK && found.kind != STRING)
        code = other_kind(name, found, "a text");
    if (code != SB_OK)
        return code;
    *text = (const char *)found.text;
    *text_length = found.length;
    return SB_OK;
}

int64_t sb_properties_get_int(const void *properties, int64_t length, const char *name,
                              int64_t *number)
{
    value found;
    int64_t code = property_find(properties, length, name, &found);
    if (code == SB_OK && found.kind != INTEGER)
        code = other_kind(name, found, "an integer of 64 bits");
    if (code == SB_OK)
        *number = found.integer;
    return code;
}

int64_t sb_properties_get_double(const void *properties, int64_t length, const char *name,
                                 double *number)
{
    value found;
    int64_t code = property_find(properties, length, name, &found);
    if (code == SB_OK && !is_number(found))
        code = other_kind(name, found, "a number");
    if (code == SB_OK)
        *number = real_of(found);
    return code;
}

int64_t sb_properties_get_bool(const void *properties, int64_t length, const char *name,
                               int64_t *truth)
{
    value found;
    int64_t code = property_find(properties, length, name, &found);
    if (code == SB_OK && found.kind != TRUTH)
        code = other_kind(name, found, "a bool");
    if (code == SB_OK)
        *truth = found.integer;
    return code;
}
