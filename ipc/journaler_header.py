"""The journaler's part of shmbroker.h: who writes the journal of a vhost."""

from __future__ import annotations

JOURNALER = """\
/* --- the journaler: who writes the journal of a vhost --- */

typedef struct sb_journaler sb_journaler;

/* Get a segment ready, in a thread of its own.  node: 16 bytes, or NULL. */
int64_t sb_journaler_prepare(const char *folder, int64_t segment_bytes, const void *node,
                             sb_journaler **journaler);
/* Adopt the gates of all durable queues, and write what is new from now on, in a thread of its own.
 * replay: of the whole journal, if it was read just now, else NULL. */
int64_t sb_journaler_start(sb_journaler *journaler, sb_connection *connection, int64_t epoch,
                           const sb_replay *replay);
/* SB_OK while it works, SB_DISK_FULL while it waits for room, or why it has ended. */
int64_t sb_journaler_code(sb_journaler *journaler);
/* Write what is there, and end. */
int64_t sb_journaler_stop(sb_journaler *journaler);
int64_t sb_journaler_statistics_of(sb_journaler *journaler, sb_journal_statistics *told);
void sb_journaler_free(sb_journaler *journaler);
/* Make the durable queues of a vhost that was created just now, with what the journal has of them,
 * and its exchanges and bindings: how many messages.  told: NULL, or called now and then with the
 * bytes read, and of how many. */
int64_t sb_restore(sb_connection *connection, sb_replay *replay,
                   void (*told)(int64_t bytes, int64_t all, void *context), void *context);
"""
