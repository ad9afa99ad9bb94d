/* The state of the page files of one queue, for page_store.c, page_writer.c and page_reader.c. */

#ifndef SHMBROKER_PAGING_PAGE_FILE_H
#define SHMBROKER_PAGING_PAGE_FILE_H

#include <limits.h>

#include "paging/page_store.h"

#define PAGE_MAGIC UINT64_C(0x6567617062687300) /* \0shbpage */
#define PAGE_VERSION 1
#define PAGE_NAME "%016llx.page"
#define PAGE_NAME_ROOM 40

typedef struct page_header {
    uint64_t magic;
    uint32_t version, zero;
    int64_t serial;
    uint64_t salt;
    int64_t epoch;       /* of the broker that wrote it */
    int64_t boot, ahead; /* in which boot, and how far the time of day was ahead of its clock */
    uint32_t zeros, crc; /* of all before; the seed of the records */
} page_header;

_Static_assert(sizeof(page_header) == 64, "a header's size is a multiple of a record's");

typedef struct buffer {
    unsigned char *bytes;
    int64_t used, room;
} buffer;

/* A file that was read, and may be needed again. */
typedef struct kept {
    int64_t serial;
    int64_t end; /* all that it has is below this position */
    bool damaged;
} kept;

struct page_store {
    char path[PATH_MAX];
    int folder; /* or -1: there is none yet */
    int64_t page_bytes;
    page_teller told;
    void *context;
    int64_t first, next; /* serials: the file that is read, and the next that will be begun */
    int64_t bytes;
    bool syncs;
    int64_t epoch;
    int writer; /* the file before next, or -1 */
    bool is_new; /* its name is not synced */
    uint32_t writer_seed;
    int64_t written;
    buffer put;
    int reader; /* the first file, or -1 */
    uint32_t reader_seed;
    int64_t at, end; /* of the next record; of the file as it was opened */
    buffer read;     /* the file from read_at on */
    int64_t read_at, record; /* how long the record at `at` is, 0: not looked at */
    bool damaged; /* the file is kept for people */
    int64_t later; /* to be added to the expiry of what is in it */
    int64_t read_epoch; /* of the files so far */
    int64_t expected; /* the position behind the last that was read */
    int64_t backed; /* from here on the inbox has what is in files of before */
    int64_t ours;   /* the first file that is not of before */
    kept *kept;
    int64_t kept_count, kept_room;
};

/* --- page_store.c ----------------------------------------------------------------------------- */

/* SB_DISK_FULL or SB_SYSTEM, as errno says, with what was being done to which file. */
int64_t page_refused(const page_store *of, const char *doing, int64_t serial);
/* There is a folder; of a durable queue, its name is synced. */
int64_t page_make_folder(page_store *of);
/* Tell of what is wrong at this offset of the file that is read. */
void page_tell(const page_store *of, int64_t offset, const char *what);
/* Where so many bytes more have room in it; NULL: there is no memory. */
void *buffer_room(buffer *in, int64_t bytes);
/* The file that is read is the one that is written. */
bool page_is_being_written(const page_store *of);
/* How far the time of day is ahead of the clock of this boot: expiry is by that. */
int64_t page_ahead_ns(void);

/* --- page_writer.c ---------------------------------------------------------------------------- */

/* The next message goes to a new file. */
void page_end_file(page_store *to);

/* --- page_reader.c ---------------------------------------------------------------------------- */

/* The file that is read is not needed any more, or only by the journal. */
void page_drop_file(page_store *of);

#endif
