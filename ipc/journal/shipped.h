/* Frames on their way to another journal, for whoever reads or writes them (shipped.c). */

#ifndef SHMBROKER_JOURNAL_SHIPPED_H
#define SHMBROKER_JOURNAL_SHIPPED_H

#include "journal/format.h"

#define SHIPPED_HEAD ((int64_t)sizeof(sb_shipped))

/* The chain behind these records, of a frame with this number: -1 if they are not whole. */
int64_t shipped_chain(int64_t chain, int64_t number, int64_t seal, const void *records,
                      int64_t bytes);
/* A head and its records, for which there is room: how many bytes. */
int64_t shipped_put(void *to, const sb_shipped *head, const void *records);

#endif
