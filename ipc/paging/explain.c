/* Why a message finds no room, in words. */

#define _GNU_SOURCE

#include "base/base.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

int64_t explained(sb_queue *queue, int64_t code)
{
    int64_t looking;
    if (code == SB_FULL && queue_look(queue, &looking)) {
        bool is_inbox = setting(queue, L_SETTING_INBOX_OF_AT);
        int64_t told = is_inbox ? inbox_explain(queue) : code;
        queue_looked(queue);
        if (is_inbox)
            return told;
    }
    if (code == SB_FULL)
        return queue->max_messages | queue->max_bytes
                   ? fail(code, "queue '%s' is full: it may hold %lld messages and %lld bytes "
                          "(0: no such limit) in %lld slots", queue->name,
                          (long long)queue->max_messages, (long long)queue->max_bytes,
                          (long long)queue->slots)
                   : fail(code, "queue '%s' is full: its %lld slots hold messages that nobody has "
                          "acknowledged, or that a subscriber has not seen", queue->name,
                          (long long)queue->slots);
    if (code == SB_OVER_SHARE)
        return fail(SB_FULL,
                    "queue '%s': this participant holds as much of the arena as a producer "
                    "may (max_producer_bytes %lld): what it has published is to be acknowledged "
                    "first",
                    queue->name, (long long)queue->max_producer_bytes);
    if (code == SB_TOO_LARGE && queue->max_producer_bytes > 0)
        return fail(code,
                    "queue '%s': a message has at most a quarter of the arena, and no more than "
                    "max_producer_bytes %lld or max_bytes %lld (0: no such limit)",
                    queue->name, (long long)queue->max_producer_bytes, (long long)queue->max_bytes);
    if (code == SB_TOO_LARGE && queue->max_bytes > 0)
        return fail(code,
                    "queue '%s' holds at most %lld bytes, and a message at most a quarter of the "
                    "arena",
                    queue->name, (long long)queue->max_bytes);
    if (code == SB_TOO_LARGE) {
        int64_t quarter = queue->connection->arena.bytes / 4, most = L_BODY_BYTES_MAX;
        return fail(
            code, "queue '%s': a message has at most %lld bytes with all that belongs to it: %s",
            queue->name, (long long)(quarter < most ? quarter : most),
            quarter < most ? "a quarter of the arena" : "what a record of a journal may have");
    }
    if (code == SB_ARENA_FULL || code == SB_NO_MEMORY || code == SB_DAMAGED) {
        log_note(queue->connection, "queue '%s': %s", queue->name, sb_strerror(code));
        return fail(code, "queue '%s': %s", queue->name, sb_strerror(code));
    }
    return code;
}
