/* Followers: who reads what comes into queues without taking it, behind gates of its own.  Which
 * queues those are is followed in the catalog, once for all who do (following.c); which of them
 * have news is told by one bell (ready.c); what of them is retired is looked at in one place
 * (retired.c).
 *
 * The room stands on catalog, ring, vhost and base. */

#ifndef SHMBROKER_FOLLOWER_ROOM_H
#define SHMBROKER_FOLLOWER_ROOM_H

#include "base/base.h"

/* --- following.c ------------------------------------------------------------------------------ */

/* What the user of a following is told, in its own thread. */
typedef struct following_user {
    /* A queue that is to be followed is there: what is kept of it goes to *kept, NULL: nothing.
     * Its handle is held until `gone`.  SB_NOT_FOUND: it was deleted while we looked. */
    int64_t (*came)(void *context, sb_queue *queue, const char *entry, void **kept);
    /* It was deleted, also if one of its name is there: SB_OK, and what was kept is freed. */
    int64_t (*gone)(void *context, void *kept);
} following_user;

typedef struct following_row {
    sb_queue *queue;
    void *kept;
} following_row;

typedef struct following {
    sb_connection *connection;
    const following_user *user;
    void *context;
    int64_t flags; /* queues are followed that have all of these */
    following_row *rows;
    int64_t count, room;
    int64_t generation;  /* of the catalog, when all that it says was followed */
    int64_t changes;     /* so many have come or gone */
    int64_t *references; /* by row: what is followed there, 0 nothing */
} following;

int64_t following_begin(following *of, sb_connection *connection, int64_t flags,
                        const following_user *user, void *context);
/* If something was declared or deleted: tell the user.  A code of it ends the look, which is then
 * to be made again. */
int64_t following_look(following *of);
/* Follow this one too, whatever its flags. */
int64_t following_add(following *of, int64_t reference, following_row *row);
/* Whether there is something to look at. */
bool following_is_behind(const following *of);
/* Let go of all; `gone` is told of none. */
void following_end(following *of);

/* --- ready.c ---------------------------------------------------------------------------------- */

/* A ring that one follows, in what is kept of its queue. */
typedef struct ready_one {
    void *of;                 /* what is kept */
    struct ready_one *beside; /* the next whose row falls on the same bit of the bell's set */
    int64_t bit;
    int64_t at; /* among those that are ready, -1: it is not */
} ready_one;

/* Which of many rings may have news. */
typedef struct ready_set {
    sb_connection *connection;
    int64_t bell; /* ours in the arena, -1: there was none left, and all are always ready */
    ready_one *rung[L_RUNG_ROWS];
    ready_one **ready;
    int64_t count, members, room;
} ready_set;

/* With this bell. */
void ready_begin(ready_set *of, sb_connection *connection, int64_t bell);
/* One more, which is ready; and one less. */
int64_t ready_add(ready_set *to, ready_one *one, const sb_queue *queue, void *of);
void ready_drop(ready_set *from, ready_one *one);
/* Look at it when something is read next. */
void ready_mark(ready_set *in, ready_one *one);
void ready_mark_all(ready_set *of);
/* Take what the bell has, and those are ready: whether it had any. */
bool ready_take_rung(ready_set *of);
/* If there is nothing behind the cursor, it is not ready until its ring rings: whether it is so. */
bool ready_rest(ready_set *in, ready_one *one, sb_cursor *cursor);
/* It is not ready any more: its ring rings, or nothing comes. */
void ready_leave(ready_set *in, ready_one *one);
/* The word to sleep on, armed: then look once more. */
system_word ready_armed(const ready_set *of);
/* The bell goes back, to whoever wants one. */
void ready_end(ready_set *of);

/* --- gate.c ----------------------------------------------------------------------------------- */

/* The lasting gate of this kind and name, or SB_NO_GATE. */
int64_t gate_find(const sb_queue *queue, int64_t kind, const char *name);
/* Take it from whoever had it: where it stands, or SB_REVOKED.  The caller holds a lock that says
 * that the former owner has ended. */
int64_t gate_seize(sb_port *port, const sb_queue *queue, int64_t gate);

typedef struct gate_wish {
    int64_t kind;
    const char *name;
    bool lasting;
    bool from_now; /* if it is new */
} gate_wish;
/* A gate for the owner of this port; a lasting one of the name, if it is there: its index.
 * SB_IN_USE: that is in the hand of somebody who runs. */
int64_t gate_take(sb_queue *queue, sb_port *port, const gate_wish *wish);

/* Gates of this kind, and of this name if one is given, that are in nobody's hand: they leave, and
 * who waits for them goes on. */
void gate_drop_left(sb_queue *queue, sb_port *port, int64_t kind, const char *name);

/* --- barrier.c -------------------------------------------------------------------------------- */

/* Neither the barrier of this ring nor its head waits for this gate any more: it is no more. */
int64_t gate_end(sb_port *port, int64_t gate);

/* --- retired.c -------------------------------------------------------------------------------- */

/* What is done with of a queue, at or above its head. */
typedef struct retired_set {
    unsigned char *bits; /* bit i: position head + i */
    int64_t head, length, room;
    uint64_t digest; /* of head and positions */
} retired_set;

/* Below that all is done with and reclaimed, as the ring says now. */
int64_t retired_head(const sb_queue *queue);
/* Move head as far as it goes, and see what is done with between it and `end`. */
int64_t retired_look(retired_set *of, const sb_queue *queue, sb_port *port, int64_t end);

#endif
