/* A vhost: its segments, a connection's handles of them, who takes part in it, its log of errors
 * and its bells; and the lock of its catalog.  It stands on base.  What is to be done now and then
 * by whoever comes along, in rooms above, is asked for through a table of duties. */

#ifndef SHMBROKER_VHOST_ROOM_H
#define SHMBROKER_VHOST_ROOM_H

#include <dirent.h>

#include "base/base.h"

/* --- vhost.c ---------------------------------------------------------------------------------- */

/* A name that can be part of a file's name. */
bool vhost_name_is_good(const char *name);
int64_t vhost_name_refusal(void);
/* Make the segments of a vhost, for the members of a group or NULL; `restoring`: it is there for
 * others when that is done. */
int64_t vhost_create(const char *vhost, int64_t arena_bytes, const char *group, bool restoring);
/* Which boot of the machine this is. */
int64_t boot_hash(void);
/* One at a time makes or deletes a vhost: a descriptor to unlock; SB_LOCKED if another keeps it. */
int64_t vhosts_lock(int *folder);
void vhosts_unlock(int folder);
#define ADDRESSEES 256

/* What has to be done now and then, whatever is called, by whoever comes along: rooms below the one
 * that does it ask for it here.  connection/duties.c fills it in. */
typedef struct duties {
    /* Remove what is left of changes that a death cut short; under the catalog's lock. */
    void (*repair_catalog)(sb_connection *connection);
    /* Repair what dead participants have left: how many repairs. */
    int64_t (*repair)(sb_connection *connection);
    /* Between two sleeps of a wait: what is repaired or overdue in this ring, and in the vhost. */
    void (*repair_ring)(sb_queue *queue, sb_port *port);
    /* The same of some of these queues, which take turns. */
    void (*repair_rings)(const sb_wait *waits, int64_t count);
    /* Take out of a ring what is expired: how many. */
    int64_t (*expire)(sb_queue *queue, sb_port *port);
    /* Whether the program replies to this queue; the connection's mutex is held. */
    bool (*replies_to)(sb_connection *connection, int64_t reference);
    /* Call `see` at a moment at which each transaction on durable queues is in the journal as a
     * whole, or not at all: what it answers, or SB_EMPTY if there was none. */
    int64_t (*at_a_moment)(sb_connection *connection, int64_t (*see)(void *), void *context);
    /* Whether a message with this id was published at a node that has left. */
    bool (*was_published)(sb_queue *queue, const void *id, int64_t length);
    /* Whether a queue has no message, in hand or not, scheduled or paged. */
    bool (*is_empty)(sb_queue *queue);
    /* We were found to be slow, and are to leave. */
    int64_t (*leave)(sb_connection *connection);
} duties;

struct sb_connection {
    const duties *duties;
    char vhost[L_CATALOG_NAME_BYTES_MAX + 1];
    segment catalog, arena, participants, transactions;
    int64_t id;            /* ours, as a participant */
    int lock_file;         /* holds the lock on our byte for as long as we live */
    int repair_file;        /* another description of the same file: whose byte it locks is dead */
    int catalog_lock_file; /* holds the catalog's lock while we change it */
    _Atomic int64_t closed; /* 0, or the code that every call answers */
    _Atomic int64_t left;   /* 1: somebody is leaving for us, or has left */
    int64_t spins;         /* looks of a wait before it sleeps */
    bool spins_as_it_pays; /* nobody has said how long: spinning.c */
    bool waits_in_slices;  /* and answers SB_INTERRUPTED after each: the caller looks for signals */
    trust whose;   /* segments these may be */
    bool restores; /* the vhost; to others it does not exist until that is done */
    bool remains;  /* with a copy of the catalog, when programs are told to go: moved.c */
    pthread_mutex_t mutex;  /* handles, our list of queues, the catalog's lock within the process */
    pthread_mutex_t repair; /* one thread at a time repairs for us */
    pthread_mutex_t slow;   /* one thread at a time looks for slow consumers */
    _Atomic int64_t rings_repaired; /* when, by who waits for several queues: wait_any.c */
    pthread_mutex_t commit_mutex; /* one transaction of ours at a time is committed */
    int64_t stamp;          /* of the last one on durable queues, 0 if the last was on none */
    int64_t commits, finished; /* how many were committed, and how many of them have happened */
    bool has_record; /* there is memory behind it */
    struct operation *_Atomic left_operations; /* of a commit that nobody waits for: left.c */
    int64_t left_count;
    sb_queue **queues;      /* by row */
    sb_queue *gone;         /* handles of deleted queues that are not let go of: deleted.c */
    sb_queue *kept;         /* the same, let go of, until the program closes its handle */
    int64_t looked;         /* the row at which the next search for deleted queues begins */
    struct lane *idle, *idle_last; /* lanes of no queue, to be used again: lane.c */
    int64_t idle_count;
    struct lane *lent;      /* to compiled loops, as ports */
    sb_exchange *exchanges;
    sb_queue **ways; /* queues towards other nodes that we have published to: balanced.c */
    _Atomic int64_t ways_count;
    struct requester *_Atomic requesters;      /* queues for replies to us: request.c */
    struct addressee *addressees[ADDRESSEES]; /* queues that we have replied to: reply.c */
    _Atomic int64_t paging; /* whether a thread of ours pages the queues of the vhost: pager.c */
    pthread_t paging_in;
    struct mover *mover; /* serves the schedules of our queues: mover.c */
    _Atomic uint64_t noted; /* a bit for each entry of the log that is ours and was not told of */
    sb_connection *next;    /* all connections of this process, for fork */
    char home[NAME_ROOM]; /* where its segments are: home.c */
    int64_t returns[2]; /* the queue of what agents return to us, by its identity; 0: none */
};

/* Its broker was live here, and is no more: whoever takes over has rings of its own. */
static inline bool vhost_is_retired(const sb_connection *connection)
{
    return word_load(connection->catalog.memory, L_CATALOG_RETIRED_AT) != 0;
}

/* --- home.c ----------------------------------------------------------------------------------- */

/* Where its segment of this kind is, or the ring of this queue: NAME_ROOM bytes. */
void vhost_path(char *path, const char *home, const char *kind);
void queue_path(char *path, const char *home, int64_t reference);
/* Both homes that a vhost of this name may have. */
void home_private(char *home, const char *vhost);
void home_shared(char *home, const char *vhost);
/* The home that it has, and who is believed in it; `whose` says already who looks. */
int64_t home_find(char *home, const char *vhost, trust *whose);
/* The folder of a home, open or NULL; and what its segments are called, one after the other. */
DIR *home_open(const char *home);
/* What their names begin with in that folder. */
const char *home_prefix(const char *home);
const char *home_next(const char *home, DIR *folder);

/* --- delete.c --------------------------------------------------------------------------------- */

/* Remove the segments in a home, the catalog first; and its folder, if it is one of its own. */
int64_t home_clear(const char *home);

/* --- moved.c ---------------------------------------------------------------------------------- */

/* SB_OK, or SB_MOVED with who serves in its place: then the connection is closed for it. */
int64_t moved_code(sb_connection *connection);

/* --- group.c ---------------------------------------------------------------------------------- */

/* The number of a group, by its name or that number. */
int64_t group_find(const char *group, int64_t *number);
/* Make the folder of a vhost that this group shares. */
int64_t group_make_folder(const char *home, int64_t group);

/* --- log.c ------------------------------------------------------------------------------------ */

/* Into the log of the vhost: each text once, with how often and when. */
void log_note(sb_connection *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- lock.c ----------------------------------------------------------------------------------- */

/* Whether it may change the catalog: SB_OK or why not. */
int64_t change_code(sb_connection *connection);
/* Whether the catalog is still that of its name: SB_OK, SB_NO_VHOST or SB_MOVED. */
int64_t catalog_code(sb_connection *connection);
/* Take the catalog's lock, with the mutex of the connection, if it is still that of its name; what
 * a death left is repaired first. */
int64_t connection_lock(sb_connection *connection);
/* The same, or SB_LOCKED at once if another process has the catalog's lock. */
int64_t connection_try_lock(sb_connection *connection);
void connection_unlock(sb_connection *connection);
/* The same for who takes its rows away or brings them back: as it is. */
int64_t catalog_lock(sb_connection *connection);
void catalog_unlock(sb_connection *connection);
/* Text of 1 to 255 bytes that may be a name. */
int64_t name_check(const char *kind, const char *name);
/* To change the catalog: all of change_code, name_check (unless `kind` is NULL) and
 * connection_lock. */
int64_t change_begin(sb_connection *connection, const char *kind, const char *name);

/* --- row.c ------------------------------------------------------------------------------------ */

/* The reference that the row of a queue has, or will have once it is live. */
int64_t row_next_reference(sb_connection *connection, int64_t row);
/* No queue is here, and nobody uses the one that was. */
bool row_is_deserted(sb_connection *connection, int64_t row);

/* --- participant.c ---------------------------------------------------------------------------- */

/* Note that we use this queue; before its ring is touched. */
int64_t participant_uses(sb_connection *connection, int64_t reference, int64_t use);
/* Not for this any more; the mutex is held. */
void participant_uses_no_more(sb_connection *connection, int64_t reference, int64_t use);
/* A descriptor that tells of the participant's death, -1 if there can be none. */
int participant_pidfd(const char *entry);
/* How many use this queue so. */
int64_t participant_users(sb_connection *connection, int64_t reference, int64_t use);
/* How many others have opened this queue for themselves: a deletion would disturb them. */
int64_t participant_others(sb_connection *connection, int64_t reference);
/* So many more of our transactions have begun, and are not over; our commit mutex is held. */
void participant_opens(sb_connection *connection, int64_t more);
/* We look after all queues, and are in nobody's way. */
void participant_repairs(sb_connection *connection);
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
/* Lock a byte of the file, or let go of it (`kind` is of fcntl): false if another has it. */
bool participant_lock_byte(int file, int64_t byte, short kind);
/* A number for the namespace of process ids in which we are. */
int64_t pid_namespace(void);
/* When a process started, in ticks since the boot; 0 if there is none that runs. */
int64_t start_of(int64_t pid);
/* Its entry in the segment. */
char *participant_entry(sb_connection *connection, int64_t id);
/* All ids that were ever given are below this; and raise it. */
int64_t participants_high(sb_connection *connection);
void raise_high(sb_connection *connection, int64_t wanted);
/* By write(), not by a store: whoever watches the file learns of it. */
void participant_state_set(sb_connection *connection, int64_t id, int64_t state);
/* Whether the process runs although its lock is gone: then it is not dead. */
bool participant_still_runs(char *entry);
/* How many queues it has noted, and whether its list is full. */
int64_t participant_list_length(const char *entry);
bool participant_list_is_full(const char *entry);
/* What it uses the queue of this row for, if its list was full then. */
_Atomic unsigned char *participant_row_byte(sb_connection *connection, int64_t id, int64_t row);
/* The queue that has the row, or was the last that had it. */
int64_t row_last_reference(sb_connection *connection, int64_t row);

/* --- selectors.c ------------------------------------------------------------------------------ */

/* Note that we take from this queue what a selector of this text matches, under the connection's
 * mutex.  False: there is no place for it. */
bool participant_selects(sb_connection *connection, int64_t reference, const void *text,
                         int64_t length);
/* Those of this queue do not count any more; under the same mutex. */
void participant_selects_no_more(sb_connection *connection, int64_t reference);

/* --- bell.c ----------------------------------------------------------------------------------- */

/* A bell for a thread that follows many rings: its number, or -1 if there is none left; and its
 * address. */
int64_t follower_bell_take(sb_connection *connection);
/* One that is somebody's for good: the caller holds the lock of who that is. */
int64_t follower_bell_seize(sb_connection *connection, int64_t follower);
void follower_bell_return(sb_connection *connection, int64_t follower);
char *follower_bell(sb_connection *connection, int64_t follower);
/* This participant is dead, or leaves. */
void follower_bells_forget(sb_connection *connection, int64_t id);
/* It has something to do for this queue. */
void follower_told(sb_connection *connection, int64_t follower, int64_t reference);
/* All that wanted a bell: the catalog has changed. */
void followers_rouse(sb_connection *connection);

/* Who sleeps on the bell: a bit for each schedule that it serves. */
#define SCHEDULE_OTHERS (1u << 31)

/* The word that movers sleep on; and the bit of who serves this schedule. */
_Atomic uint32_t *schedule_bell(sb_connection *connection);
uint32_t schedule_bell_bit(int64_t reference);
/* Tell whoever serves this schedule to look at its due word; or all who might. */
void schedule_ring(sb_connection *connection, int64_t reference, bool others);

/* --- fork.c ----------------------------------------------------------------------------------- */

/* All connections of the process are known, for fork, for as long as their locks are open: these
 * are opened, and closed. */
int64_t connections_add(sb_connection *connection);
void connections_remove(sb_connection *connection);

/* Once a broker has read or written so many bytes, or somebody has looked at all messages. */
#define MAPPED_BYTES (INT64_C(16) << 20)

/* What was used of their arenas is in our page tables, and if we are killed without an exit helper
 * the kernel takes it out before it lets go of our files: 70 ms a GiB, in which nobody is live.
 * With one, it takes the processor from who takes over.  So it goes bit by bit; the memory
 * stays. */
void connections_unmap(void);

/* --- attach.c --------------------------------------------------------------------------------- */

/* Whether a connection is closed because others have it leave (repair/expelled.c). */
static inline bool is_expelled(int64_t closed)
{
    return closed == SB_SLOW || closed == SB_DISCONNECTED;
}
/* SB_OK, or why no call can be made with it any more. */
int64_t usable_code(sb_connection *connection);
/* Map the segments of the vhost, checked. */
int64_t attach_segments(sb_connection *connection);
/* Open the files whose bytes are locks; closing them lets go of all. */
int64_t open_locks(sb_connection *connection);
void close_locks(sb_connection *connection);

#endif
