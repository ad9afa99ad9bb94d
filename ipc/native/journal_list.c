/* The list of the segments that are needed: the newest one holds. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "journal.h"

static int64_t add(segment_list *all, listed entry)
{
    if (all->count == all->room) {
        int64_t room = all->room ? 2 * all->room : 64;
        listed *moved = realloc(all->entries, (size_t)room * sizeof *moved);
        if (!moved)
            return fail_system("memory for a list of segments");
        all->entries = moved;
        all->room = room;
    }
    all->entries[all->count++] = entry;
    return SB_OK;
}

void list_free(segment_list *all)
{
    free(all->entries);
    *all = (segment_list){0};
}

/* What a record of it says, of segments before this one. */
static int64_t decode(segment_list *all, const record_head *head, const reader *in)
{
    int64_t before = 0, count = head->length / (int64_t)sizeof(listed);
    all->count = 0;
    for (int64_t each = 0; each < count; each++) {
        listed entry;
        memcpy(&entry, (const unsigned char *)head + HEAD + each * (int64_t)sizeof entry,
               sizeof entry);
        if (entry.serial <= before || entry.serial >= in->serial || entry.end < 0)
            return fail(SB_JOURNAL_DAMAGED, "%s: its list of segments contradicts itself",
                        in->path);
        before = entry.serial;
        int64_t code = add(all, entry);
        if (code != SB_OK)
            return code;
    }
    return SB_OK;
}

/* The last list in a segment: SB_EMPTY if it has not one whole frame. */
static int64_t last_in(reader *in, segment_list *all)
{
    int64_t found = SB_EMPTY, bad, number = 1;
    int wrong;
    for (int64_t at = JOURNAL_PAGE, end; (end = reader_frame(in, at, number++, &bad, &wrong));) {
        while (at < end) {
            const record_head *head = reader_again(in, at);
            if (record_kind(head) == SB_RECORD_SEGMENTS) {
                found = decode(all, head, in);
                if (found != SB_OK)
                    return found;
            } else if (found == SB_EMPTY)
                return fail(SB_JOURNAL_DAMAGED, "%s, offset %lld: a segment begins with its list",
                            in->path, (long long)at);
            at += record_bytes(head->length);
        }
    }
    return found;
}

int64_t list_read(const folder *in, bool salvage, segment_list *all)
{
    int64_t *serials, code = SB_EMPTY;
    int64_t count = folder_segments(in, &serials), newest = count;
    *all = (segment_list){0};
    if (count < 0)
        return count;
    while (code == SB_EMPTY && newest > 0) {
        reader segment;
        newest--;
        code = reader_open(&segment, in, serials[newest], salvage);
        if (code == SB_OK) {
            code = last_in(&segment, all);
            reader_close(&segment);
        } else if (salvage) {
            reader_close(&segment);
            code = SB_EMPTY;
        }
        if (code != SB_OK)
            all->count = 0;
        if (salvage && code == SB_JOURNAL_DAMAGED)
            code = SB_EMPTY;
    }
    if (code == SB_EMPTY) {
        newest = 0;
        code = SB_OK;
    }
    all->ignored = newest - all->count; /* less those that are missing, which are no matter yet */
    for (int64_t each = newest; each < count && code == SB_OK; each++)
        code = add(all, (listed){serials[each], UNKNOWN_END});
    free(serials);
    if (code != SB_OK)
        list_free(all);
    return code;
}

int64_t list_of_all(const folder *in, segment_list *all)
{
    int64_t *serials, code = SB_OK;
    int64_t count = folder_segments(in, &serials);
    *all = (segment_list){0};
    for (int64_t each = 0; each < count && code == SB_OK; each++)
        code = add(all, (listed){serials[each], UNKNOWN_END});
    free(serials);
    if (code != SB_OK)
        list_free(all);
    return count < 0 ? count : code;
}
