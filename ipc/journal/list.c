/* The list of the segments that are needed: the newest one holds. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "journal/format.h"

static int64_t add(segment_list *all, listed entry)
{
    if (!ROOM_FOR(all->entries, all->room, all->count + 1))
        return fail_system("memory for a list of segments");
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

/* A segment that nobody has listed yet was synced so far: if it is not there, it is missing. */
static int64_t note_reached(segment_list *all, int64_t newest, listed reached)
{
    int64_t at = 0, end = reached.end | AT_LEAST;
    while (at < all->count && all->entries[at].serial < reached.serial)
        at++;
    if (at < all->count && all->entries[at].serial == reached.serial) {
        listed *entry = &all->entries[at];
        if (!end_is_known(entry->end) && end > entry->end)
            entry->end = end;
        return SB_OK;
    }
    if (reached.serial <= newest)
        return SB_OK;
    int64_t code = add(all, (listed){reached.serial, end});
    for (int64_t each = all->count - 1; code == SB_OK && each > at; each--) {
        listed moved = all->entries[each];
        all->entries[each] = all->entries[each - 1];
        all->entries[each - 1] = moved;
    }
    return code;
}

/* --- without reading all ---------------------------------------------------------------------- */

/* What is known of the segments when this one begins, and how far it was synced: a frame is synced
 * before the next one is written.  SB_EMPTY: it cannot tell. */
static int64_t first_in(reader *in, segment_list *all)
{
    const record_head *head;
    int wrong;
    int64_t bad, end = reader_frame(in, JOURNAL_PAGE, 1, &bad, &wrong);
    if (end == 0 || record_kind(reader_again(in, JOURNAL_PAGE)) != SB_RECORD_SEGMENTS)
        return SB_EMPTY;
    if (decode(all, reader_again(in, JOURNAL_PAGE), in) != SB_OK)
        return SB_EMPTY;
    bool is_synced = reader_record(in, end, &head) == RECORD_GOOD && head->frame == 2;
    return add(all, (listed){in->serial, is_synced ? end | AT_LEAST : UNKNOWN_END});
}

static bool is_all_there(const segment_list *all, const int64_t *serials, int64_t count)
{
    int64_t at = 0; /* both ascend */
    for (int64_t each = 0; each < all->count; each++) {
        while (at < count && serials[at] < all->entries[each].serial)
            at++;
        if (all->entries[each].end != UNKNOWN_END &&
            (at == count || serials[at] != all->entries[each].serial))
            return false;
    }
    return true;
}

/* It was let go of since, or it is missing: the last list of the segment says so. */
static int64_t last_instead(reader *in, segment_list *all)
{
    listed itself = all->entries[all->count - 1];
    segment_list last = {0};
    if (last_in(in, &last) != SB_OK) {
        list_free(&last);
        return SB_OK;
    }
    int64_t code = add(&last, itself);
    if (code != SB_OK) {
        list_free(&last);
        return code;
    }
    list_free(all);
    *all = last;
    return SB_OK;
}

static int64_t inherit_from(const folder *in, int64_t serial, const uint8_t *node,
                            const int64_t *serials, int64_t count, bool quick, segment_list *all)
{
    reader segment;
    int64_t code = reader_open(&segment, in, serial);
    if (code != SB_OK)
        return SB_EMPTY;
    all->count = 0;
    code = node_fits(segment.node, node) ? first_in(&segment, all) : SB_EMPTY;
    if (code == SB_OK && (!quick || !is_all_there(all, serials, count)))
        code = last_instead(&segment, all);
    reader_close(&segment);
    return code;
}

int64_t list_inherit(const folder *in, const uint8_t *node, const int64_t *serials, int64_t count,
                     listed reached, bool quick, segment_list *all)
{
    int64_t code = SB_EMPTY, newest = count;
    *all = (segment_list){0};
    while (code == SB_EMPTY && newest > 0) {
        newest--;
        code = inherit_from(in, serials[newest], node, serials, count, quick, all);
    }
    if (code == SB_EMPTY) { /* there is none, or none can be read: all may be needed */
        all->count = 0;
        newest = -1;
        code = SB_OK;
    }
    for (int64_t each = newest + 1; each < count && code == SB_OK; each++)
        code = add(all, (listed){serials[each], UNKNOWN_END});
    if (code == SB_OK)
        code = note_reached(all, newest >= 0 ? serials[newest] : 0, reached);
    if (code != SB_OK)
        list_free(all);
    return code;
}
