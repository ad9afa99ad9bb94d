/* Selectors as C calls them: the kernels that check and run a program (core/program.py,
 * core/selector.py) get memory to do it in, and a message becomes what they look at. */

#define _GNU_SOURCE

#include "base/base.h"

#define WORDS (OP_ROOM_BYTES / 8)

int64_t sb_selector_check(const void *program, int64_t bytes)
{
    int64_t memory[WORDS];
    return sb_program_check(program, bytes, memory);
}

int64_t sb_selector_matches(const void *program, int64_t bytes, const sb_subject *subject)
{
    int64_t memory[WORDS];
    return sb_selector_run(program, bytes, subject, memory);
}

int64_t sb_selector_count(const void *program, int64_t bytes, const sb_subject *subjects,
                          int64_t count)
{
    int64_t selected = 0;
    for (int64_t each = 0; each < count; each++)
        selected += sb_selector_matches(program, bytes, &subjects[each]);
    return selected;
}

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
