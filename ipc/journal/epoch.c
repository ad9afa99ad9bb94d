/* The epoch that a journal was written by, from the headers of its segments alone: for whoever has
 * lost the file that should say it. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"

/* A header that does not check tells nothing, and is passed over. */
static int64_t epoch_of(const folder *in, int64_t serial, void *node)
{
    reader segment;
    journal_header header;
    int64_t epoch = 0;
    if (reader_open(&segment, in, serial, false) != SB_OK)
        return 0;
    if (pread(segment.file, &header, sizeof header, 0) == (ssize_t)sizeof header) {
        epoch = segment.epoch;
        memcpy(node, header.node, sizeof header.node);
    }
    reader_close(&segment);
    return epoch;
}

int64_t sb_journal_epoch(const char *path, void *node)
{
    folder in;
    int64_t *serials = NULL, highest = 0;
    int64_t code = folder_open(&in, path);
    if (code != SB_OK)
        return code;
    int64_t count = folder_segments(&in, &serials);
    for (int64_t each = 0; each < count; each++) {
        int64_t epoch = epoch_of(&in, serials[each], node);
        highest = epoch > highest ? epoch : highest;
    }
    free(serials);
    folder_close(&in);
    return count < 0 ? count : highest;
}
