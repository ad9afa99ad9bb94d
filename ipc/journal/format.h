/* What the journal's C files share: its format, and the nouns that they are made of.
 *
 * A folder has segments, 0123456789abcdef.journal, numbered by their serials from 1 on:
 *
 *   header page (4 KiB) | frame | frame | ... | what the file had before
 *   frame: record | record | ... | record with LAST      what one commit has written and synced
 *   record: head of 32 bytes | body | zeros up to a multiple of 8
 *
 * A segment's file is written over before its header (that of a copy only has its room), the header
 * before it has its name, and the name is in the folder before anything is confirmed in it.  So a
 * header that does not check is damage, always.
 *
 * Of a large frame, pages that are whole are written while the rest is gathered, and all is synced
 * at once: its last record, which says that it is whole, is written behind the others.
 *
 * Frames count from 1 in each segment, and one is synced before the next is written; the writer of
 * a copy may be ahead of its disk, and its records say by how many frames (RECORD_BEHIND).  So
 * after a crash any part of the frames that were not synced may be missing, and of no other; and
 * what does not check is the end that a crash has torn only if no record behind it says that this
 * frame was synced.  A frame counts as a whole, or not at all.
 *
 * Outside of its segment a frame has one number through all of them: the segment's serial above
 * SB_FRAME_BITS bits with its number there (frame_number).  Later frames have higher numbers.
 *
 * The head's CRC covers the head with the CRC of the body, and begins with that of the segment's
 * header (serial, epoch, node and a random salt are in there) and the record's offset.  So nothing
 * that a recycled file had before ever checks, nor does a record that somebody has put into a body;
 * and a length may be followed, once its head checks.
 *
 * The first record of a segment's first frame is the list of the segments that are needed and where
 * each ends; the snapshot follows it in the same frame.  The newest list holds: a segment that it
 * does not name is ignored, one that is missing or has another end is damage.  A list that leaves
 * out a segment is synced before that segment's name goes, and the name has gone before its file is
 * used again.
 *
 * Whoever begins without having read all of it takes over the last list, with the ends that are
 * known in it, and lists the segments since with an unknown end, or with one that is reached at
 * least.  What was read and synced up to there is damaged if it is not there any more. */

#ifndef SHMBROKER_JOURNAL_H
#define SHMBROKER_JOURNAL_H

#include <limits.h>

#include "base/base.h"

#define JOURNAL_PAGE INT64_C(4096)
#define JOURNAL_MAGIC UINT64_C(0x6c616e72756f6a62) /* bjournal */
#define JOURNAL_VERSION 2
#define JOURNAL_BODY_MAX (INT64_C(1) << 31)
#define JOURNAL_BYTES_MAX (INT64_C(1) << 40) /* of a segment */
#define UNKNOWN_END INT64_C(0)
#define AT_LEAST INT64_C(1) /* a bit of an end, which is a multiple of 8: it may be further on */

/* --- journal/record.c ------------------------------------------------------------------------- */

typedef struct journal_header {
    uint64_t magic;
    uint32_t version, page;
    int64_t serial, epoch, bytes;
    uint8_t node[16];
    uint64_t salt;
    uint8_t zeros[4092 - 64];
    uint32_t crc; /* of all before; the seed of the records */
} journal_header;

/* Whether segments with these nodes may be of one journal: zeros are of whoever does not say. */
bool node_fits(const uint8_t *node, const uint8_t *other);

_Static_assert(sizeof(journal_header) == 4096, "a header is a page");

typedef struct record_head {
    uint32_t crc, body_crc, length, frame;
    uint64_t queue, where;
} record_head;

_Static_assert(sizeof(record_head) == 32, "a record's head");

#define POSITION_BITS 48
#define KIND_SHIFT 56
#define RECORD_LAST (UINT64_C(1) << POSITION_BITS)
/* How many frames before this one may not have been synced when it was written. */
#define RECORD_BEHIND_SHIFT (POSITION_BITS + 1)
#define RECORD_BEHIND_MAX INT64_C(127)
#define RECORD_BEHIND ((uint64_t)RECORD_BEHIND_MAX << RECORD_BEHIND_SHIFT)
#define HEAD ((int64_t)sizeof(record_head))

static inline int64_t record_bytes(int64_t length)
{
    return HEAD + ((length + 7) & -8);
}

static inline int64_t record_kind(const record_head *head)
{
    return (int64_t)(head->where >> KIND_SHIFT);
}

/* Whether it is needed as long as its position is not below what is retired of its queue. */
static inline bool kind_lasts(int64_t kind)
{
    return kind == SB_RECORD_MESSAGE || kind == SB_RECORD_IDS;
}

static inline int64_t record_position(const record_head *head)
{
    return (int64_t)(head->where & ((UINT64_C(1) << POSITION_BITS) - 1));
}

static inline int64_t record_behind(const record_head *head)
{
    return (int64_t)(head->where >> RECORD_BEHIND_SHIFT) & RECORD_BEHIND_MAX;
}

uint32_t header_crc(const journal_header *header);
/* SB_OK, or what is wrong with it: in a file of this name, with so many bytes. */
int64_t header_check(const journal_header *header, const char *path, int64_t serial,
                     int64_t file_bytes);
/* Of a whole record, at its place: the CRC of its body is in its head. */
uint32_t record_crc(uint32_t seed, int64_t offset, const record_head *head);

/* --- journal/tally.c: of each queue, what a segment or a frame has of it ---------------------- */

typedef struct tally_entry {
    int64_t queue, low, high, bytes;
} tally_entry;

typedef struct tally {
    tally_entry *entries;
    uint32_t *index; /* 1 + the entry's place */
    int64_t count, room, last;
} tally;

/* The entry of the queue, made if there is none; NULL: there is no memory for it. */
tally_entry *tally_of(tally *all, int64_t queue);
/* The same; NULL if there is none. */
const tally_entry *tally_find(const tally *all, int64_t queue);
int64_t tally_add(tally *all, int64_t queue, int64_t position, int64_t bytes);
int64_t tally_merge(tally *all, const tally *more);
/* So that merging them needs no memory. */
int64_t tally_make_room(tally *all, const tally *more);
int64_t tally_copy(tally *made, const tally *from);
void tally_clear(tally *all);
void tally_free(tally *all);
/* How many bytes are of messages at or above the heads; *needed: whether there are any. */
int64_t tally_live(const tally *all, const tally *heads, bool *needed);

/* --- journal/folder.c ------------------------------------------------------------------------- */

#define SEGMENT_NAME_ROOM 64

typedef struct folder {
    char path[PATH_MAX];
    int file;
    trust whose; /* files in it may be */
} folder;

/* The folder of a journal. */
int64_t folder_open(folder *opened, const char *path);
void folder_close(folder *opened);
int64_t folder_sync(const folder *in);
/* 0123456789abcdef.journal: `name` has SEGMENT_NAME_ROOM. */
void segment_file_name(char *name, int64_t serial);
/* The serials of all segments, ascending: how many. */
int64_t folder_segments(const folder *in, int64_t **serials);
/* Remove what others have left that is not a segment. */
void folder_clear(const folder *in);
/* A new name for a file that is no segment. */
int64_t spare_name(char *name, bool is_reserve);
/* A file of so many bytes that others have left and that is not a segment, locked; -1: there is
 * none.  `name` has SEGMENT_NAME_ROOM. */
int folder_claim(const folder *in, int64_t bytes, bool is_reserve, char *name);
/* Whoever has got a file ready holds this lock: false if another does. */
bool spare_lock(int file);

/* --- journal/reader.c: one segment, read ------------------------------------------------------ */

typedef struct reader {
    char path[PATH_MAX + SEGMENT_NAME_ROOM];
    int file;
    int64_t serial, epoch, bytes, file_bytes;
    uint8_t node[16];
    uint32_t seed;
    unsigned char *window;
    int64_t at, held, room; /* what of the file is in the window */
    int64_t keep;           /* what is read from there on is wanted again */
} reader;

enum { RECORD_GOOD, RECORD_BLANK, RECORD_BAD_HEAD, RECORD_BAD_BODY, RECORD_BEYOND, RECORD_UNREAD };

/* SB_NOT_FOUND if there is no such file. */
int64_t reader_open(reader *opened, const folder *in, int64_t serial);
void reader_close(reader *closed);
/* What lies there: RECORD_GOOD, or what is wrong.  Valid until the next call. */
int reader_record(reader *in, int64_t offset, const record_head **head);
/* The end of the frame that begins there and has this number: where, or 0 with *bad, the offset of
 * what does not check, and *wrong, what it is. */
int64_t reader_frame(reader *in, int64_t offset, int64_t number, int64_t *bad, int *wrong);
/* Whether a record from there on says that the frame with this number was synced. */
bool reader_was_synced(reader *in, int64_t offset, int64_t number);
/* In words. */
const char *record_wrong(int wrong);
/* A record of the frame that was just found whole. */
const record_head *reader_again(reader *in, int64_t offset);

/* --- journal/list.c: which segments are needed ------------------------------------------------ */

typedef struct listed {
    int64_t serial, end; /* or UNKNOWN_END, or one with AT_LEAST */
} listed;

static inline bool end_is_known(int64_t end)
{
    return end != UNKNOWN_END && !(end & AT_LEAST);
}

/* What was synced reaches that far, at least. */
static inline int64_t end_reached(int64_t end)
{
    return end & ~AT_LEAST;
}

typedef struct segment_list {
    listed *entries; /* ascending */
    int64_t count, room;
} segment_list;

/* What the newest list says, and the segments from there on, for whoever writes behind it: what
 * cannot be read is passed over, for all is looked through afterwards (segment_list.py reads it for
 * others).  `quick`: no more is read than the beginning of the newest segment of this node, whose
 * first list is taken; if something that it names is not there, its last list says whether it is
 * needed. */
int64_t list_inherit(const folder *in, const uint8_t *node, const int64_t *serials, int64_t count,
                     listed reached, bool quick, segment_list *all);
void list_free(segment_list *all);

/* --- journal/reached.c: how far it was synced ------------------------------------------------- */

/* If it cannot be written, less is noticed. */
void reached_write(const folder *in, const listed *where);
/* Zeros: nobody knows.  Read it before the names in the folder. */
listed reached_read(const folder *in);

/* --- journal/found.c -------------------------------------------------------------------------- */

typedef struct segment_found {
    int64_t serial, end;
    tally tally;
} segment_found;

struct sb_found {
    segment_found *segments;
    int64_t count, room;
    tally next; /* of the segment that is read */
    sb_found_counts counts;
};

/* The record that lies there. */
sb_journal_record batch_record(const sb_batch *batch, int64_t at);

/* --- journal/frame.c -------------------------------------------------------------------------- */

/* Records that are gathered, in memory that is written as it is: whole pages, so that the disk need
 * not read any.  What the first page has before the frame is kept. */
typedef struct frame {
    unsigned char *memory;
    int64_t room, start, filled, records;
    int64_t last;   /* where its last record begins */
    int64_t sealed; /* the records below are complete */
    int64_t ahead;  /* and the pages below are in the file already, though not synced */
    tally tally; /* of its messages */
} frame;

/* Its number through all segments. */
static inline int64_t frame_number(int64_t serial, int64_t in_segment)
{
    return (int64_t)((uint64_t)serial << SB_FRAME_BITS | (uint64_t)in_segment);
}

/* Where in the file a frame goes: its first page begins there, with this seed and number. */
typedef struct frame_place {
    uint32_t seed;
    int64_t page_at, number;
    int64_t behind; /* so many frames before it are not synced */
} frame_place;

typedef struct record_parts {
    int64_t kind, queue, position;
    const void *body;
    int64_t length;
} record_parts;

/* Stage a record: its head is completed by frame_seal, when it is known where it will be. */
int64_t frame_add(frame *to, const record_parts *parts);
/* The same with a record of another journal, of so many bytes with its head.  SB_JOURNAL_DAMAGED:
 * its body does not check, and it is not staged. */
int64_t frame_add_record(frame *to, const record_head *head, int64_t bytes);
/* As if nothing of it had been staged. */
void frame_empty(frame *emptied);
/* All records of another frame, behind its own. */
int64_t frame_append(frame *to, const frame *more);
/* Complete all records but the last, which may not be it in the end: up to where whole pages are as
 * they are written. */
int64_t frame_seal_begun(frame *begun, const frame_place *place);
/* Complete all of it, for the same place. */
void frame_seal(frame *sealed, const frame_place *place);
/* How many bytes are written: with a blank head behind, to the end of a page. */
static inline int64_t frame_written_bytes(int64_t filled)
{
    return (filled + HEAD + JOURNAL_PAGE - 1) & -JOURNAL_PAGE;
}
/* An empty frame that follows this one in the file. */
void frame_follow(frame *next);
/* An empty frame that follows what that one follows. */
int64_t frame_beside(frame *made, const frame *other);
void frame_free(frame *freed);

#endif
