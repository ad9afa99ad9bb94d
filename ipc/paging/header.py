"""Of the header: the pager, which writes the page files of a vhost, and sleepers."""

from __future__ import annotations

PAGER = """\
/* --- the pager: what does not fit into a queue with when_full SB_PAGE goes to files --- */

typedef struct sb_pager sb_pager;

/* Who may write the pages of durable queues: the broker of this epoch, as long as the file (if it
 * is not -1) begins with it, in 16 hexadecimal digits, and until the moment in this word (if it is
 * not NULL), by CLOCK_BOOTTIME. */
typedef struct sb_pager_fence {
    int64_t epoch, file;
    const int64_t *until_ns;
} sb_pager_fence;

/* Page the queues of this vhost, in a thread of its own; one at a time may.  folder: is made if
 * there is none, and has nothing but what a pager of this vhost has put there.  page_bytes: how
 * large a file is, at least; 0: 10 MiB.  fence: NULL, there is no other broker. */
int64_t sb_pager_start(sb_connection *connection, const char *folder, int64_t page_bytes,
                       const sb_pager_fence *fence, sb_pager **pager);
/* SB_OK while it works, SB_DISK_FULL while it waits for room, SB_CLOSED when it was stopped, or why
 * it has ended. */
int64_t sb_pager_code(sb_pager *pager);
/* The same, as soon as it is another one than was seen. */
int64_t sb_pager_await(sb_pager *pager, int64_t seen, int64_t timeout_ns);
/* What there is to say about it. */
const char *sb_pager_why(sb_pager *pager);
/* It ends; what is in files stays there, for the next. */
void sb_pager_stop(sb_pager *pager);
/* Stops it.  Before sb_connection_free. */
void sb_pager_free(sb_pager *pager);
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
