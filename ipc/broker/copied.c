/* A replica's applier: frames of another journal as they come.  Each is checked against what is
 * there, written into a journal of its own, then applied to the rings.
 *
 * Each frame that is written says which frame of the original it repeats (SB_RECORD_COPIED).  So
 * whoever reads that journal again knows where to go on.  If the original repeats one itself, the
 * first such record stays: it has the name that its author gave the frame, in whichever journal.
 * Its body is checked while it is copied.
 *
 * It is synced later, by another thread (sb_applier_sync): whoever has to wait for that waits for
 * `synced`, and all others for `written`. */

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/base.h"
#include "broker/applier.h"
#include "journal/format.h"
#include "journal/journal.h"

/* --- its records ------------------------------------------------------------------------------ */

static int64_t does_not_check(const sb_end_frame *frame, int64_t at)
{
    char number[SB_FRAME_TEXT_BYTES];
    sb_frame_text(frame->number, number);
    return fail(SB_JOURNAL_DAMAGED, "frame %s, byte %lld: the record does not check", number,
                (long long)at);
}

static sb_journal_record record_at(const sb_end_frame *frame, int64_t at)
{
    const unsigned char *bytes = (const unsigned char *)frame->records + at;
    const record_head *head = (const record_head *)(const void *)bytes;
    return (sb_journal_record){
        .kind = record_kind(head), .queue = (int64_t)head->queue,
        .position = record_position(head), .body = bytes + HEAD, .length = head->length,
        .serial = (int64_t)((uint64_t)frame->number >> SB_FRAME_BITS), .offset = at,
        .frame = frame->number, .last = (head->where & RECORD_LAST) != 0,
    };
}

/* Of a frame whose records are whole: sb_shipped_chain has looked. */
static int64_t each_record(sb_applier *all, const sb_end_frame *frame,
                           int64_t (*what)(sb_applier *, const sb_journal_record *))
{
    int64_t code = SB_OK;
    for (int64_t at = 0; at < frame->bytes && code == SB_OK;) {
        const sb_journal_record record = record_at(frame, at);
        code = what(all, &record);
        at += record_bytes(record.length);
    }
    return code;
}

static int64_t is_not_whole(const sb_end_frame *frame)
{
    char number[SB_FRAME_TEXT_BYTES];
    sb_frame_text(frame->number, number);
    return fail(SB_JOURNAL_DAMAGED, "frame %s is not whole: its last record is missing", number);
}

static int64_t check(const sb_end_frame *frame)
{
    bool is_last = false;
    for (int64_t at = 0; at < frame->bytes;) {
        const unsigned char *record = (const unsigned char *)frame->records + at;
        const record_head *head = (const record_head *)(const void *)record;
        int64_t bytes = record_bytes(head->length);
        if (head->body_crc != crc32c(0, record + HEAD, (size_t)(bytes - HEAD)))
            return does_not_check(frame, at);
        is_last = head->where & RECORD_LAST;
        at += bytes;
    }
    return is_last ? SB_OK : is_not_whole(frame);
}

/* --- in a journal of its own ------------------------------------------------------------------ */

/* With a seal of its own; which segments are needed is said of its own.  *retires: something is
 * needed no more once this is written. */
static int64_t stage(sb_applier *all, const sb_end_frame *frame, bool *retires)
{
    int64_t code = SB_OK, bytes;
    bool is_last = false, has_author = false;
    for (int64_t at = 0; at < frame->bytes && code == SB_OK; at += bytes) {
        const unsigned char *record = (const unsigned char *)frame->records + at;
        const record_head *head = (const record_head *)(const void *)record;
        int64_t kind = record_kind(head);
        bytes = record_bytes(head->length);
        is_last = head->where & RECORD_LAST;
        if (kind == SB_RECORD_SEGMENTS || (kind == SB_RECORD_COPIED && has_author))
            continue;
        has_author |= kind == SB_RECORD_COPIED;
        *retires |= kind != SB_RECORD_MESSAGE && kind != SB_RECORD_COPIED;
        code = journal_stage_record(all->journal, record, bytes);
        if (code == SB_JOURNAL_DAMAGED)
            code = does_not_check(frame, at);
        if (code == SB_OK && kind == SB_RECORD_QUEUES)
            code = journal_retire_others(all->journal, (const void *)(record + HEAD),
                                         head->length / 8);
    }
    return code == SB_OK && !is_last ? is_not_whole(frame) : code;
}

/* What the frame, which is written, says is needed no more. */
static int64_t let_go(sb_applier *all, const sb_journal_record *record)
{
    int64_t kind = record->kind, number = record->queue & INT64_MAX;
    if (kind == SB_RECORD_MESSAGE)
        return SB_OK;
    const restored *queue = *applier_place(all, number);
    int64_t code = SB_OK;
    if (kind == SB_RECORD_RETIRED && record->position > 0)
        code = sb_journal_retire(all->journal, number, record->position);
    if (kind == SB_RECORD_QUEUE_GONE)
        code = sb_journal_retire(all->journal, number, SB_JOURNAL_ALL);
    if (kind == SB_RECORD_QUEUE_GONE && code == SB_OK)
        code = sb_journal_retire(all->journal, number | INT64_MIN, SB_JOURNAL_ALL);
    if (kind == SB_RECORD_IDS && queue && record->position >= queue->once.listed.most)
        code = sb_journal_retire(all->journal, record->queue,
                                 record->position - queue->once.listed.most + 1);
    return code;
}

/* A segment begins here where one of the original begins: that frame has all that a segment must
 * know, and all ids of what the segments of before have are listed in it.  If one begins elsewhere,
 * for want of room or because we have begun anew, those of before stay until then. */
static int64_t journaled(sb_applier *all, const sb_end_frame *frame)
{
    bool begins = (uint32_t)frame->number == 1, retires = false;
    int64_t code = begins ? check(frame) : SB_OK; /* a list of queues acts when it is staged */
    if (code == SB_OK)
        code = stage(all, frame, &retires);
    if (code == SB_OK)
        code = sb_journal_stage(all->journal, SB_RECORD_COPIED, 0, 0, &all->next,
                                sizeof all->next);
    if (code != SB_OK) {
        journal_stage_nothing(all->journal);
        return code;
    }
    if (begins)
        journal_turn_over(all->journal);
    if (begins || journal_begins_segment(all->journal))
        journal_holds(all->journal, !begins);
    code = sb_journal_commit(all->journal);
    return code == SB_OK && retires ? each_record(all, frame, let_go) : code;
}

static void written(void *context)
{
    sb_applier *all = context;
    atomic_store(&all->written, all->next.number);
    if (all->event >= 0)
        eventfd_write(all->event, 1);
}

int64_t sb_applier_written(sb_applier *applier)
{
    return atomic_load(&applier->written);
}

int64_t sb_applier_sync(sb_applier *applier)
{
    int64_t number = atomic_load(&applier->written), code = journal_sync_beside(applier->journal);
    if (code == SB_OK)
        atomic_store(&applier->synced, number);
    return code;
}

int64_t sb_applier_synced(sb_applier *applier)
{
    return atomic_load(&applier->synced);
}

void applier_journals(sb_applier *all, sb_journal *journal)
{
    all->journal = journal;
    all->is_replica = true;
    journal_tell_written(journal, written, all);
    journal_syncs_later(journal);
}

/* --- where it is ------------------------------------------------------------------------------ */

void sb_applier_place(const sb_applier *applier, sb_place *place)
{
    *place = (sb_place){applier->number, applier->epoch, applier->seal, applier->chain};
}

void sb_applier_go_on(sb_applier *applier, const sb_place *place)
{
    applier_reached(applier, place);
    atomic_store(&applier->written, place->number);
    atomic_store(&applier->synced, 0);
}

/* --- frames ----------------------------------------------------------------------------------- */

static int64_t follows(const sb_applier *to, const sb_end_frame *frame)
{
    if ((uintptr_t)frame->records % 8)
        return fail(SB_INVALID, "the records of a frame are aligned to 8 bytes");
    if (frame->number <= to->number)
        return SB_DUPLICATE;
    if (to->number && frame->after != to->number) {
        char wanted[SB_FRAME_TEXT_BYTES], found[SB_FRAME_TEXT_BYTES];
        sb_frame_text(to->number, wanted);
        sb_frame_text(frame->after, found);
        return fail(SB_GONE, "frames are missing: the last one was %s, and this one comes after %s",
                    wanted, found);
    }
    return SB_OK;
}

static void unmap_what_was_applied(sb_applier *to, int64_t bytes)
{
    if ((to->mapped += bytes) < MAPPED_BYTES)
        return;
    connections_unmap();
    to->mapped = 0;
}

/* What is left of it. */
static int64_t rest(sb_applier *to, sb_journal_record *record)
{
    int64_t code = SB_OK, bytes = to->batch ? to->batch->bytes : to->frame.bytes;
    while (code == SB_OK && to->at < bytes) {
        *record = to->batch ? batch_record(to->batch, to->at) : record_at(&to->frame, to->at);
        to->at += record_bytes(record->length);
        code = applier_record(to, record);
    }
    if (code == SB_UNDECIDED)
        return code;
    if (code == SB_OK && to->frame.bytes > 0)
        applier_reached(to, &to->next);
    if (code != SB_OK)
        applier_failed(to, code); /* half of it may be there */
    unmap_what_was_applied(to, bytes);
    to->frame.bytes = 0;
    to->batch = NULL;
    to->reads = false;
    return code;
}

int64_t sb_applier_records(sb_applier *to, const sb_batch *batch, sb_journal_record *record)
{
    to->shipped = to->end = NULL;
    to->batch = batch;
    to->at = 0;
    to->reads = !to->is_locked;
    return rest(to, record);
}

/* `chain`: behind it. */
static int64_t apply(sb_applier *to, const sb_end_frame *frame, int64_t chain,
                     sb_journal_record *record)
{
    if (to->failed)
        return fail(to->failed, "%s", to->why);
    int64_t code = follows(to, frame);
    if (code == SB_OK && chain < 0)
        code = fail(SB_JOURNAL_DAMAGED, "a frame is not whole");
    if (code == SB_OK && !to->journal)
        code = check(frame);
    if (code != SB_OK)
        return code;
    to->next = (sb_place){frame->number, frame->epoch, frame->seal, chain};
    if (to->journal)
        code = journaled(to, frame);
    if (code == SB_JOURNAL_DAMAGED)
        return code; /* nothing was done */
    if (code != SB_OK) {
        applier_failed(to, code);
        return code;
    }
    to->frame = *frame;
    to->at = 0;
    return rest(to, record);
}

int64_t sb_applier_apply(sb_applier *to, const sb_end_frame *frame, sb_journal_record *record)
{
    to->shipped = to->end = NULL;
    int64_t chain = sb_shipped_chain(to->chain, frame->number, frame->seal,
                                     frame->records, frame->bytes);
    return apply(to, frame, chain, record);
}

/* A frame of a former live, or one behind another past than ours. */
static int64_t fits(const sb_applier *to, const sb_shipped *head, int64_t chain)
{
    char number[SB_FRAME_TEXT_BYTES];
    sb_frame_text(head->number, number);
    if (head->epoch < to->epoch)
        return fail(SB_STALE, "frame %s is of epoch %lld, and epoch %lld was met", number,
                    (long long)head->epoch, (long long)to->epoch);
    if (chain != head->chain)
        return fail(SB_JOURNAL_DAMAGED, "frame %s does not check, or what is before it there is "
                    "not what is here", number);
    return SB_OK;
}

static int64_t one(sb_applier *to, const sb_shipped *head, const void *records,
                   sb_journal_record *record)
{
    if (head->number <= to->number && head->epoch == to->epoch)
        return SB_OK; /* it was applied before */
    int64_t chain = sb_shipped_chain(to->chain, head->number, head->seal, records, head->bytes);
    int64_t code = fits(to, head, chain);
    if (code != SB_OK)
        return code;
    return apply(to, &(sb_end_frame){
        .number = head->number, .after = head->after, .epoch = head->epoch, .records = records,
        .bytes = head->bytes, .seal = head->seal}, chain, record);
}

int64_t sb_applier_more(sb_applier *to, sb_journal_record *record)
{
    int64_t code = rest(to, record);
    while (code == SB_OK && to->shipped < to->end) {
        const sb_shipped *head = (const sb_shipped *)(const void *)to->shipped;
        const unsigned char *records = to->shipped + L_SHIPPED_HEAD_BYTES;
        if (to->end - to->shipped < L_SHIPPED_HEAD_BYTES || head->bytes < HEAD || head->bytes % 8 ||
            head->bytes > to->end - records)
            return fail(SB_JOURNAL_DAMAGED, "what has come is not made of whole frames");
        to->shipped = records + head->bytes;
        code = one(to, head, records, record);
    }
    return code;
}

int64_t sb_applier_frames(sb_applier *to, const void *frames, int64_t bytes, int64_t event,
                          sb_journal_record *record)
{
    to->shipped = frames;
    to->end = to->shipped + bytes;
    to->event = (int)event;
    return (uintptr_t)frames % 8 ? SB_INVALID : sb_applier_more(to, record);
}
