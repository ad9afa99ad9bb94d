/* What the journal is told of queues besides their messages: that they are there, how far they are
 * retired, and what a segment begins with.
 *
 * What is retired is written as the head of the ring, with or after the messages, and now and then
 * what is done with above it, too; it may lag, then a crash repeats the last few. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "broker/broker.h"
#include "broker/journaler.h"
#include "catalog/catalog.h"
#include "journal/journal.h"

int64_t followed_stage_retired(sb_journaler *journaler, followed *each)
{
    if (each->head <= each->retired)
        return SB_OK;
    int64_t code =
        sb_journal_stage(journaler->journal, SB_RECORD_RETIRED, each->number, each->head, "", 0);
    if (code == SB_OK)
        each->retired = each->head;
    return code;
}

int64_t followed_stage_retired_above(sb_journaler *journaler, followed *each)
{
    if (each->done.length == 0 || each->done.digest == each->above)
        return followed_stage_retired(journaler, each);
    int64_t code = sb_journal_stage(journaler->journal, SB_RECORD_RETIRED, each->number,
                                    each->done.head, each->done.bits, each->done.length);
    if (code == SB_OK) {
        each->retired = each->done.head > each->retired ? each->done.head : each->retired;
        each->above = each->done.digest;
        code = followed_stage_retired(journaler, each);
    }
    return code;
}

static int64_t stage_declaration(sb_journaler *journaler, followed *each)
{
    char entry[L_ENTRY_BYTES], body[DECLARATION_ROOM];
    void *catalog = journaler->connection->catalog.memory;
    int64_t row = each->queue->reference & L_REFERENCE_INDEX_MASK;
    if (sb_row_copy(catalog, L_QUEUES, row, entry) != each->queue->reference)
        return SB_OK; /* it was deleted meanwhile: we are about to hear of it */
    int64_t length = declaration_of(each->queue, entry, body);
    if (length < 0)
        return SB_OK; /* and so was the queue whose schedule it is */
    return sb_journal_stage(journaler->journal, SB_RECORD_QUEUE, each->number, each->head, body,
                            length);
}

/* It was declared, or is from before: not before the moment at which its head was seen. */
int64_t followed_stage_news(sb_journaler *journaler, followed *each)
{
    bool follows = setting(each->queue, L_SETTING_REPLICA_AT) != 0;
    if (each->is_declared && each->follows == follows)
        return SB_OK;
    int64_t code = stage_declaration(journaler, each);
    if (each->is_declared) { /* it was detached from what it has followed */
        each->follows = code == SB_OK ? follows : each->follows;
        return code;
    }
    each->follows = follows;
    if (code == SB_OK)
        code = dedup_log_stage(&each->once, &each->port, each->safe, journaler->journal);
    each->is_declared = code == SB_OK;
    return code;
}

/* Which queues there are, and so that all others are gone: the segment that says so of one of them
 * is not kept, and of one that was deleted while nobody was live, none says so. */
static int64_t stage_queues(sb_journaler *journaler, sb_journal *journal)
{
    int64_t *numbers = malloc((size_t)(journaler->count + 1) * sizeof *numbers);
    if (!numbers)
        return fail_system("memory for a list of queues");
    for (int64_t each = 0; each < journaler->count; each++)
        numbers[each] = journaler->queues[each]->number;
    int64_t code = sb_journal_stage(journal, SB_RECORD_QUEUES, 0, 0, numbers,
                                    journaler->count * (int64_t)sizeof *numbers);
    if (code == SB_OK)
        code = journal_retire_others(journal, numbers, journaler->count);
    free(numbers);
    return code;
}

/* If it has changed since the look, what the look has staged comes behind this, and is older: then
 * it is staged once more. */
static int64_t stage_catalog(sb_journaler *journaler, sb_journal *journal)
{
    uint64_t digest;
    int64_t code = catalog_stage(journaler->connection, journal, &digest);
    if (digest != journaler->digest)
        journaler->digest = 0;
    return code;
}

int64_t journaler_snapshot(sb_journal *journal, void *context)
{
    sb_journaler *journaler = context;
    journaler->passes = true; /* of each something is written */
    int64_t code = stage_catalog(journaler, journal);
    if (code == SB_OK)
        code = standing_stage_held(journaler, journal);
    if (code == SB_OK)
        code = stage_queues(journaler, journal);
    for (int64_t each = 0; each < journaler->count && code == SB_OK; each++) {
        followed *one = journaler->queues[each];
        one->above = 0; /* the segment that knows it may go */
        one->is_declared = true;
        one->follows = setting(one->queue, L_SETTING_REPLICA_AT) != 0;
        code = stage_declaration(journaler, one);
        if (code == SB_OK)
            code = followed_stage_retired_above(journaler, one);
        if (code == SB_OK)
            code = dedup_log_stage(&one->once, &one->port, one->cursor.position, journal);
    }
    return code == SB_OK ? unplaced_stage_all(journaler) : code;
}
