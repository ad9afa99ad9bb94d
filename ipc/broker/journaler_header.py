"""The journaler's part of shmbroker.h: who writes the journal of a vhost."""

from __future__ import annotations

JOURNALER = """\
/* --- the journaler: who writes the journal of a vhost --- */

typedef struct sb_journaler sb_journaler;

/* Get a segment ready, in a thread of its own.  node: 16 bytes, or NULL. */
int64_t sb_journaler_prepare(const char *folder, int64_t segment_bytes, const void *node,
                             sb_journaler **journaler);
/* What it writes, until it is freed; all ends of it are detached before.  While it works, only what
 * is for any thread may be asked of it: sb_journal_attach, sb_journal_keep, sb_journal_quiet. */
sb_journal *sb_journaler_journal(sb_journaler *journaler);
/* Begin a segment with this epoch, in a thread of its own: the start that follows, which has
 * found nothing, waits for it. */
int64_t sb_journaler_begin(sb_journaler *journaler, int64_t epoch);
/* Be who writes the journal of this vhost, until it is unlocked, or the journaler has ended.
 * SB_IN_USE: another broker is. */
int64_t sb_journaler_lock(sb_journaler *journaler, sb_connection *connection);
void sb_journaler_unlock(sb_connection *connection);
/* Locked: adopt the gates of all durable queues, and write what is new from now on, in a thread of
 * its own.  found: in the whole journal, if it was read just now, else NULL.  If there is no room
 * for a segment, it has started as well, and waits (SB_DISK_FULL). */
int64_t sb_journaler_start(sb_journaler *journaler, sb_connection *connection, int64_t epoch,
                           const sb_found *found);
/* Before it starts.  fence: a file that begins with the epoch of who may write, as 16 hexadecimal
 * digits; as soon as it says another one, the journaler ends (SB_STALE) and confirms nothing any
 * more.  -1: none.  beat: is told when each turn began, at least every 100 ms, in monotonic
 * nanoseconds; it must live as long as the journaler.  NULL: nobody is told. */
void sb_journaler_watched(sb_journaler *journaler, int fence, int64_t *beat);
/* Before it starts, after sb_journaler_watched: the journal's folder and that file have to stay at
 * these paths.  If another one is there, or none, the journaler ends (SB_JOURNAL_FAILED) within 250
 * ms and confirms nothing any more. */
int64_t sb_journaler_placed(sb_journaler *journaler, const char *folder, const char *fence);
/* Before it starts: it writes and confirms only until this moment (nanoseconds of CLOCK_BOOTTIME),
 * then it ends (SB_STALE).  The moment may be moved while it works; the word must live as long as
 * the journaler.  NULL: for ever. */
void sb_journaler_leased(sb_journaler *journaler, const int64_t *until_ns);
/* SB_OK while it works, SB_DISK_FULL while it waits for room, SB_CLOSED when it was stopped, or why
 * it has ended. */
int64_t sb_journaler_code(sb_journaler *journaler);
/* The same, as soon as it is another one than was seen. */
int64_t sb_journaler_await(sb_journaler *journaler, int64_t seen, int64_t timeout_ns);
/* What there is to say about why it has ended. */
const char *sb_journaler_why(sb_journaler *journaler);
/* Write what is there, and end. */
int64_t sb_journaler_stop(sb_journaler *journaler);
/* Of a member of a replicated node: what the next frame says of it, and each segment from then on;
 * before it starts: the first frame.  Counts up, or a code. */
int64_t sb_journaler_standing(sb_journaler *journaler, const void *body, int64_t length);
/* From now on nothing else is written, or all is again. */
void sb_journaler_hold(sb_journaler *journaler, int64_t holds);
/* It serves again (sb_vhost_serves_until): whoever has found nothing to take looks again. */
void sb_journaler_serves(sb_journaler *journaler);
/* Count up this eventfd when a standing is synced, or nothing else is written; -1: none. */
void sb_journaler_tell(sb_journaler *journaler, int64_t event);
typedef struct sb_standing_told {
    int64_t synced; /* the count of the last that is synced */
    int64_t number; /* of its frame */
    int64_t last;   /* of the last frame at that time */
    int64_t holds;  /* 1: that was the last of all */
} sb_standing_told;
void sb_journaler_told(sb_journaler *journaler, sb_standing_told *told);
void sb_journaler_free(sb_journaler *journaler);
/* From now on our files are closed, and our locks fall, as soon as we are killed, and not when the
 * memory that we have is given back.  For the main thread; once is enough. */
int64_t sb_keep_memory(void);
/* As sb_observe, also of a vhost that is being restored: to join it later. */
int64_t sb_attach(const char *vhost, sb_connection **connection);
/* Whoever has only observed takes part from now on.  SB_NO_VHOST if the vhost was deleted
 * meanwhile, or is not whole.  Nobody else may use the connection in that moment. */
int64_t sb_join(sb_connection *connection, const char *name);
/* Create a vhost that is to be restored, for a group or NULL: to others it does not exist until
 * that is done. */
int64_t sb_restore_begin(const char *vhost, int64_t arena_bytes, const char *group,
                         const char *name, sb_connection **connection);
"""
