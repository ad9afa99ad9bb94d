/* What a selector reckons with: numbers in its program, and values; for the files of this room. */

#ifndef SHMBROKER_SELECTOR_VALUE_H
#define SHMBROKER_SELECTOR_VALUE_H

#include "base/base.h"

static inline int64_t short_at(const uint8_t *at)
{
    return at[0] | at[1] << 8;
}

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

static inline value truth(bool holds)
{
    return (value){.kind = TRUTH, .integer = holds};
}

static inline value integer(int64_t number)
{
    return (value){.kind = INTEGER, .integer = number};
}

static inline value real(double number)
{
    return (value){.kind = DOUBLE, .number = number};
}

static inline value text(const void *bytes, int64_t length)
{
    return (value){.kind = STRING, .length = (uint32_t)length, .text = bytes};
}

static inline bool is_number(value each)
{
    return each.kind == INTEGER || each.kind == DOUBLE;
}

static inline bool is_truth(value each, bool which)
{
    return each.kind == TRUTH && each.integer == which;
}

static inline double real_of(value number)
{
    return number.kind == INTEGER ? (double)number.integer : number.number;
}

typedef struct name {
    const uint8_t *text;
    int64_t length;
} name;

typedef struct names {
    int64_t count, unsought;
    name name[OP_NAMES_MAX];
    value value[OP_NAMES_MAX];
} names;

/* --- names.c ---------------------------------------------------------------------------------- */

/* Read the table of names: where the instructions start. */
const uint8_t *names_read(names *made, const uint8_t *at, const sb_subject *subject);
/* Look for all that is not known yet among the properties. */
void names_find(names *wanted, const sb_subject *subject);

#endif
