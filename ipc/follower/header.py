"""The follower's part of shmbroker.h: reading queues behind gates, in records."""

from __future__ import annotations

from shmbroker.core import layout

KINDS = ("subscription", "journal", "pager", "replica", "link")
"""Of gates, by number."""

FOLLOWER = f"""\
/* --- followers: what comes into queues, as records of the journal --- */

/* A gate of a queue: the ring keeps what it has not passed. */
typedef struct sb_gate {{
    int64_t kind;
    int64_t lasting; /* 1: it stays when its owner dies or leaves */
    int64_t owner;   /* a participant, 0 nobody */
    int64_t since;   /* when that one took it, ns since the epoch; 0 unknown */
    int64_t position, behind; /* all below the position it has passed; and so many are there */
    int64_t holds;   /* 1: it is what holds head back */
    int64_t index;
    int64_t confirms;      /* 1: confirms wait for it: it is in the set of the barrier */
    int64_t holds_barrier; /* 1: it is what holds them back */
    char name[{layout.GATE_NAME_BYTES_MAX + 8}];
}} sb_gate;
/* The gates of a queue: how many there are, up to `room`. */
int64_t sb_gates(sb_queue *queue, sb_gate *gates, int64_t room);

/* Take the lasting gate of this kind and name, or make it, at head or behind what is there: its
 * index.  SB_IN_USE: it is in the hand of somebody who runs. */
int64_t sb_gate_open(sb_queue *queue, int64_t kind, const char *name, int64_t from_now);
/* Where it stands. */
int64_t sb_gate_position(sb_queue *queue, int64_t gate);
/* Our gate has passed all below this position.  SB_STALE: it is not ours. */
int64_t sb_gate_move(sb_queue *queue, int64_t gate, int64_t position);
/* It stays where it is, in nobody's hand; with `leaves` it goes, and the barrier forgets it. */
int64_t sb_gate_close(sb_queue *queue, int64_t gate, int64_t leaves);
/* Confirms of this durable queue wait for our gate as well from now on (core/barrier.py): the
 * position below which all is confirmed now.  The gate has passed all that is confirmed as soon as
 * it has come there. */
int64_t sb_barrier_join(sb_queue *queue, int64_t gate);
/* They do not wait for this gate any more, whosever it is: who waited for it alone is woken. */
int64_t sb_barrier_leave(sb_queue *queue, int64_t gate);

typedef struct sb_follower sb_follower;

typedef struct sb_follower_options {{
    const char *name; /* of its gates */
    int64_t kind;     /* of its gates: SB_GATE_REPLICA, ... */
    int64_t lasting;  /* 1: the gates stay when it is closed, and whoever opens one of this name
                       * goes on where they stand; SB_IN_USE: somebody who lives has them */
    int64_t follows;  /* SB_FOLLOW_ADDED, SB_FOLLOW_DURABLE or SB_FOLLOW_ALL */
    int64_t from_now; /* 1: a gate that is new stands behind what is there */
    int64_t skips;    /* 1: messages that are done with already are passed over */
    int64_t tells;    /* 1: SB_RECORD_QUEUE when a queue comes, SB_RECORD_QUEUE_GONE when it goes */
}} sb_follower_options;

typedef struct sb_follower_batch {{
    void *buffer; /* 8 bytes aligned */
    int64_t room;
    int64_t most;    /* so many messages at most; 0: as many as there is room for */
    int64_t retired; /* 1: what was retired since it was asked for last, too */
    int64_t moment;  /* 1: no more than stood in the queues at one moment, with each transaction on
                      * durable queues as a whole; read until `whole` */
    int64_t bytes, records, messages; /* that were written; messages among the records */
    int64_t whole;  /* 1: there is no more of the moment */
    int64_t needed; /* with SB_TOO_SMALL: room for the record that comes next */
}} sb_follower_batch;

/* Follow queues of this vhost.  Of one thread at a time; before the connection is freed, close. */
int64_t sb_follower_open(sb_connection *connection, const sb_follower_options *options,
                         sb_follower **follower);
/* Follow this queue too: its number in the records. */
int64_t sb_follower_add(sb_follower *follower, sb_queue *queue);
/* Read what came since, of all queues in turn: how many records.  They are those of the journal's
 * files (ipc/journal/format.h): a head of 32 bytes, the body, zeros up to a multiple of 8.  A
 * message's body is its chunk.  The head has kind, queue, position and length; its frame and CRCs
 * are 0, for whoever writes it to a file seals it there.
 * Of a durable queue, what the journal has.  SB_EMPTY; SB_TOO_SMALL; SB_STALE: a gate is not ours
 * any more. */
int64_t sb_follower_read(sb_follower *follower, sb_follower_batch *batch);
/* All below this position of a queue is dealt with: its gate moves there. */
int64_t sb_follower_release(sb_follower *follower, int64_t number, int64_t position);
/* All that was read is. */
int64_t sb_follower_release_all(sb_follower *follower);
/* The same of a queue that nobody else takes from: what nobody has below the position is done with,
 * and then its gate moves there. */
int64_t sb_follower_retire(sb_follower *follower, int64_t number, int64_t position);
typedef struct sb_follower_place {{
    int64_t gate, next, end; /* where the gate stands, what is read next, where the queue ends */
    int64_t high, low;       /* the identity of the queue: made again, it has another */
}} sb_follower_place;
int64_t sb_follower_stands(sb_follower *follower, int64_t number, sb_follower_place *place);
/* Read on from this position of a queue, at or behind its gate. */
int64_t sb_follower_seek(sb_follower *follower, int64_t number, int64_t position);
/* Wait until there may be something to read: SB_OK; SB_EMPTY: not in time; SB_INTERRUPTED.  Or
 * until the word at `control` is not what was seen, unless that is NULL. */
int64_t sb_follower_wait(sb_follower *follower, const int64_t *control, int64_t seen,
                         int64_t timeout_ns);
/* Lasting gates stay where they are; with `leaves` they go as well. */
void sb_follower_close(sb_follower *follower, int64_t leaves);
"""


def private_enumerators() -> list[str]:
    kinds = [f"    SB_GATE_{name.upper()} = {number}," for number, name in enumerate(KINDS)]
    return [*kinds, "    SB_FOLLOW_ADDED,", "    SB_FOLLOW_DURABLE,", "    SB_FOLLOW_ALL,"]
