/* Selectors: the machine that runs them, and what a text is like. */

#ifndef SHMBROKER_SELECTOR_ROOM_H
#define SHMBROKER_SELECTOR_ROOM_H

#include "base/base.h"

/* --- like.c ----------------------------------------------------------------------------------- */

/* Whether the operand of a LIKE is one that is_like takes. */
bool pattern_is_good(const uint8_t *pattern, int64_t length);
bool is_like(const uint8_t *text, int64_t length, const uint8_t *pattern, int64_t pattern_length);

#endif
