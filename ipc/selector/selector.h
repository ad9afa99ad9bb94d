/* Selectors: whether a message is one that a consumer asked for.  Python makes a program of a text
 * (ipc/selector/program.py); here it is checked, and run on messages.  It stands on base. */

#ifndef SHMBROKER_SELECTOR_ROOM_H
#define SHMBROKER_SELECTOR_ROOM_H

#include "base/base.h"

/* --- like.c ----------------------------------------------------------------------------------- */

/* Whether the operand of a LIKE is one that is_like takes. */
bool pattern_is_good(const uint8_t *pattern, int64_t length);
/* Whether the text is like the pattern, which is good. */
bool is_like(const uint8_t *text, int64_t length, const uint8_t *pattern, int64_t pattern_length);

#endif
