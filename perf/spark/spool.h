/* What is done for each byte of a spool; `lines.py` and `counts.py` call it.
 *
 * Nothing here tells what is wrong with bad input: it says where, and Python explains. */
#ifndef SHMBROKER_PERF_SPOOL_H
#define SHMBROKER_PERF_SPOOL_H

#include <stdint.h>

/* Lines that were taken apart.  Each array has `room` for rows, but these: */
struct sb_lines {
    int64_t count, room;
    int64_t *at;                   /* where the line begins in the text */
    int64_t *start, *end;          /* ns */
    int64_t *deflated_at, *deflated_end; /* in `raw` */
    /* room + 1; the tag of row i is tags[tag_ends[i]:tag_ends[i + 1]] */
    int32_t *tag_ends;
    uint8_t *tags, *raw;           /* as long as the text */
};

enum { SB_GOOD, SB_TRUNCATED, SB_OVERFLOWS, SB_TOO_LONG, SB_FOREIGN };

/* The headers of histograms and which of their buckets have how many; row i of both is at
 * [ends[i], ends[i + 1]), a faulty one has none. */
struct sb_counts {
    int64_t *lowest, *highest, *digits; /* rows */
    uint8_t *faults;                    /* rows */
    int64_t *ends;                      /* rows + 1 */
    int32_t *indexes;                   /* as many as there are octets */
    int64_t *counts;
};

enum { SB_BLOCK = 64 };

/* Bits. */
enum { SB_OUTSIDE = 1, SB_FALLING = 2, SB_UNLIKELY = 4 };

int64_t sb_scan(const uint8_t *text, int64_t at, int64_t size, int64_t base,
                struct sb_lines *lines);
int64_t sb_unpack(const uint8_t *octets, const int64_t *edges, int64_t rows,
                  struct sb_counts *found);
void sb_check(const int64_t *ends, int64_t rows, const int32_t *indexes, const int64_t *counts,
              const int64_t *lengths, int64_t count_max, int64_t *sums, uint8_t *flags);
int64_t sb_combine(const int64_t *order, const int64_t *group_ends, int64_t groups,
                   const int64_t *ends, const int32_t *indexes, const int64_t *counts,
                   int64_t *scratch, uint8_t *touched,
                   int64_t *new_ends, int32_t *new_indexes, int64_t *new_counts);

#endif
