/* The broker's part of a vhost: the journaler, which writes durable queues into the journal, and
 * restoring a vhost from its journal.  It stands on all rooms that a client has, and on journal.
 * The journaler's own state is in journaler.h. */

#ifndef SHMBROKER_BROKER_ROOM_H
#define SHMBROKER_BROKER_ROOM_H

#include "base/base.h"

/* --- audit.c ---------------------------------------------------------------------------------- */

typedef struct audited {
    int64_t number, low, high; /* of a queue: it had these positions when we took over */
    int64_t next;              /* what is below is in the journal, or staged */
    unsigned char *found;      /* a bit for each that the journal has */
} audited;

typedef struct audit {
    audited *queues; /* by number */
    int64_t count, room;
    bool runs, is_read;
    int64_t damaged; /* segments */
    int64_t missed;  /* messages that the journal had lost */
    int64_t lost;    /* and the ring as well */
    void *copy;
    int64_t copy_room;
} audit;
/* A queue, with the positions that stood there at the takeover. */
int64_t audit_add(audit *to, int64_t number, int64_t low, int64_t high);
/* All are added. */
void audit_begin(audit *of);
void audit_end(audit *of);
/* The journal has these messages. */
void audit_found(audit *of, int64_t number, int64_t first, int64_t last);
/* Stage what is missing of a queue, until so many bytes are staged: SB_OK if that was all, SB_EMPTY
 * if there may be more. */
int64_t audit_stage(audit *of, sb_queue *queue, sb_port *port, int64_t number, sb_journal *journal,
                    int64_t most);

/* --- open_numbers.c --------------------------------------------------------------------------- */

typedef struct number_range {
    int64_t first, last;
} number_range;

typedef struct open_numbers {
    int64_t count, room;
    number_range *ranges;
} open_numbers;
/* The first of the open numbers that follow each other up to this one; 0: it is not open. */
int64_t open_begin_of(const open_numbers *of, int64_t number);
int64_t open_add(open_numbers *of, int64_t first, int64_t last);
/* This one is seen, and `*number` was the highest that was: it is open no more, or leaves a gap. */
int64_t open_note(open_numbers *of, int64_t *number, int64_t sequence);
void open_cut(open_numbers *of, int64_t last);
/* Who knows the numbers up to `known` but for the others has seen as well what he knows. */
int64_t open_merge(open_numbers *of, int64_t *number, const open_numbers *other, int64_t known);
void open_end(open_numbers *of);

/* --- origins.c -------------------------------------------------------------------------------- */

/* How far streams from elsewhere are in what is written of a queue. */
typedef struct origin_log {
    sb_queue *queue;
    int64_t number; /* in the journal */
    int64_t count;
    struct known_origin *known; /* by entry */
    int64_t passed; /* so many numbers without a message were seen, */
    bool sees;      /* and these are still to be written */
} origin_log;
int64_t origin_log_begin(origin_log *of, sb_queue *queue, int64_t number);
/* This message is in the ring, and not in the journal. */
int64_t origin_log_leave_out(origin_log *of, const void *chunk);
/* And these were all. */
int64_t origin_log_left_out(origin_log *of);
/* With the record of each message, before it. */
int64_t origin_log_note(origin_log *of, int64_t position, const void *chunk, sb_journal *journal);
/* Before the tails of a moment: numbers that moved without a message; and all below these tails is
 * staged. */
int64_t origin_log_see(origin_log *of);
int64_t origin_log_stage_seen(origin_log *of, sb_journal *journal);
/* When a segment begins. */
int64_t origin_log_stage(const origin_log *of, sb_journal *journal);
void origin_log_end(origin_log *of);

/* The same as it is read when the queue is restored. */
typedef struct origin_read {
    struct known_origin *known; /* by entry, up to the end */
    int64_t end;
} origin_read;
int64_t origin_read_record(origin_read *of, const sb_journal_record *record);
int64_t origin_read_note(origin_read *of, int64_t position, const void *chunk);
int64_t origin_read_restore(const origin_read *of, sb_port *port, segment *ring);
void origin_read_end(origin_read *of);

/* --- deduplication.c -------------------------------------------------------------------------- */

typedef struct dedup_log {
    sb_queue *queue;
    int64_t number;  /* in the journal */
    /* ids up to here are in the journal, or staged: with a message, or in a list */
    int64_t serial;
    int64_t listed;  /* in lists */
    int64_t listing; /* and in those that are staged */
    struct {
        int64_t identity, sequence;
    } *numbers; /* by index in the table of producers; NULL none */
    origin_log origins;
} dedup_log;
/* Of a queue that is followed from its gate on. */
int64_t dedup_log_begin(dedup_log *of, sb_queue *queue, int64_t number, const sb_cursor *gate);
/* With the record of each message that counts; before it, what it needs is staged. */
int64_t dedup_log_note(dedup_log *of, sb_port *port, const sb_message *message,
                       sb_journal *journal);
/* When a segment begins; all messages below `until` are staged, or were. */
int64_t dedup_log_stage(dedup_log *of, sb_port *port, int64_t until, sb_journal *journal);
/* What was staged is on the disk. */
void dedup_log_committed(dedup_log *of, sb_journal *journal);
int64_t dedup_log_gone(const dedup_log *of, sb_journal *journal);
/* The segments that had lists may be lost: all of them are staged again with the next ones. */
void dedup_log_again(dedup_log *of);
void dedup_log_end(dedup_log *of);

typedef struct ids_read {
    struct ordered_id *ids;
    int64_t count, room, most;
} ids_read;

/* What is read of it when the queue is restored. */
typedef struct dedup_read {
    ids_read listed, news; /* by serial, and by the position of their messages */
    int64_t until, serial;
    bool pages;
    origin_read origins;
} dedup_read;
/* Of a queue that remembers so many ids, and that pages or does not. */
void dedup_read_begin(dedup_read *of, int64_t most, bool pages);
/* Each message, list and table of producers, as they are read. */
int64_t dedup_read_note(dedup_read *of, sb_port *port, int64_t position, const void *chunk);
int64_t dedup_read_ids(dedup_read *of, const sb_journal_record *record);
int64_t dedup_read_producers(sb_port *port, const sb_journal_record *record);
/* Whether the ring needs more memory for it. */
bool dedup_read_is_any(const dedup_read *of);
/* All was read: into the memory of the ring, whose file is open then. */
int64_t dedup_read_restore(dedup_read *of, sb_port *port, segment *ring);
void dedup_read_end(dedup_read *of);

#endif
