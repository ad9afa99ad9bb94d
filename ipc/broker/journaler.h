/* The journaler's state, for its files: followed.c (the queues), snapshot.c (what is told of them),
 * moment.c, gather.c (their messages), lost.c, full_disk.c, unfinished.c (frames that some replica
 * does not have yet), replica.c (their gates), unplaced.c (messages of transactions that wait for
 * room), standing.c (who is live and in sync), turn.c, and journaler.c, the thread. */

#ifndef SHMBROKER_BROKER_JOURNALER_H
#define SHMBROKER_BROKER_JOURNALER_H

#include "broker/broker.h"
#include "commit/commit.h"
#include "follower/follower.h"
#include "journal/end.h"
#include "ring/ring.h"

#define FRAME_BYTES (INT64_C(1) << 20) /* gathered at most; a larger one gains nothing */

typedef struct followed {
    ready_one ready; /* there may be something to write */
    sb_queue *queue;
    int64_t number; /* in the journal */
    sb_port port;
    sb_cursor cursor;
    bool is_declared; /* the journal knows that it is there */
    bool follows;     /* and that it follows a queue of another broker */
    int64_t tail, head; /* at the moment that is written */
    int64_t seen;       /* the head, while the disk is full */
    retired_set done;   /* and what was done with above the head, at one before */
    int64_t safe;    /* the gate stands here */
    int64_t replica_gates[REPLICAS_MAX]; /* 1 + the index of each one's, 0: it has none here */
    int64_t written; /* and the disk has what is below */
    int64_t adopted; /* and stood there when we took over */
    int64_t retired; /* the journal knows that all below is */
    uint64_t above;  /* a digest of what it knows to be done with above */
    int64_t until;   /* what is below is written before it stops, or holds */
    dedup_log once;
    recorder recorder; /* of its times from publish to the disk; an inbox's are its queue's */
    int64_t *published; /* when what is staged was, as far as it is recorded */
    int64_t published_count, published_room;
} followed;

/* Gates go there; NULL: the queue is gone. */
typedef struct gate_move {
    followed *queue;
    int64_t position;
} gate_move;

/* A message of a committed transaction that has no place in its ring yet. */
typedef struct unplaced {
    struct unplaced *next;
    followed *in;
    int64_t participant, serial; /* whose commit, and which */
    int64_t where, origin;       /* the chunk, and its number */
    int64_t id;                  /* of its records */
    int64_t until; /* all below is looked through: then it is over, placed or not; 0: not yet */
    bool is_staged;
    int64_t length;
    char chunk[];
} unplaced;

/* A frame that the disk has. */
typedef struct unfinished {
    struct unfinished *next;
    int64_t number;
    int64_t whole;  /* so many transactions are, with it */
    int64_t count, room;
    gate_move *moves;
} unfinished;

/* An end that counts, with a gate in each durable queue. */
typedef struct replica {
    bool has_gates;
    char name[END_NAME_ROOM];
    int64_t done;     /* it has all frames up to this number */
    int64_t whole;    /* so many transactions it has */
    unfinished *next; /* the first frame of which its gates have not moved, NULL: of all */
} replica;

/* What others want of the next turn, and what came of it: all of it under the mutex. */
typedef struct standing {
    pthread_mutex_t mutex;
    char *body, *news; /* that holds, and that is to be written; or NULL */
    int64_t length, news_length;
    int64_t wanted, staged, synced; /* they count */
    int64_t number; /* of the frame that has the one that was synced last */
    int64_t last;   /* of the last frame, when something was told */
    int64_t hold, held; /* the one that is asked for, 0: none; and the one that was told */
    int64_t holds;      /* how many there were */
    bool serves_again; /* who waits for messages is to look */
    int event; /* counted up when there is something to be told; -1: nobody is told */
} standing;

struct sb_journaler {
    standing standing;
    sb_connection *connection;
    sb_journal *journal;
    ends *ends; /* of the journal */
    int64_t news; /* of them, that we know */
    replica replicas[REPLICAS_MAX]; /* by their numbers */
    unfinished *first_frame, *last_frame, *spare_frames;
    unfinished *synced; /* the last, while the journal's gates have not moved */
    int64_t durable;    /* so many transactions are on disk */
    int64_t noted;      /* the number of the last frame that was noted */
    int64_t marked;     /* the hold of which it is known what is to be written before */
    int folder; /* the journal's, to be looked at only */
    struct {
        bool runs; /* or has ended, and its code was not looked at */
        pthread_t thread;
        int64_t epoch, code;
        char why[256];
    } beginning;
    pthread_t thread;
    bool runs;
    _Atomic int64_t control, stopping;
    _Atomic int64_t code; /* SB_OK while it works; SB_DISK_FULL while it waits for room */
    followed **queues;
    sb_wait *waits;
    int64_t count, room;
    following following; /* of which those are */
    ready_set ready;
    bool passes;       /* this turn is about all of them, else about those that are ready */
    int64_t passed_at; /* when one was last */
    int64_t generation;  /* of the catalog, when that was looked at */
    uint64_t digest;     /* of the exchanges and bindings that the journal has */
    int64_t retired_at, above_at; /* when heads, and what is above them, were looked at last */
    commit_gate commit_gate;
    /* how many transactions at the moment; and of which all is in the journal */
    int64_t begun, whole;
    unplaced *unplaced; /* what they have still to publish, in their order */
    int64_t unplaced_id; /* the last that was given */
    int64_t unplaced_seen[L_PARTICIPANTS]; /* the serial of its commit of which that is known */
    int64_t inboxes; /* followed: so many durable queues have paged */
    bool owes;       /* the reserve is in use for what comes out of pages, and for that alone */
    int64_t owes_at; /* when that was looked at last */
    int64_t messages, bytes, mapped;
    int64_t commits, cleared; /* cleared: how many there were when it was looked what can go */
    int64_t ahead; /* of what is staged, so much was staged when the disk was told of it last */
    int64_t spin_ns;
    audit audit;
    bool lists_anew; /* the audit is done: all ends are known, and not listed yet */
    int64_t frame_bytes; /* gathered at most, unless a transaction has more */
    bool begins;         /* the journal has no segment yet, as there was no room for it */
    bool audits;         /* it was not read */
    fence fence;
    _Atomic int64_t *beat; /* told when each turn began, or NULL */
    char why[512];         /* the journaler has ended */
};

/* --- followed.c ------------------------------------------------------------------------------- */

/* Move head as far as it goes, and see which messages behind it are done with; not `all`: only as
 * far as transactions have acknowledged. */
int64_t followed_look_above(followed *each, bool all);
/* When it was published, for followed_count_durable. */
void followed_note_published(followed *each, const sb_message *message);
/* What was noted is on the disk now. */
void followed_count_durable(followed *each);
void followed_free(followed *freed);
/* What a turn is about: all of them, or those that are ready. */
int64_t journaler_concerned(const sb_journaler *journaler);
followed *journaler_concerns(const sb_journaler *journaler, int64_t index);
/* At the beginning, before the first look. */
int64_t journaler_follow(sb_journaler *journaler);
/* If something was declared or deleted: follow what is durable. */
int64_t journaler_look_at_queues(sb_journaler *journaler);
/* And stage exchanges and bindings, if they have changed: all that there were at the moment. */
int64_t journaler_stage_catalog(sb_journaler *journaler);

/* --- snapshot.c ------------------------------------------------------------------------------- */

/* How far it is retired, if that is news; and what is done with above that. */
int64_t followed_stage_retired(sb_journaler *journaler, followed *each);
int64_t followed_stage_retired_above(sb_journaler *journaler, followed *each);
/* That it is there, if the journal does not know. */
int64_t followed_stage_news(sb_journaler *journaler, followed *each);
/* What a new segment begins with: all that must be known but the messages. */
int64_t journaler_snapshot(sb_journal *journal, void *context);

/* --- moment.c --------------------------------------------------------------------------------- */

/* See tails and heads at one moment; `above`: and what is done with above the heads.  `passes`: of
 * all queues, else of those that have rung, if that is enough. */
int64_t journaler_see_a_moment(sb_journaler *journaler, bool passes, bool above);

/* --- gather.c --------------------------------------------------------------------------------- */

/* The ring of a queue that pages: its consumers wait for what is there. */
bool followed_comes_out_of_pages(const followed *each);
/* While the reserve is in use, what stays is not to go there, unless a transaction is in it.  An
 * inbox stays until the pager has room; any other queue, perhaps, for ever. */
bool followed_is_held_back(const sb_journaler *journaler, const followed *each);
/* And its head with it: what has replaced older values is not written. */
bool followed_keeps_head(const sb_journaler *journaler, const followed *each);
/* Stage what is new at one moment; `all`: also what could wait. */
int64_t journaler_stage_all(sb_journaler *journaler, bool all, int64_t now);

/* --- lost.c ----------------------------------------------------------------------------------- */

/* What its audit finds: these messages; a segment that cannot be read. */
void journaler_found(int64_t queue, int64_t first, int64_t last, void *context);
void journaler_found_damage(const char *what, void *context);
/* All that is confirmed is looked for in the journal from now on. */
int64_t journaler_begin_audit(sb_journaler *journaler);
/* What is not in the journal any more, a frame at a time: publishers do not wait for all of it. */
int64_t journaler_stage_lost(sb_journaler *journaler);
/* Once that is committed: list the segments, of which all ends are known now. */
int64_t journaler_list_anew(sb_journaler *journaler);

/* --- full_disk.c ------------------------------------------------------------------------------ */

/* Write what makes segments dead, ahead of what waits or together with it. */
int64_t journaler_make_room(sb_journaler *journaler);
/* Consumers of a queue that pages cannot take what is in its ring, in what waits to be written or
 * to be gathered behind that. */
bool journaler_may_borrow(sb_journaler *journaler);
/* There is room, or only for what comes out of pages: then it is looked again after a while. */
void journaler_tell_room(sb_journaler *journaler);
/* Say that the disk is full, and wait a moment: SB_OK to try again. */
int64_t journaler_wait_for_room(sb_journaler *journaler, int64_t code);

/* --- unfinished.c ----------------------------------------------------------------------------- */

/* The disk has what was staged. */
int64_t unfinished_note(sb_journaler *journaler);
/* Where all gates go with the last frame, for a replica that has come. */
int64_t unfinished_note_all(sb_journaler *journaler);
/* All transactions that were begun are in frames that the disk has. */
void unfinished_whole(sb_journaler *journaler);
/* Confirm what the disk has and what replicas have: the caller has just looked at the fence. */
int64_t unfinished_confirm(sb_journaler *journaler);
/* The same with a look at the fence, if there is any; and drop ends that do not progress. */
int64_t unfinished_look(sb_journaler *journaler);
/* This queue is freed. */
void unfinished_forget(sb_journaler *journaler, const followed *gone);
void unfinished_free(sb_journaler *journaler);

/* --- replica.c -------------------------------------------------------------------------------- */

/* Some replica has come, has gone, or is further. */
bool replicas_have_news(const sb_journaler *journaler);
/* Give gates to those that have come, and take them from those that have gone: the caller has just
 * looked at the fence. */
int64_t replicas_look(sb_journaler *journaler);
/* Move the gates of those that are further. */
void replicas_move(sb_journaler *journaler);
/* A queue has come: a gate for each of them, and none for those of a former journaler. */
void replicas_follow(sb_journaler *journaler, followed *each);
/* So many transactions all of them have, -1: there is none. */
int64_t replicas_whole(const sb_journaler *journaler);
/* We end: what they do not have is confirmed by nobody before the next one drops them. */
void replicas_put_down(sb_journaler *journaler);

/* --- unplaced.c ------------------------------------------------------------------------------- */

/* Before the tails of a moment: which messages have no place yet, of commits that the commit gate
 * has helped.  `helps`: those from before may have room by now. */
int64_t unplaced_see(sb_journaler *journaler, bool helps);
/* Before the messages of a frame: those that are new; and all of them when a segment begins. */
int64_t unplaced_stage(sb_journaler *journaler);
int64_t unplaced_stage_all(sb_journaler *journaler);
/* This message is about to be staged: perhaps it was one. */
int64_t unplaced_has_place(sb_journaler *journaler, const followed *in, const void *chunk);
/* Behind the messages of a frame: such as will be none. */
int64_t unplaced_stage_over(sb_journaler *journaler);
/* All that was staged is on the disk. */
void unplaced_committed(sb_journaler *journaler);
/* This queue was deleted; NULL: all of them. */
void unplaced_forget(sb_journaler *journaler, const followed *gone);
/* Whether the journal may have some, when another one has written it. */
bool unplaced_was_left(sb_connection *connection);

/* --- standing.c ------------------------------------------------------------------------------- */

typedef struct standing_look {
    bool is_new;   /* there is one to be written */
    int64_t hold;  /* nothing else is to be written: which hold it is, 0: none */
    bool is_held;  /* and all that was there is written since */
    bool has_hold; /* to be told of: that has to wait while an end is full */
    bool serves_again;
} standing_look;
/* What others want at one moment; what they want later counts `control` up. */
standing_look standing_seen(sb_journaler *journaler);
/* It is to be in the next frame, if it is new. */
int64_t standing_stage(sb_journaler *journaler);
/* What a segment begins with. */
int64_t standing_stage_held(sb_journaler *journaler, sb_journal *journal);
/* What was staged is synced. */
void standing_committed(sb_journaler *journaler);
/* If it serves again: wake who waits for messages. */
void standing_serves(sb_journaler *journaler);
/* A turn is over that knew of this hold, and all that was there is written; or of none, 0.  It says
 * nothing of one that began meanwhile. */
void standing_rests(sb_journaler *journaler, int64_t hold);
void standing_free(sb_journaler *journaler);

/* --- turn.c ----------------------------------------------------------------------------------- */

/* Write what is new, and move the gates: how many bytes of the log, or a code. */
int64_t journaler_turn(sb_journaler *journaler, bool all);

/* --- journaler.c ------------------------------------------------------------------------------ */

/* That it runs, for whoever watches. */
void journaler_beat(sb_journaler *journaler);
/* What is there now is to be written before it stops, or holds. */
void journaler_mark(sb_journaler *journaler);
/* Some of that is not. */
bool journaler_is_behind(const sb_journaler *journaler);
/* The code that others look at. */
void journaler_told(sb_journaler *journaler, int64_t code);

#endif
