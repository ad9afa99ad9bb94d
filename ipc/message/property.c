/* The properties of a message as C programs read them, by the kernels that read them for selectors
 * (core/value.py). */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"

static const char *const KINDS[] = {
    [OP_NO] = "a bool",
    [OP_YES] = "a bool",
    [OP_NOTHING] = "nil",
    [OP_AN_INTEGER] = "an integer",
    [OP_A_DOUBLE] = "a double",
    [OP_A_TEXT] = "a text",
    [OP_ANOTHER] = "bytes, a list or a map",
};

/* A value, as these kernels have it. */
typedef struct value {
    int64_t kind;
    union {
        int64_t integer;
        double number;
        const char *text;
    };
    int64_t length;
} value;

_Static_assert(offsetof(value, integer) == OP_VALUE_AT && sizeof(value) == OP_VALUE_BYTES &&
                   offsetof(value, length) == OP_VALUE_LENGTH_AT,
               "core/opcodes.py");

static int64_t property_find(const void *properties, int64_t length, const char *wanted,
                             value *found)
{
    if (!wanted || (!properties && length > 0) ||
        !sb_property_find(properties, length, wanted, (int64_t)strlen(wanted), &found->kind))
        return fail(SB_INVALID, "properties are a MessagePack map with text keys");
    if (found->kind == OP_NOTHING)
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
    if (code == SB_OK && found.kind != OP_A_TEXT)
        code = other_kind(name, found, "a text");
    if (code != SB_OK)
        return code;
    *text = found.text;
    *text_length = found.length;
    return SB_OK;
}

int64_t sb_properties_get_int(const void *properties, int64_t length, const char *name,
                              int64_t *number)
{
    value found;
    int64_t code = property_find(properties, length, name, &found);
    if (code == SB_OK && found.kind != OP_AN_INTEGER)
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
    if (code == SB_OK && found.kind != OP_AN_INTEGER && found.kind != OP_A_DOUBLE)
        code = other_kind(name, found, "a number");
    if (code == SB_OK)
        *number = found.kind == OP_AN_INTEGER ? (double)found.integer : found.number;
    return code;
}

int64_t sb_properties_get_bool(const void *properties, int64_t length, const char *name,
                               int64_t *truth)
{
    value found;
    int64_t code = property_find(properties, length, name, &found);
    if (code == SB_OK && found.kind != OP_NO && found.kind != OP_YES)
        code = other_kind(name, found, "a bool");
    if (code == SB_OK)
        *truth = found.kind == OP_YES;
    return code;
}
