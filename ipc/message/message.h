/* Messages: what one has of its own - key, properties, times - in private memory, before it is in a
 * ring and after it was taken.  Properties are a MessagePack map, of which some names are the
 * broker's.  It stands on base. */

#ifndef SHMBROKER_MESSAGE_ROOM_H
#define SHMBROKER_MESSAGE_ROOM_H

#include "base/base.h"

/* --- properties.c ----------------------------------------------------------------------------- */

#define PAIR_ROOM(name, value) (sizeof name + (value) + 4)

typedef struct text_pair {
    const char *name, *value;
    int64_t length; /* of the value, at most 255 */
    bool is_bytes;  /* and no text */
} text_pair;
/* Whether such a message can be published: SB_OK, or SB_INVALID and why not. */
int64_t outgoing_check(const sb_outgoing *message);
/* The text that a property has: its length, or -1. */
int64_t property_text(const void *properties, int64_t length, const char *name, const char **text);
/* The same for a text or bytes; for those below 0.  0 if there is neither. */
int64_t property_id(const void *properties, int64_t length, const char *name, const char **id);
/* Properties with more pairs, in a buffer with room for them: their length, SB_INVALID if they
 * are no map, SB_TOO_LARGE. */
int64_t properties_with(unsigned char *made, const void *properties, int64_t length,
                        const text_pair *pairs, int count);
#define REPLY_TO "JMSReplyTo"
#define CORRELATION "JMSCorrelationID"
#define GROUP "JMSXGroupID"
#define CORRELATION_BYTES 16

/* --- of a message that is for the agent of another broker (sink/journey.c) -------------------- */

#define OF_AGENT INT64_C(0x6D7461) /* "mta" */
/* In its target: */
#define ID_IS_COMPARED INT64_C(0x80)  /* whoever published it gave it an id */
#define HAS_PUBLISHER INT64_C(0x1000) /* who is told if it is returned: the first of "$mta" */
#define IS_IMMEDIATE INT64_C(0x2000)  /* SB_IMMEDIATE, SB_MANDATORY: it is returned if nobody */
#define IS_MANDATORY INT64_C(0x4000)  /* takes it */
#define COMES_BACK INT64_C(0x8000)    /* to where it was published, where nobody has it */
#define WISHES (IS_IMMEDIATE | IS_MANDATORY)
#define JOURNEY "$mta" /* the property */
#define NODE_BYTES 16  /* of each place in it */

#endif
