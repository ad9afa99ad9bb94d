/* Receipts: where a message is in each durable queue that an exchange has led it to. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "exchange/exchange.h"

void receipts_note(sb_receipts *receipts, sb_receipt where, int64_t code)
{
    if (code == SB_DUPLICATE) /* the one that counts may not be on disk yet */
        where.position = sb_published(where.queue) - 1;
    if ((code >= 0 || code == SB_DUPLICATE) && where.position >= 0 &&
        sb_is_durable(where.queue) == 1) {
        sb_share_queue(where.queue); /* until sb_receipts_free */
        receipts->entries[receipts->count++] = where;
    }
}

int64_t receipts_room(sb_receipts *receipts, int64_t more)
{
    if (!ROOM_FOR(receipts->entries, receipts->room, receipts->count + more))
        return fail_system("memory for receipts");
    return SB_OK;
}

int64_t sb_receipts_confirm(const sb_receipts *receipts, int64_t level, int64_t timeout_ns)
{
    int64_t deadline = monotonic_deadline(timeout_ns), code = SB_OK;
    for (int64_t each = 0; each < receipts->count && code >= SB_OK; each++) {
        int64_t left = deadline - sb_system_clock();
        code = sb_confirm(receipts->entries[each].queue, receipts->entries[each].position, level,
                          left > 0 ? left : 0);
        if (code == SB_NOT_FOUND) /* deleted since, with all that was in it */
            code = SB_OK;
    }
    return code < 0 ? code : SB_OK;
}

void sb_receipts_free(sb_receipts *receipts)
{
    for (int64_t each = 0; each < receipts->count; each++)
        sb_close_queue(receipts->entries[each].queue);
    free(receipts->entries);
    *receipts = (sb_receipts){0};
}
