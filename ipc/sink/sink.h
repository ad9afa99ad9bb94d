/* The sink: records of a stream from elsewhere go into rings, each exactly once.  A stream has an
 * entry in the table of origins of each ring that it goes to (core/origin.py), owned by the one
 * participant that pours it.  It stands on transaction, exchange, queue, paging and ring. */

#ifndef SHMBROKER_SINK_ROOM_H
#define SHMBROKER_SINK_ROOM_H

#include "base/base.h"
#include "exchange/exchange.h"

/* A ring that the stream goes to. */
typedef struct outlet {
    sb_queue *queue;
    int64_t target; /* of what goes to another node; each has an entry of its own */
    bool passes_on; /* towards another node: records stay for what they are for there */
    int64_t origin; /* our entry in its table */
    bool checks;    /* messages' own ids are compared */
    bool counts;    /* numbers that are left out are open */
    int64_t last;   /* all numbers up to this one are known there, or open; if they do not count:
                     * or known in the inbox */
    int64_t retried; /* the open one that is published now; 0: none */
    struct outlet *inbox; /* of a queue that pages, once it has one */
    struct outlet *tried; /* of an exchange: how far its rings may have the stream */
    struct outlet *next;
} outlet;

typedef struct target_place target_place;
typedef struct journey journey;

/* Where records of one queue go. */
typedef struct destination {
    int64_t number; /* of that queue, -1: of any */
    outlet *ring;   /* of a queue; through an exchange, or to a node: where the marks are */
    sb_exchange *exchange;
    bool is_node; /* each record says which queue or exchange it is for */
    target_place *targets;
    struct destination *next;
} destination;

struct sb_sink {
    sb_connection *connection;
    int64_t identity[2], retention_ns;
    bool checks; /* it comes from whoever has published it first */
    bool counts; /* each of its numbers comes */
    bool rings_count; /* and rings know what is open; through an exchange only its marks do */
    bool stops;  /* before a message that is refused */
    bool arrives; /* it comes from another node, which has said for which queue */
    bool travels; /* it comes over a network link: its messages say so (travelled.c) */
    journey *journey; /* it comes from an agent: where its messages have been (journey.c) */
    outlet *outlets;
    destination *destinations;
    sb_queue *marks; /* the ring that keeps how far streams are in exchanges */
    sb_queue *full;  /* the last one that had no room for a record: full_at */
    bool lacks_memory; /* and it was the arena that had none */
};

/* A part of the caller's buffer on its way. */
typedef struct stretch {
    sb_sink *sink;
    const char *at, *end;
    int64_t later, deadline;
    int64_t *answers;
    sb_poured *told;
    const journey *journey; /* of all its records, if they come from an agent */
} stretch;

/* --- sink.c ----------------------------------------------------------------------------------- */

/* Where records of this queue go; NULL: nowhere. */
destination *destination_of(const sb_sink *sink, int64_t number);

/* --- stream.c --------------------------------------------------------------------------------- */

/* The place of the stream in this ring, and it is ours: SB_IN_USE if somebody else pours it. */
int64_t outlet_open(sb_sink *sink, sb_queue *queue, int64_t target, outlet **opened);
/* The same of its inbox, if it has one, or one is wanted; *inbox: NULL if it has none. */
int64_t outlet_inbox(sb_sink *sink, outlet *of, bool makes, outlet **inbox);
/* The same of a stream by another identity; it is in no list of the sink's. */
int64_t outlet_open_as(sb_sink *sink, sb_queue *queue, const int64_t identity[2],
                       outlet **opened);
/* An identity that belongs to a number of this one. */
void identity_of(const int64_t of[2], int64_t number, int64_t identity[2]);
/* An entry of the table that is nobody's; the catalog's lock is held. */
int64_t outlet_place(sb_queue *queue, sb_port *port);
/* Numbers up to this one are known, whether messages had them or not. */
int64_t outlet_pass(outlet *of, int64_t sequence);
void outlet_close(outlet *closed, bool forgets);
/* This queue has no room; it stays open as long as it is said.  NULL: none is said. */
void full_at(sb_sink *sink, sb_queue *queue);
/* Those of queues that were deleted since, but for the sink's destinations. */
void outlets_forget_deleted(sb_sink *sink);

/* --- record.c --------------------------------------------------------------------------------- */

/* The next record of a stretch: SB_OK; SB_EMPTY, there is none; SB_INVALID, it is none. */
typedef struct poured_record {
    const char *chunk, *next;
    int64_t length, queue, sequence;
    bool is_message;
} poured_record;
int64_t record_next(const char *at, const char *end, poured_record *record);
/* What is to be published of a chunk; SB_INVALID: it contradicts itself, or cannot be published. */
int64_t record_outgoing(const poured_record *record, int64_t later, sb_outgoing *message);

/* --- append.c --------------------------------------------------------------------------------- */

/* Append a stretch to a ring, with an answer for each record: SB_OK, or why the record at
 * part->at waits. */
int64_t outlet_append(outlet *to, stretch *part);
/* The same to the ring itself, of records that leave out none whose number counts. */
int64_t outlet_append_now(outlet *to, stretch *part, int64_t deadline);
void record_answered(stretch *part, const poured_record *record, int64_t what);
bool has_no_room(int64_t code);
/* These positions are in the queue's inbox: for who waits until they are confirmed. */
void answers_in_inbox(sb_queue *queue, int64_t *first, const int64_t *end);

/* --- scheduled.c ------------------------------------------------------------------------------ */

/* Whether it is the schedule of a queue. */
bool outlet_is_schedule(const outlet *to);
struct lane; /* ring/ring.h */
/* What was scheduled elsewhere is scheduled here: its position, or why not. */
int64_t scheduled_publish(outlet *to, struct lane *in, const sb_outgoing *message,
                          const poured_record *record);

/* --- counted.c -------------------------------------------------------------------------------- */

/* All numbers of the stream up to this one are known, or open. */
int64_t stream_last(const outlet *of);
/* Whether the stream has this number open. */
bool is_open(const outlet *of, int64_t number);
/* Before a message with this number, which is above the highest of this table, is published: those
 * that the stream left out are open.  If it is not published after all, they are above the highest
 * number, and the next gap begins anew. */
int64_t gap_opened(const outlet *of, outlet *table, int64_t sequence);
/* Append a stretch of a stream of which each number comes. */
int64_t counted_append(outlet *to, stretch *part);

/* --- routed.c --------------------------------------------------------------------------------- */

/* Publish a stretch through an exchange. */
int64_t destination_route(destination *to, stretch *part);
/* How far the stream is in the exchange of this name, or in this node. */
int64_t destination_marks(sb_sink *sink, const char *name, outlet **marks);

/* --- journey.c -------------------------------------------------------------------------------- */

/* Where records with these properties have been: SB_OK; SB_DUPLICATE, here; SB_INVALID. */
int64_t journey_read(sb_sink *sink, const sb_outgoing *message);
/* Whether they may go on towards this queue, with the target that its binding has. */
bool journey_goes_on(const journey *been, const sb_queue *queue, int64_t target);
/* The identity of the queue of whoever has published a message that waits for an agent, and its
 * properties without that, which have room in `plain`; SB_NOT_FOUND: nobody is to be told. */
int64_t journey_publisher(sb_outgoing *message, char *plain, int64_t identity[2]);
/* What whoever published them wishes: WISHES. */
int64_t journey_wishes(const journey *been);
/* Whether their ids are compared, as when a program publishes here. */
bool journey_compares(const journey *been);
/* As a record goes into this ring. */
void journey_says(const journey *been, const outlet *to, sb_outgoing *message);

/* --- target.c --------------------------------------------------------------------------------- */

/* The queue, or the exchange, that a record of a node is for; SB_NOT_FOUND: there is none. */
int64_t target_look(destination *to, sb_sink *sink, int64_t target, sb_queue **queue,
                    sb_exchange **exchange);
/* All records for an exchange have a target of this kind; and all replies one of this. */
bool is_for_exchange(int64_t target);
bool is_reply(int64_t target);
/* It was deleted: another one may have the name. */
void target_forget(destination *to, int64_t target);
void targets_close(destination *to);

#endif
