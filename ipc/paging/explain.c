/* Why a message finds no room, in words. */

#define _GNU_SOURCE

#include "base/base.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

/* By which of its limits a queue is full: it is looked at anew, because the limit was hit in a
 * loop that must not stop to tell.  Between the two somebody may have made room; then it is the
 * limit that is left. */
static int64_t explain_full(sb_queue *queue, bool counts_bytes)
{
    const char *name = queue->name;
    int64_t most = setting(queue, L_SETTING_MAX_MESSAGES_AT), window = 0, bytes = 0;
    sb_port port;
    if (setting(queue, L_SETTING_INBOX_OF_AT))
        return inbox_explain(queue);
    if (sb_port_to_look(queue, &port) == SB_OK) {
        window = sb_port_window(&port);
        bytes = sb_port_bytes_held(&port);
    }
    counts_bytes = counts_bytes && queue->max_bytes > 0;
    if (most > 0 && (window >= most || !counts_bytes))
        return fail(SB_FULL, "queue '%s' is full: it holds max_messages, %lld, that nobody has "
                    "acknowledged", name, (long long)most);
    if (counts_bytes && window < queue->slots)
        return fail(SB_FULL, "queue '%s' is full: its messages take %lld bytes, and one more would "
                    "exceed max_bytes, %lld", name, (long long)bytes, (long long)queue->max_bytes);
    return fail(SB_FULL, "queue '%s' is full: its %lld slots hold messages that nobody has "
                "acknowledged, or that a subscriber has not seen", name, (long long)queue->slots);
}

int64_t explained_commit(sb_queue *queue, int64_t code)
{
    int64_t looking;
    if (code != SB_FULL || !queue_look(queue, &looking))
        return explained(queue, code);
    code = explain_full(queue, false);
    queue_looked(queue);
    return code;
}

int64_t explained(sb_queue *queue, int64_t code)
{
    int64_t looking;
    if (code == SB_FULL && queue_look(queue, &looking)) {
        code = explain_full(queue, true);
        queue_looked(queue);
        return code;
    }
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
