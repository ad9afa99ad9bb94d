/* Which segments are needed: those with a message at or above the head of its queue, as far as it
 * is known, once the record is written that says which queues there are what is in them. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "journal/audit.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "journal/store.h"
#include "journal/writer.h"

/* --- the segments ----------------------------------------------------------------------------- */

segment_state *segment_with(sb_journal *journal, int64_t serial)
{
    for (int64_t each = journal->segment_count - 1; each >= 0; each--)
        if (journal->segments[each].serial == serial)
            return &journal->segments[each];
    return NULL;
}

segment_state *segment_note(sb_journal *journal, int64_t serial)
{
    int64_t at = journal->segment_count;
    if (!ROOM_FOR(journal->segments, journal->segment_room, at + 1))
        return NULL;
    for (; at > 0 && journal->segments[at - 1].serial > serial; at--)
        journal->segments[at] = journal->segments[at - 1];
    journal->segment_count++;
    journal->segments[at] =
        (segment_state){.serial = serial, .end = UNKNOWN_END, .moved = NOT_MOVED};
    return &journal->segments[at];
}

void segment_forget(sb_journal *journal, int64_t serial)
{
    segment_state *found = segment_with(journal, serial);
    if (!found)
        return;
    tally_free(&found->tally);
    free(found->runs.all);
    int64_t behind = journal->segment_count - (found - journal->segments) - 1;
    memmove(found, found + 1, (size_t)behind * sizeof *found);
    journal->segment_count--;
}

void segments_free(sb_journal *journal)
{
    for (int64_t each = 0; each < journal->segment_count; each++) {
        tally_free(&journal->segments[each].tally);
        free(journal->segments[each].runs.all);
    }
    free(journal->segments);
    journal->segments = NULL;
    journal->segment_count = journal->segment_room = 0;
}

/* --- what is in them -------------------------------------------------------------------------- */

int64_t sb_journal_adopt(sb_journal *journal, const sb_found *found)
{
    int64_t code = SB_OK;
    if (journal->current.file >= 0 || journal->adopted)
        return fail(SB_INVALID, "a journal adopts what was found once, before it begins");
    for (int64_t each = 0; code == SB_OK && each < found->count; each++) {
        const segment_found *one = &found->segments[each];
        segment_state *made = segment_note(journal, one->serial);
        code = made ? tally_copy(&made->tally, &one->tally) : fail_system("memory for segments");
        if (code == SB_OK) {
            made->end = one->end;
            made->state = SEGMENT_KNOWN;
        }
    }
    if (code != SB_OK)
        segments_free(journal);
    journal->adopted = code == SB_OK;
    return code;
}

int64_t segments_inherit(sb_journal *journal, const segment_list *list)
{
    journal->segment_count = 0;
    for (int64_t each = 0; each < list->count; each++) {
        segment_state *needed = segment_note(journal, list->entries[each].serial);
        if (!needed)
            return fail_system("memory for a list of segments");
        needed->end = list->entries[each].end;
    }
    return SB_OK;
}

static void learn_one(sb_journal *journal, segment_state *of, learnt *told)
{
    if (told->code == SB_OK) {
        of->state = SEGMENT_KNOWN;
        of->end = told->end;
        of->tally = told->tally;
        of->runs = told->runs;
        return;
    }
    of->state = told->code == SB_NOT_FOUND ? SEGMENT_UNNEEDED : SEGMENT_DAMAGED;
    if (of->state == SEGMENT_DAMAGED && journal->auditor.damaged)
        journal->auditor.damaged(told->text, journal->auditor.context);
    tally_free(&told->tally);
    free(told->runs.all);
}

void segments_learn(sb_journal *journal)
{
    learnt told;
    while (store_learnt(journal->store, &told)) {
        segment_state *of = segment_with(journal, told.serial);
        if (of) {
            learn_one(journal, of, &told);
            continue;
        }
        tally_free(&told.tally);
        free(told.runs.all);
    }
}

/* --- whether all is there --------------------------------------------------------------------- */

void journal_audited_by(sb_journal *journal, const journal_auditor *auditor)
{
    journal->auditor = *auditor;
}

bool journal_audit(sb_journal *journal)
{
    const journal_auditor *by = &journal->auditor;
    bool is_all = true;
    segments_learn(journal);
    for (int64_t each = 0; each < journal->segment_count; each++) {
        segment_state *of = &journal->segments[each];
        is_all &= of->state != SEGMENT_UNKNOWN;
        for (int64_t run = 0; run < of->runs.count; run++)
            by->found(of->runs.all[run].queue, of->runs.all[run].first, of->runs.all[run].last,
                      by->context);
        free(of->runs.all);
        of->runs = (runs_found){0};
    }
    return is_all;
}

void journal_audit_done(sb_journal *journal)
{
    for (int64_t each = 0; each < journal->segment_count; each++)
        if (journal->segments[each].state == SEGMENT_DAMAGED)
            journal->segments[each].moved =
                journal->frame.records ? journal->commits : journal->commits - 1;
}

int64_t sb_journal_retire(sb_journal *journal, int64_t queue, int64_t position)
{
    tally_entry *head = tally_of(&journal->heads, queue);
    if (!head)
        return fail_system("memory for the head of a queue");
    head->high = position > head->high ? position : head->high;
    return SB_OK;
}

int64_t journal_retire_then(sb_journal *journal, int64_t queue, int64_t position)
{
    const tally_entry *known = tally_find(&journal->heads, queue);
    if (known && known->high >= position)
        return SB_OK;
    tally_entry *head = tally_of(&journal->then, queue);
    if (!head)
        return fail_system("memory for the head of a queue");
    head->high = position > head->high ? position : head->high;
    return SB_OK;
}

int64_t heads_advance(sb_journal *journal, tally *before, bool with_all)
{
    int64_t code = tally_copy(before, &journal->heads);
    for (int64_t each = 0; each < journal->then.count && code == SB_OK; each++) {
        const tally_entry *head = &journal->then.entries[each];
        if (with_all || head->high < SB_JOURNAL_ALL)
            code = sb_journal_retire(journal, head->queue, head->high);
    }
    if (code != SB_OK)
        heads_restore(journal, before);
    return code;
}

void heads_restore(sb_journal *journal, tally *before)
{
    tally_free(&journal->heads);
    journal->heads = *before;
    *before = (tally){0};
}

void heads_written(sb_journal *journal)
{
    /* without memory: again with the next */
    for (int64_t each = 0; each < journal->then.count; each++)
        sb_journal_retire(journal, journal->then.entries[each].queue,
                          journal->then.entries[each].high);
    tally_clear(&journal->then);
}

/* Nothing of other queues than these is needed any more: what is in the segments of before, as far
 * as it is known. */
int64_t journal_retire_others(sb_journal *journal, const int64_t *queues, int64_t count)
{
    tally there = {0};
    int64_t code = SB_OK;
    for (int64_t each = 0; each < count && code == SB_OK; each++)
        code = tally_of(&there, queues[each]) ? SB_OK : fail_system("memory for a list of queues");
    for (int64_t each = 0; each < journal->segment_count; each++) {
        const tally *in = &journal->segments[each].tally;
        for (int64_t entry = 0; entry < in->count && code == SB_OK; entry++) {
            int64_t queue = in->entries[entry].queue;
            if (!tally_find(&there, queue & INT64_MAX)) /* lists of ids have the sign bit */
                code = journal_retire_then(journal, queue, SB_JOURNAL_ALL);
        }
    }
    tally_free(&there);
    return code;
}

void journal_holds(sb_journal *journal, bool holds)
{
    journal->holds = holds;
}

void sb_journal_keep(sb_journal *journal, int64_t from, int64_t bytes)
{
    int64_t one = journal->options.segment_bytes;
    atomic_store(&journal->keeps_from, from);
    atomic_store(&journal->keeps_newest, bytes < 0 ? INT64_MAX / 2 : (bytes + one - 1) / one);
}

/* Somebody copies it, or may want to go on from there. */
static bool is_kept(const sb_journal *journal, const segment_state *of)
{
    if (journal->holds)
        return true;
    return !journal->yields && (of->serial >= atomic_load(&journal->keeps_from) ||
                                of->serial > journal->current.serial -
                                                 atomic_load(&journal->keeps_newest));
}

static bool is_needed(const sb_journal *journal, const segment_state *of)
{
    bool needed;
    if (of->state == SEGMENT_UNNEEDED || (of->moved != NOT_MOVED && journal->commits > of->moved))
        return false;
    if (of->state != SEGMENT_KNOWN || is_kept(journal, of))
        return true;
    tally_live(&of->tally, &journal->heads, &needed);
    return needed;
}

bool journal_is_known(const sb_journal *journal)
{
    for (int64_t each = 0; each < journal->segment_count; each++)
        if (journal->segments[each].state == SEGMENT_UNKNOWN)
            return false;
    return true;
}

int64_t segments_dead(const sb_journal *journal)
{
    int64_t dead = 0;
    for (int64_t each = 0; each < journal->segment_count; each++)
        dead += !is_needed(journal, &journal->segments[each]);
    return dead;
}

/* --- the list --------------------------------------------------------------------------------- */

int64_t list_bytes(const sb_journal *journal)
{
    return record_bytes((journal->segment_count + 1) * (int64_t)sizeof(listed));
}

int64_t list_stage(sb_journal *journal, frame *to)
{
    int64_t count = 0;
    listed *entries = malloc((size_t)(journal->segment_count + 1) * sizeof *entries);
    if (!entries)
        return fail_system("memory for a list of segments");
    for (int64_t each = 0; each < journal->segment_count; each++) {
        segment_state *of = &journal->segments[each];
        of->dropped = !is_needed(journal, of);
        if (!of->dropped)
            entries[count++] = (listed){of->serial, of->end};
    }
    int64_t code = frame_add(to, &(record_parts){
        .kind = SB_RECORD_SEGMENTS, .body = entries, .length = count * (int64_t)sizeof *entries});
    free(entries);
    return code;
}

/* Heads of queues of which nothing is left are of no more use. */
static void forget_heads(sb_journal *journal)
{
    tally kept = {0};
    for (int64_t each = 0; each < journal->heads.count; each++) {
        const tally_entry *head = &journal->heads.entries[each];
        bool used = head->high < SB_JOURNAL_ALL || tally_find(&journal->written, head->queue);
        for (int64_t other = 0; other < journal->segment_count && !used; other++)
            used = journal->segments[other].state == SEGMENT_UNKNOWN ||
                   tally_find(&journal->segments[other].tally, head->queue);
        tally_entry *moved = used ? tally_of(&kept, head->queue) : NULL;
        if (used && !moved) {
            tally_free(&kept);
            return;
        }
        if (moved)
            moved->high = head->high;
    }
    tally_free(&journal->heads);
    journal->heads = kept;
}

int64_t segments_recycle(sb_journal *journal)
{
    int64_t dropped = 0;
    for (int64_t each = journal->segment_count - 1; each >= 0; each--) {
        int64_t serial = journal->segments[each].serial;
        bool is_damaged = journal->segments[each].state == SEGMENT_DAMAGED;
        if (!journal->segments[each].dropped)
            continue;
        segment_forget(journal, serial);
        if (is_damaged)
            store_set_aside(journal->store, serial);
        else
            store_recycle(journal->store, serial);
        dropped++;
    }
    if (dropped > 0)
        forget_heads(journal);
    return dropped;
}

int64_t sb_journal_statistics_of(sb_journal *journal, sb_journal_statistics *told)
{
    store_counts counts;
    segments_learn(journal);
    store_counted(journal->store, &counts);
    *told = (sb_journal_statistics){
        .serial = journal->current.serial, .offset = journal->end,
        .frame = journal->last,
        .segments = journal->segment_count + (journal->current.file >= 0),
        .bytes = journal->current.bytes,
        .spares = counts.spares, .recycled = counts.recycled, .deleted = counts.deleted,
        .made = counts.made, .waited = counts.waited,
        .frames = journal->counts.frames, .records = journal->counts.records,
    };
    bool needed;
    told->live_bytes = tally_live(&journal->written, &journal->heads, &needed);
    for (int64_t each = 0; each < journal->segment_count; each++) {
        const segment_state *of = &journal->segments[each];
        told->bytes +=
            of->end != UNKNOWN_END ? end_reached(of->end) : journal->options.segment_bytes;
        told->unknown += of->state == SEGMENT_UNKNOWN;
        told->damaged += of->state == SEGMENT_DAMAGED;
        told->live_bytes += tally_live(&of->tally, &journal->heads, &needed);
    }
    return SB_OK;
}

int64_t sb_journal_wait(sb_journal *journal, int64_t timeout_ns)
{
    int64_t code = store_wait(journal->store, timeout_ns);
    segments_learn(journal);
    return code;
}
