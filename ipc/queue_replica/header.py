"""The part of shmbroker_private.h that is of replicas of single queues."""

from __future__ import annotations

QUEUE_REPLICAS = """\
/* --- replicas of single queues: the original --- */

typedef struct sb_original sb_original;

typedef struct sb_original_batch {
    void *buffer; /* 8 bytes aligned */
    int64_t room;
    int64_t bytes, records, messages; /* that were written; messages among the records */
    int64_t whole;  /* 1: with it the reader has what stood in all queues at one moment, and each
                     * transaction as a whole */
    int64_t more;   /* 1: there was no room for all of it */
    int64_t held;   /* with SB_EMPTY: 1, a transaction stands half way, and nothing was looked at */
    int64_t needed; /* with SB_TOO_SMALL: room for the record that comes next */
} sb_original_batch;

typedef struct sb_original_place {
    int64_t high, low;         /* the identity of the queue: made again, it has another */
    int64_t head, tail, slots; /* as it stands now; of a durable queue what is confirmed */
    int64_t next;              /* what is read next */
    int64_t pages;             /* 1: what finds no room goes to pages, which are not read */
} sb_original_place;

/* Read queues without gates: whoever reclaims does not wait for it.  Of one thread at a time. */
int64_t sb_original_open(sb_connection *connection, sb_original **original);
/* This one too, under this number, from a position on. */
int64_t sb_original_add(sb_original *original, sb_queue *queue, int64_t number, int64_t from);
int64_t sb_original_drop(sb_original *original, int64_t number);
/* SB_NOT_FOUND: it was deleted. */
int64_t sb_original_stands(sb_original *original, int64_t number, sb_original_place *place);
/* Read on: how many records; SB_EMPTY: nothing has changed; SB_TOO_SMALL. */
int64_t sb_original_read(sb_original *original, sb_original_batch *batch);
void sb_original_close(sb_original *original);
/* What is published to this queue is confirmed only below this position, because replicas that are
 * waited for lack the rest; -1: none is waited for. */
int64_t sb_original_copied(sb_queue *queue, int64_t position);

/* --- and the copy --- */

/* Make the queue of this name a replica: one with its slots and settings that is empty and begins
 * at this position takes its place.  `of`: what it follows, for whoever runs it. */
int64_t sb_replica_declare(sb_connection *connection, const char *name, int64_t position,
                           const void *of, int64_t length);
/* What the queue follows: the length; 0: it is no replica. */
int64_t sb_replica_of(sb_queue *queue, void *buffer, int64_t capacity);
/* It may be deleted: there is nothing any more that it follows; or it may not again. */
int64_t sb_replica_deletable(sb_queue *queue, int64_t deletable);
/* It follows no more, and is a queue like any other: OK; of a durable one what to wait for until
 * that is confirmed (`sb_replica_detached`). */
int64_t sb_replica_detach(sb_queue *queue);
int64_t sb_replica_detached(sb_connection *connection, int64_t stamp, int64_t timeout_ns);

typedef struct sb_copies sb_copies;

typedef struct sb_copy_place {
    int64_t next; /* all below is staged, or there */
    int64_t head, tail, slots;
    int64_t staged; /* messages that are not shown yet */
    int64_t code;   /* SB_OK; or why it cannot follow: nothing more is put into it */
    int64_t failed_at; /* the position that has no place here */
    int64_t revived;   /* 1 + a position that is done with here, and not there any more: an original
                        * whose host died has lost that.  Begin anew */
} sb_copy_place;

/* Bring replicas to where their originals are: all of them at once.  Of one thread at a time. */
int64_t sb_copies_open(sb_connection *connection, sb_copies **copies);
/* This one has this number in the records; `later` is added to times of expiry. */
int64_t sb_copies_add(sb_copies *copies, sb_queue *queue, int64_t number, int64_t later);
int64_t sb_copies_drop(sb_copies *copies, int64_t number);
/* Stage what the records have: nobody sees it yet.  SB_INVALID: they are no records. */
int64_t sb_copies_take(sb_copies *copies, const void *records, int64_t bytes);
/* All that is staged is there, and what the originals are done with is not: how many have failed,
 * if any did. */
int64_t sb_copies_show(sb_copies *copies);
/* 1: what was shown is confirmed, of replicas that are durable; 0: do not show the next moment. */
int64_t sb_copies_confirmed(sb_copies *copies);
int64_t sb_copies_stands(sb_copies *copies, int64_t number, sb_copy_place *place);
void sb_copies_close(sb_copies *copies);
"""
