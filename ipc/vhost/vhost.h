/* A vhost and who takes part in it: segments, connections, participants, repair. */

#ifndef SHMBROKER_VHOST_ROOM_H
#define SHMBROKER_VHOST_ROOM_H

#include "base/base.h"

/* --- vhost.c ---------------------------------------------------------------------------------- */

bool vhost_name_is_good(const char *name);
int64_t vhost_create(const char *vhost, int64_t arena_bytes, bool restoring);
void vhost_path(char *path, const char *vhost, const char *kind);
void queue_path(char *path, const char *vhost, int64_t reference);
int64_t boot_hash(void);

/* --- connection.c ----------------------------------------------------------------------------- */

#define ADDRESSEES 256

struct sb_connection {
    char vhost[L_CATALOG_NAME_BYTES_MAX + 1];
    segment catalog, arena, participants, transactions;
    int64_t id;            /* ours, as a participant */
    int lock_file;         /* holds the lock on our byte for as long as we live */
    int sweep_file;        /* another description of the same file: whose byte it locks is dead */
    int catalog_lock_file; /* holds the catalog's lock while we change it */
    _Atomic int64_t closed; /* 0, or the code that every call answers */
    _Atomic int64_t left;   /* 1: somebody is leaving for us, or has left */
    int64_t spins;         /* looks of a wait before it sleeps */
    bool spins_as_it_pays; /* nobody has said how long: spinning.c */
    bool waits_in_slices;  /* and answers SB_INTERRUPTED after each: the caller looks for signals */
    trust whose;   /* segments these may be */
    bool restores; /* the vhost; to others it does not exist until that is done */
    pthread_mutex_t mutex;  /* handles, our list of queues, the catalog's lock within the process */
    pthread_mutex_t repair; /* one thread at a time sweeps for us */
    pthread_mutex_t slow;   /* one thread at a time looks for slow consumers */
    pthread_mutex_t settle; /* one transaction of ours at a time is committed */
    int64_t stamp;          /* of the last one on durable queues, 0 if the last was on none */
    int64_t commits, settled; /* how many were committed, and how many of them have happened */
    bool has_record; /* there is memory behind it */
    sb_queue **queues;      /* by row */
    sb_queue *gone;         /* handles of deleted queues that are not let go of: departed.c */
    sb_queue *kept;         /* the same, let go of, until the program closes its handle */
    int64_t looked;         /* the row at which the next search for deleted queues begins */
    struct lane *idle, *idle_last; /* lanes of no queue, to be used again: lane.c */
    int64_t idle_count;
    struct lane *lent;      /* to compiled loops, as ports */
    sb_exchange *exchanges;
    struct requester *_Atomic requesters;      /* queues for replies to us: request.c */
    struct addressee *addressees[ADDRESSEES]; /* queues that we have replied to: reply.c */
    sb_pager *pager;     /* pages the queues of the vhost: pager.c */
    struct clerk *clerk; /* serves the schedules of our queues: clerk.c */
    sb_connection *next;    /* all connections of this process, for fork */
};

/* Whether the dead that go to `first` would come back to this queue, by way of others. */
bool leads_back(sb_connection *connection, const char *name, const char *first, int64_t setting_at);
/* Whether it may change the catalog: SB_OK or why not. */
int64_t change_code(sb_connection *connection);
int64_t connection_lock(sb_connection *connection);
/* The same, or SB_LOCKED at once if another process has the catalog's lock. */
int64_t connection_try_lock(sb_connection *connection);
void connection_unlock(sb_connection *connection);
/* Text of 1 to 255 bytes that may be a name. */
int64_t name_check(const char *kind, const char *name);
/* The handle of the queue with this reference; the connection's mutex is held. */
int64_t queue_handle(sb_connection *connection, int64_t reference, sb_queue **queue);
/* The same for who does not hold the mutex: to be left with queue_looked. */
int64_t queue_find(sb_connection *connection, int64_t reference, sb_queue **queue);
/* Delete the queue if this says so, under the catalog's lock. */
int64_t queue_delete_if(sb_connection *connection, const char *name, bool (*condition)(sb_queue *));
/* Make the queue if a pattern wants that: its reference, or SB_NOT_FOUND. */
int64_t queue_create(sb_connection *connection, const char *name);
int64_t exchange_close(sb_exchange *exchange);
/* Whether such a queue can be declared: before the lock is taken. */
int64_t queue_check(sb_connection *connection, const char *name, int64_t slots);
/* Make a queue, or find it just so: its reference.  This and what follows: under the lock. */
int64_t queue_declare(sb_connection *connection, const char *name, int64_t slots,
                      const sb_settings *settings, int64_t flags);
/* Make a queue with a page of settings, as settings_write has it: its reference. */
int64_t queue_add(sb_connection *connection, const char *name, int64_t slots, const char *settings,
                  int64_t flags);
/* One more gate, for the broker to adopt: before others know of the ring. */
void ring_add_gate(void *ring, int64_t position);
/* It is no more, nor are its schedule and its inbox; whoever is in one of their lanes finds out. */
void queue_remove(sb_connection *connection, int64_t reference);
/* The reference of an exchange, or SB_NOT_FOUND with what to do. */
int64_t exchange_reference(sb_connection *connection, const char *name);
int64_t binding_add(sb_connection *connection, const sb_binding *asked);

/* --- log.c ------------------------------------------------------------------------------------ */

void log_note(sb_connection *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- tidy.c ----------------------------------------------------------------------------------- */

/* The reference that the row of a queue has, or will have once it is live. */
int64_t row_next_reference(sb_connection *connection, int64_t row);
/* No queue is here, and nobody uses the one that was. */
bool row_is_deserted(sb_connection *connection, int64_t row);
/* Remove what is left of changes that a death cut short; under the catalog's lock. */
void catalog_tidy(sb_connection *connection);

/* --- participant.c ---------------------------------------------------------------------------- */

int64_t participant_join(sb_connection *connection, const char *name, bool repairs);
void participant_leave(sb_connection *connection);
/* Note that we use this queue; before its ring is touched. */
int64_t participant_uses(sb_connection *connection, int64_t reference, int64_t use);
/* This participant uses the queue no more; under the catalog's lock.  The last one who used a queue
 * that was deleted frees its memory. */
void participant_forgets(sb_connection *connection, int64_t id, int64_t reference);
/* A descriptor that tells of the participant's death, -1 if there can be none. */
int participant_pidfd(const char *entry);
/* How many use this queue so. */
int64_t participant_users(sb_connection *connection, int64_t reference, int64_t use);
/* How many others have opened this queue for themselves: a deletion would disturb them. */
int64_t participant_others(sb_connection *connection, int64_t reference);
/* We look after all queues, and are in nobody's way. */
void participant_tends(sb_connection *connection);
/* Whether anybody uses this queue, we included. */
bool participant_used(sb_connection *connection, int64_t reference);
/* Whether its process runs: one that was killed and not yet repaired does not. */
bool participant_runs(sb_connection *connection, int64_t id);
/* Who writes the journal of the vhost; false: somebody else does.  It falls with the connection. */
bool participant_lock_journal(sb_connection *connection);
void participant_unlock_journal(sb_connection *connection);
/* The same for who pages its queues; and whether somebody does. */
bool participant_lock_pager(sb_connection *connection);
void participant_unlock_pager(sb_connection *connection);
bool participant_pager_runs(sb_connection *connection);
/* Another who consumes this queue and may own it, 0 if there is none; under the catalog's lock. */
int64_t participant_heir(sb_connection *connection, int64_t reference, int64_t former);
static inline int64_t participant_at(int64_t id)
{
    return L_PARTICIPANTS_AT + id * L_PARTICIPANT_BYTES;
}

/* Where it is noted how far our transaction is, or that of another. */
static inline void *participant_transaction(sb_connection *connection, int64_t id)
{
    return (char *)connection->participants.memory + participant_at(id) +
           L_PARTICIPANT_TRANSACTION_AT;
}

/* --- ownership.c: under the catalog's lock, but for ownership_end ----------------------------- */

bool ownership_begins_with(int64_t flags);
/* The queue of this entry belongs to a participant, if its row is or becomes live. */
void ownership_give(sb_connection *connection, int64_t entry, int64_t id);
/* The participant gives up a queue that it owns: whether it was deleted.  Its blocks wait until the
 * participant's list is gone through, or it forgets the queue itself. */
bool ownership_give_up(sb_connection *connection, int64_t row, int64_t id);
/* The participant leaves or is dead: what it owns is deleted, or goes to others. */
int64_t ownership_end(sb_connection *connection, int64_t id);

/* --- departed.c ------------------------------------------------------------------------------- */

/* Let go of deleted queues, as far as nobody is in a call with them: of all, or of some. */
void departed_forget(sb_connection *connection);
void departed_some(sb_connection *connection);
/* This queue was deleted by us just now; the caller looks at it, and no longer does after this. */
void departed_shut(sb_queue *queue);
/* The mutex is held: this handle, out of the table of rows, is one of a deleted queue. */
void departed_add(sb_queue *queue);
/* A call for a message that is still in hand has found its queue deleted: it is in hand no more. */
void departed_dealt_with(sb_queue *queue, const sb_message *message);
/* At the end of the connection. */
void departed_free(sb_connection *connection);

#endif
