"""Vhosts and connections in the C interface."""

from __future__ import annotations

PUBLIC = """\
/* --- vhosts and connections --- */

/* Make a vhost with an arena of so many bytes.  SB_OK; SB_EXISTS. */
int64_t sb_vhost_create(const char *vhost, int64_t arena_bytes);
/* The same; mode 0660 gives it to a group, by name or number (NULL: the caller's own group), whose
 * members may do with it what its owner may.  Mode 0600 keeps it the owner's.  0: as `group` says.
 * SB_OK; SB_EXISTS; SB_INVALID; SB_UNTRUSTED if the caller is not in the group. */
int64_t sb_vhost_create_with(const char *vhost, int64_t arena_bytes, const char *group,
                             int64_t mode);
/* Delete a vhost with its queues and messages, also one that was not made to the end; if somebody
 * takes part in it only by force.  SB_OK; SB_NO_VHOST; SB_IN_USE; SB_UNTRUSTED if it belongs to
 * another user. */
int64_t sb_vhost_delete(const char *vhost, int64_t force);
/* Before it is deleted by whoever was live in it: calls in its queues answer SB_MOVED, and those
 * that wait for a confirm SB_UNCONFIRMED. */
int64_t sb_vhost_retire(const char *vhost);
/* Take part in a vhost; `name` is for people, NULL: the program's.  SB_OK; SB_NO_VHOST;
 * SB_TOO_MANY; SB_OTHER_HEADER if the program was compiled with the header of another version. */
int64_t sb_connect(const char *vhost, const char *name, sb_connection **connection);
/* Look only: takes no participant's id and repairs nothing.  Answers as sb_connect.  Through such a
 * connection publishing and taking answer SB_INVALID. */
int64_t sb_observe(const char *vhost, sb_connection **connection);
/* Leave: messages that were taken and not acknowledged go to others.  SB_OK; later calls through
 * this connection answer SB_CLOSED. */
int64_t sb_disconnect(sb_connection *connection);
/* Unmap and free; disconnects first.  No thread may be in a call or read a message in place. */
void sb_connection_free(sb_connection *connection);
/* 0 while it is open; then why it is not: SB_CLOSED, SB_FORKED, SB_SLOW or
 * SB_DISCONNECTED. */
int64_t sb_closed(sb_connection *connection);
/* The number of this participant, 1 to 4095; 0: it only observes. */
int64_t sb_participant(sb_connection *connection);
/* How long each wait spins before it sleeps, from now on.  Without this call it is 10 us, and a
 * thread that may run on one processor only spins while that finds something. */
int64_t sb_spin(sb_connection *connection, int64_t ns);
/* How many waits of this process in this queue have spun, and how many of them found something. */
int64_t sb_spun(sb_queue *queue, int64_t *spins, int64_t *won);
/* Repair what dead participants have left: the number of repairs.  Waiting calls do so too. */
int64_t sb_repair(sb_connection *connection);
/* Repair as soon as a participant dies, for so long at most: the number of repairs. */
int64_t sb_repair_for(sb_connection *connection, int64_t timeout_ns);
"""

PRIVATE = """\
/* Its broker serves no more: every call of programs answers SB_MOVED, and names who does.  And it
 * does again, with what is there: who connects anew goes on.  `connection` hears it, too; so many
 * that remain do not, and nobody deletes a queue of theirs. */
int64_t sb_vhost_moves(sb_connection *connection, const char *to, sb_connection *const *remain,
                       int64_t count);
int64_t sb_vhost_serves(sb_connection *connection);
/* The same as sb_vhost_moves, when no transaction is half way. */
int64_t sb_vhost_departs(sb_connection *connection, const char *to, sb_connection *const *remain,
                         int64_t count);
/* How fast the count of cycles runs; zeroes at first.  For one thread at a time. */
typedef struct sb_pace {
    int64_t ns, cycles; /* when its measure began */
    int64_t factor;     /* cycles a nanosecond, times 2^32 */
} sb_pace;
/* Of its broker: what is durable is delivered until this moment (nanoseconds of CLOCK_BOOTTIME),
 * which may be moved; 0: not now, INT64_MAX: for ever, as it is where nobody says so.  With
 * `disk_alone`, what the disk has is confirmed to who asks for that.  Whoever says that it serves
 * again calls sb_journaler_serves then. */
int64_t sb_vhost_serves_until(sb_connection *connection, sb_pace *pace, int64_t until_ns,
                              int64_t disk_alone);
/* Of its broker: whether replicas may confirm what the disk lacks, to who asks for `replicated`
 * by name; they may where nobody says so.  And whether somebody has asked for it since. */
void sb_vhost_runs_ahead(sb_connection *connection, int64_t may);
/* Of a member of a replicated node, before others see the vhost or later: what of durable queues
 * and of exchanges other members have, unless it is said of one (SB_REPLICATE_ALL, ...). */
void sb_vhost_replicates(sb_connection *connection, int64_t replicate);
int64_t sb_vhost_asks_ahead(const sb_connection *connection);
/* What the paths of a vhost's segments begin with: `home` has room for 384 bytes.  The group that
 * shares it, -1 if none does.  `looks`: root may look at what any user has.  Answers as sb_connect
 * if it may not be entered; SB_OK also if there is none. */
int64_t sb_vhost_home(const char *vhost, int64_t looks, char *home, int64_t *group);
/* From now on a wait answers SB_INTERRUPTED every 100 ms, for a caller who has to look for signals
 * between two calls, as Python has: a signal that comes between two sleeps interrupts none. */
int64_t sb_wait_in_slices(sb_connection *connection);
/* Which entries of the vhost's log we have written since the last call: a bit for each. */
int64_t sb_noted(sb_connection *connection);
/* How many messages we have in hand, of all queues. */
int64_t sb_in_hand(sb_connection *connection);
/* Each call of a program ends with this answer: a code without words gets none of an earlier call.
 * The answer. */
int64_t sb_answered(int64_t code);
/* The detail, copied, with a 0 at its end, and told once: what is told next for the same code was
 * said since.  How long it is. */
int64_t sb_detail_take(int64_t code, char *buffer, int64_t capacity);
/* 1 if the participant of this number is alive. */
int64_t sb_participant_lives(sb_connection *connection, int64_t id);
/* Tell the participant who joined then that it is to leave, and give what it has in hand to others:
 * how much that was.  It leaves when it finds out; to be called again until that.  SB_NOT_FOUND: it
 * has left; SB_INVALID: it looks after the vhost. */
int64_t sb_participant_disconnect(sb_connection *connection, int64_t id, int64_t joined);
void *sb_catalog(sb_connection *connection);
void *sb_participants(sb_connection *connection);
void *sb_transactions(sb_connection *connection);
/* A line in the vhost's log. */
void sb_note(sb_connection *connection, const char *text);
/* Who follows with this bell (L_FOLLOWER_JOURNALER, ...) looks again, if it sleeps. */
void sb_follower_rouse(sb_connection *connection, int64_t follower);
/* The memory of all messages: one's body lies at its offset. */
void *sb_arena(sb_connection *connection, int64_t *bytes);
/* How much of it each participant holds; `shares` has room for 4096, by id. */
void sb_arena_shares(sb_connection *connection, int64_t *shares);
"""
