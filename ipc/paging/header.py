"""Of the header: what the pager does in shared memory, and sleepers."""

from __future__ import annotations

from typing import Final

from shmbroker.core.layout import MESSAGE_BYTES, RECORD_HEAD_BYTES
from shmbroker.ipc.base.structure import Field, Structure

GATHERING: Final = Structure(
    "sb_gathering",
    "What is at the cursor of an inbox, on its way into records.",
    "GATHERING_BYTES",
    (
        Field("int64_t at", "GATHERING_AT", "address of the next record"),
        Field("int64_t enough", "GATHERING_ENOUGH", "none begins there or behind"),
        Field("int64_t end", "GATHERING_END", "of the room"),
        Field("int64_t first", "GATHERING_FIRST", "messages below this position are passed over,"),
        Field("int64_t below", "GATHERING_BELOW", "and none from here on is read"),
        Field("int64_t left", "GATHERING_LEFT", "so many messages at most"),
        Field("int64_t needed", "GATHERING_NEEDED", "room for the record that comes next"),
        Field(f"int64_t message[{MESSAGE_BYTES // 8}]", "GATHERING_MESSAGE"),
    ),
)
SEALING: Final = Structure(
    "sb_sealing",
    "Records that are completed for their place in a file, or checked.",
    "SEALING_BYTES",
    (
        Field("int64_t at", "SEALING_AT", "address of the next record,"),
        Field("int64_t end", "SEALING_END"),
        Field("int64_t offset", "SEALING_OFFSET", "and where it is in its file"),
        Field("int64_t seed", "SEALING_SEED", "of the file"),
        Field("int64_t next", "SEALING_NEXT", "behind the highest position so far"),
        Field("int64_t needed", "SEALING_NEEDED", "bytes of the next one, as far as is known"),
        Field(f"int64_t covered[{(8 + RECORD_HEAD_BYTES) // 8}]", "SEALING_COVERED"),
    ),
)
REFILLING: Final = Structure(
    "sb_refilling",
    "Records on their way into the ring of a queue that pages.",
    "REFILLING_BYTES",
    (
        Field("int64_t at", "REFILLING_AT", "address of the next record"),
        Field("int64_t end", "REFILLING_END"),
        Field("int64_t next", "REFILLING_NEXT", "all below is in the ring, or dropped"),
        Field("int64_t exact", "REFILLING_EXACT", "1: stop before a position above that"),
        Field("int64_t slots", "REFILLING_SLOTS", "the ring may hold so many messages,"),
        Field("int64_t bytes_max", "REFILLING_BYTES_MAX", "and so many bytes"),
        Field("int64_t bytes_left", "REFILLING_BYTES_LEFT", "at least so many of them are left"),
        Field("int64_t later", "REFILLING_LATER", "is added to times of expiry"),
        Field("int64_t most", "REFILLING_MOST", "so many messages at most"),
        Field("int64_t count", "REFILLING_COUNT", "that were published"),
    ),
)
BATCHES: Final = (GATHERING, SEALING, REFILLING)

PAGER: Final = f"""\
/* --- the pager: what does not fit into a queue with when_full SB_PAGE goes to files --- */

typedef struct sb_pager sb_pager;

/* Who may write the pages of durable queues: the broker of this epoch, as long as the file (if it
 * is not -1) begins with it, in 16 hexadecimal digits, and until the moment in this word (if it is
 * not NULL), by CLOCK_BOOTTIME. */
typedef struct sb_pager_fence {{
    int64_t epoch, file;
    const int64_t *until_ns;
}} sb_pager_fence;

/* A queue that pages.  Of the thread that pages, until it is gone. */
typedef struct sb_paged {{
    sb_queue *queue;
    const char *name;
    void *ring;        /* of its inbox */
    sb_port *inbox, *out; /* of the inbox; and of the queue, whose messages we number */
    sb_cursor *cursor; /* of the inbox */
    int64_t durable;
    int64_t max_bytes, slots; /* what its ring may hold */
    int64_t last;      /* all below was put into the ring before */
    int64_t is_gone;   /* 1: it was deleted; the caller frees it */
    char folder[40];   /* the name of the folder of its files */
}} sb_paged;

{GATHERING.text()}{SEALING.text()}{REFILLING.text()}
/* Page the queues of this vhost; one at a time may. */
int64_t sb_pager_open(sb_connection *connection, const sb_pager_fence *fence, sb_pager **pager);
/* If the catalog has changed: one queue that came, or is gone; NULL: no more have. */
int64_t sb_pager_look(sb_pager *pager, sb_paged **told);
void sb_paged_free(sb_paged *freed);
/* From now on a thread does it, this one: who closes the connection waits for its sb_pager_free. */
void sb_pager_begin(sb_pager *pager);
/* Queues that have news, room, or were read in part; and now and then all, as one may have been
 * killed before he rang.  How many; SB_CLOSED: the thread is to end. */
int64_t sb_pager_ready(sb_pager *pager, sb_paged **ready, int64_t room);
/* What the journal has is below this position, of the inbox or of the queue. */
int64_t sb_paged_confirmed(const sb_paged *of, int64_t in_inbox);
/* It has nothing to move until a bell is rung: unless there is something by now.  Of a durable
 * queue: until these positions are confirmed; 0: they are not waited for.  `waits`: or until there
 * is room for the record there, of its files; NULL: it waits for none. */
void sb_paged_rest(sb_paged *rests, int64_t in_inbox, int64_t in_ring, sb_refilling *waits);
/* Something was published in its inbox: who did has died before he could say so. */
void sb_paged_note(sb_paged *of);
/* SB_OK, or SB_STALE: another broker may be live. */
int64_t sb_pager_fence_check(sb_pager *pager);
/* Sleep until a bell is rung, or so long; 0: as long as may be.  SB_CLOSED: it is to end. */
int64_t sb_pager_rest(sb_pager *pager, int64_t longest_ns);
/* From any thread: whoever pages by this connection is to end. */
void sb_pager_stop(sb_connection *connection);
/* By the thread that pages, at its end.  What is in files stays there, for the next. */
void sb_pager_free(sb_pager *pager);
/* Set space aside for a file, which stays as long as it is: SB_OK, or SB_SYSTEM and errno. */
int64_t sb_file_reserve(int64_t file, int64_t bytes);
"""

SLEEPER = """\
/* --- the sleeper: sleeps on bells for a thread that sleeps on descriptors --- */

typedef struct sb_sleeper sb_sleeper;

/* A thread, and this eventfd that it writes.  All calls are of one other thread. */
int64_t sb_sleeper_open(int64_t event, sb_sleeper **sleeper);
/* Tell of this ticket, once, when it is worth trying: what sb_wait waits for. */
int64_t sb_sleeper_watch(sb_sleeper *sleeper, int64_t ticket, sb_queue *queue, int64_t position,
                         int64_t returned);
/* Nobody waits for it any more; it may have been told of.  The queue may be closed when -ticket is
 * told of. */
int64_t sb_sleeper_forget(sb_sleeper *sleeper, int64_t ticket, sb_queue *queue, int64_t position,
                          int64_t returned);
/* The tickets that are to be told of, so many at most: how many. */
int64_t sb_sleeper_rung(sb_sleeper *sleeper, int64_t *tickets, int64_t most);
/* Before the connections of its queues are closed. */
void sb_sleeper_close(sb_sleeper *sleeper);
"""
