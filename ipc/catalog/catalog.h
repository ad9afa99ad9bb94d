/* The catalog: what a vhost consists of.  Queues, exchanges, bindings and patterns are declared and
 * deleted here, with their settings and owners, and so are their records in the journal.  It stands
 * on ring, and on the journal's way to stage a record. */

#ifndef SHMBROKER_CATALOG_ROOM_H
#define SHMBROKER_CATALOG_ROOM_H

#include "base/base.h"

/* --- declaration.c ---------------------------------------------------------------------------- */

typedef struct declaration_head {
    int64_t identity[2]; /* the queue's; the second is its number in the journal */
    int64_t slots, flags, created;
    int64_t monotonic, realtime; /* one moment by both clocks: expiry is monotonic, of one boot */
    int64_t name_length, settings_length;
} declaration_head;
#define DECLARATION_ROOM (sizeof(declaration_head) + L_NAME_BYTES_MAX + L_PAGE_BYTES)
/* The body that declares a queue, from its handle and its entry: its length; SB_NOT_FOUND for the
 * schedule of a queue that is gone. */
int64_t declaration_of(sb_queue *queue, const char *entry, char *body);
/* And back: its name, and a page of settings as if it were in a ring.  SB_JOURNAL_DAMAGED. */
int64_t declaration_read(const void *body, int64_t length, declaration_head *head, char *name,
                         char *page);
/* Stage all exchanges, and what they are bound to that lasts; and its digest. */
int64_t catalog_stage(sb_connection *connection, sb_journal *journal, uint64_t *digest);
/* That of what catalog_stage would stage: it is the same as long as this is. */
uint64_t catalog_digest(sb_connection *connection);

/* --- declare_queue.c -------------------------------------------------------------------------- */

/* Whether the dead that go to `first` would come back to this queue, by way of others. */
bool leads_back(sb_connection *connection, const char *name, const char *first, int64_t setting_at);
/* The handle of the queue with this reference; the connection's mutex is held. */
int64_t queue_handle(sb_connection *connection, int64_t reference, sb_queue **queue);
/* The same for who does not hold the mutex: to be left with queue_looked. */
int64_t queue_find(sb_connection *connection, int64_t reference, sb_queue **queue);
/* Make the queue if a pattern wants that: its reference, or SB_NOT_FOUND. */
int64_t queue_create(sb_connection *connection, const char *name);
/* Whether such a queue can be declared: before the lock is taken. */
int64_t queue_check(sb_connection *connection, const char *name, int64_t slots);
/* Make a queue, or find it so: its reference.  This and what follows: under the lock. */
int64_t queue_declare(sb_connection *connection, const char *name, int64_t slots,
                      const sb_settings *settings, int64_t flags);

/* --- delete_queue.c --------------------------------------------------------------------------- */

/* Delete the queue if this says so, under the catalog's lock. */
int64_t queue_delete_if(sb_connection *connection, const char *name, bool (*condition)(sb_queue *));
/* It is no more, nor are its schedule and its inbox; whoever is in one of their lanes finds out. */
void queue_remove(sb_connection *connection, int64_t reference);

/* --- queue_entry.c ---------------------------------------------------------------------------- */

/* Make a queue with a page of settings, as settings_write has it: its reference. */
int64_t queue_add(sb_connection *connection, const char *name, int64_t slots, const char *settings,
                  int64_t flags);
/* The same in place of the queue with this reference, which stays if there can be no other one. */
int64_t queue_replace(sb_connection *connection, int64_t replaced, const char *name, int64_t slots,
                      const char *settings);
/* One more gate, for the broker to adopt: before others know of the ring. */
void ring_add_gate(void *ring, int64_t kind, int64_t position);
/* The ring of a queue in this row, without a name; its name; and its row, once it is filled.
 * All (connection.c) under the catalog's lock. */
int64_t ring_begin(sb_connection *connection, segment *ring, int64_t row, int64_t slots,
                   const char *settings);
int64_t ring_name(sb_connection *connection, const segment *ring, int64_t reference);
int64_t queue_put(sb_connection *connection, int64_t row, const char *name,
                  const declaration_head *declared);
/* The reference of the queue of this name, or SB_NOT_FOUND. */
int64_t reference_of(sb_connection *connection, const char *name);

/* --- exchange_entry.c ------------------------------------------------------------------------- */

/* The reference of an exchange, or SB_NOT_FOUND with what to do. */
int64_t exchange_reference(sb_connection *connection, const char *name);

/* --- binding.c -------------------------------------------------------------------------------- */

/* Bind, under the catalog's lock; twice the same is once.  0: there is no target. */
int64_t binding_add(sb_connection *connection, const sb_binding *asked, int64_t target);

/* --- ownership.c ------------------------------------------------------------------------------ */

/* Whether who declares a queue with these flags owns it. */
bool ownership_begins_with(int64_t flags);
/* The queue of this entry belongs to a participant, if its row is or becomes live. */
void ownership_give(sb_connection *connection, int64_t entry, int64_t id);
/* The participant gives up a queue that it owns: whether it was deleted.  Its blocks wait until the
 * participant's list is gone through, or it forgets the queue itself. */
bool ownership_give_up(sb_connection *connection, int64_t row, int64_t id);
/* The participant leaves or is dead: what it owns is deleted, or goes to others. */
int64_t ownership_end(sb_connection *connection, int64_t id);

/* --- node.c ----------------------------------------------------------------------------------- */

/* It is the name of one of the broker's own queues, or a pattern for those. */
bool is_own(const char *name);
/* It is the name of a queue towards another node. */
bool leads_to_node(const char *name);
/* Or of one that has what is acknowledged in open transactions, and goes with them to another. */
bool goes_to_successor(const char *name);
/* Whether a queue of this name has what a message transfer agent sends to another broker. */
bool leads_to_agent(const char *name);
/* And if it is there because the other broker has asked for it. */
bool has_subscribed(const char *name);
/* It is that of a queue that has what a link, a bridge or an agent is shipping. */
bool is_on_its_way(const char *name);
/* It is the name of a queue in which a broker keeps where groups go: it alone deletes it. */
bool has_routes(const char *name);
#define NODE_BEGINS '@' /* the end of a name that says of which node it is */
/* The reference of the queue towards the node of this temporary queue; SB_NOT_FOUND: there is none,
 * or it is of no other node. */
int64_t node_way(sb_connection *connection, const char *name, int64_t length);

/* --- settings.c ------------------------------------------------------------------------------- */

/* All of these take a page of settings as a ring, or as if it were in one: at
 * L_RING_SETTINGS_AT. */

/* Check settings, and write what is given into a page that is all zero. */
int64_t settings_write(const sb_settings *settings, void *page);
/* Take over what a pattern has and the page has not, but for what is refused; *have: bits
 * SB_SET_*. */
int64_t settings_inherit(void *page, const void *pattern, int64_t refused, int64_t *have);
/* Set what nobody has given; `have`: bits SB_SET_* of what was. */
void settings_default(void *page, int64_t have);
/* Whether the settings go together, once nothing is missing any more: SB_OK or SB_INVALID. */
int64_t settings_finished(const void *page);
/* What of a queue with these settings and flags another member has: L_REPLICATE_*. */
int64_t settings_replicate(sb_connection *connection, const void *page, int64_t flags);
/* The same of a durable queue, or an exchange, that does not say it. */
int64_t replicate_default(sb_connection *connection);
/* How a ring with these settings is taken from: its RING_MODE. */
int64_t settings_mode(const void *page);
/* Whether something that is asked for, and was written, is not what a queue was declared as; the
 * text says what.  What is left out is not asked for. */
bool settings_differ(const void *asked, const void *there, char *text, size_t room);
/* The name at this offset of the page: its length, 0 if there is none. */
int64_t name_in(const void *page, int64_t at, char *name);
/* A queue's name in the settings: its length, 0 if there is none. */
int64_t setting_name(const sb_queue *queue, int64_t at, char *name);

/* --- pattern.c -------------------------------------------------------------------------------- */

/* Complete the settings of a queue of this name and with these flags with those of the patterns
 * that match. */
int64_t patterns_apply(sb_connection *connection, const char *name, void *page, int64_t flags);
/* Whether a queue of this name is to be made when somebody asks for it. */
bool patterns_create(sb_connection *connection, const char *name);
/* Remove what a death in the middle of a change has left. */
void patterns_repair(sb_connection *connection);

/* --- beside.c --------------------------------------------------------------------------------- */

/* The name of the schedule (L_QUEUE_SCHEDULE) or inbox (L_QUEUE_INBOX) of the queue of this
 * reference. */
void beside_name(char *name, int64_t flag, int64_t reference);
/* Its reference, or SB_NOT_FOUND. */
int64_t beside_find(sb_connection *connection, int64_t flag, int64_t reference);
/* One kind of them. */
typedef struct beside {
    int64_t flag;                   /* L_QUEUE_SCHEDULE or L_QUEUE_INBOX */
    int64_t word_at;                /* in the queue's ring: the reference of this one */
    int64_t whose_at;               /* among its settings: whose it is */
    const char *noun;               /* for people */
    int64_t (*make)(sb_queue *queue, const char *name); /* with this name: its reference */
    void (*inherit)(sb_queue *made, const sb_queue *queue); /* what its handle has of the queue's */
} beside;

/* The one that the queue has; NULL, with a code, if it has none.  `known` is where its handle is
 * kept once we know it. */
sb_queue *beside_of(sb_queue *queue, sb_queue *_Atomic *known, const beside *kind, bool makes,
                    int64_t *code);
/* The same, of one that was made; the connection's mutex is held. */
sb_queue *beside_handle(sb_queue *queue, sb_queue *_Atomic *known, const beside *kind,
                        int64_t *code);
/* The first half of an inbox's identity is the second of its queue's: so it is found after the
 * machine was started anew. */
int64_t inbox_identity(sb_connection *connection, const void *settings);
/* Remove those whose queues are gone; under the catalog's lock. */
void beside_repair(sb_connection *connection);

/* --- way.c ------------------------------------------------------------------------------------ */

/* The queue towards a node that has this reference, and its number in answers; NULL: it was
 * deleted, or there is no memory. */
sb_queue *way_of(sb_connection *connection, int64_t reference, int64_t *number);
/* Of an answer: the queue towards another node that has the message, and its position there.  NULL:
 * it is in the queue itself. */
sb_queue *way_at(sb_queue *queue, int64_t *position);

#endif
