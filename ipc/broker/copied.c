/* A replica's applier: frames as they are shipped, checked against what it has, and how far it is.
 *
 * Each frame that it writes into its own journal says which frame of the original it repeats
 * (SB_RECORD_COPIED).  So whoever reads that journal again knows where to go on. */

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/base.h"
#include "broker/applier.h"
#include "journal/journal.h"
#include "journal/shipped.h"

static void written(void *context)
{
    sb_applier *all = context;
    atomic_store(&all->written, all->next.number);
    if (all->event >= 0)
        eventfd_write(all->event, 1);
}

void sb_applier_tell(sb_applier *applier, int64_t event)
{
    applier->event = (int)event;
    if (applier->journal)
        journal_tell_written(applier->journal, written, applier);
}

int64_t sb_applier_written(sb_applier *applier)
{
    return atomic_load(&applier->written);
}

void sb_applier_place(const sb_applier *applier, sb_place *place)
{
    *place = (sb_place){applier->number, applier->epoch, applier->seal, applier->chain};
}

void sb_applier_go_on(sb_applier *applier, const sb_place *place)
{
    applier->number = place->number;
    applier->epoch = place->epoch;
    applier->seal = place->seal;
    applier->chain = place->chain;
    atomic_store(&applier->written, place->number);
}

int64_t sb_applier_standing(const sb_applier *applier, void *to, int64_t room)
{
    const catalog_body *found = applier->standing;
    if (!found)
        return 0;
    if (found->length > room)
        return fail(SB_TOO_LARGE, "the standing of a member has %lld bytes",
                    (long long)found->length);
    memcpy(to, found->bytes, (size_t)found->length);
    return found->length;
}

int64_t sb_applier_read(sb_applier *applier, sb_replay *replay)
{
    applier->reads = true;
    int64_t code = applier_replay(applier, replay, NULL, NULL);
    applier->reads = false;
    if (code != SB_OK) {
        snprintf(applier->why, sizeof applier->why, "%s", sb_detail(code));
        applier->failed = code;
    }
    return code;
}

/* A frame of a former live, or one behind another past than ours. */
static int64_t fits(const sb_applier *to, const sb_shipped *head, const void *records)
{
    char number[SB_FRAME_TEXT_BYTES];
    sb_frame_text(head->number, number);
    if (head->epoch < to->epoch)
        return fail(SB_STALE, "frame %s is of epoch %lld, and epoch %lld was met", number,
                    (long long)head->epoch, (long long)to->epoch);
    int64_t chain =
        shipped_chain(to->chain, head->number, head->seal, records, head->bytes);
    if (chain != head->chain)
        return fail(SB_JOURNAL_DAMAGED, "frame %s does not check, or what is before it there is "
                    "not what is here", number);
    return SB_OK;
}

static int64_t one(sb_applier *to, const sb_shipped *head, const void *records)
{
    if (head->number <= to->number && head->epoch == to->epoch)
        return SB_OK; /* it was applied before */
    int64_t code = fits(to, head, records);
    if (code != SB_OK)
        return code;
    return sb_applier_apply(to, &(sb_end_frame){
        .number = head->number, .after = head->after, .epoch = head->epoch, .records = records,
        .bytes = head->bytes, .seal = head->seal});
}

int64_t sb_applier_frames(sb_applier *to, const void *frames, int64_t bytes)
{
    const unsigned char *at = frames, *end = at + bytes;
    int64_t code = (uintptr_t)frames % 8 ? SB_INVALID : SB_OK;
    while (code == SB_OK && at < end) {
        const sb_shipped *head = (const sb_shipped *)(const void *)at;
        if (end - at < SHIPPED_HEAD || head->bytes < HEAD || head->bytes % 8 ||
            head->bytes > end - at - SHIPPED_HEAD)
            return fail(SB_JOURNAL_DAMAGED, "what has come is not made of whole frames");
        code = one(to, head, at + SHIPPED_HEAD);
        at += SHIPPED_HEAD + head->bytes;
    }
    return code;
}
