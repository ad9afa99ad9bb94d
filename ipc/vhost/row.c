/* Rows of the catalog in which no queue is. */

#define _GNU_SOURCE

#include "base/base.h"
#include "vhost/vhost.h"

static int64_t generation_of(sb_connection *connection, int64_t column_at, int64_t row)
{
    int64_t word = word_load(connection->catalog.memory, column_at + (row << L_ROW_SHIFT));
    return (word >> L_ROW_GENERATION_SHIFT) & L_ROW_GENERATION_MASK;
}

int64_t row_next_reference(sb_connection *connection, int64_t row)
{
    int64_t generation = generation_of(connection, L_QUEUE_COLUMN_AT, row);
    return (generation > 0 ? generation : 1) << L_REFERENCE_INDEX_BITS | row;
}

/* Nothing is left of the row's former queue that somebody may still use. */
bool row_is_deserted(sb_connection *connection, int64_t row)
{
    if (sb_row_reference(connection->catalog.memory, L_QUEUES, row) >= 0)
        return false;
    int64_t former = row_next_reference(connection, row) - (INT64_C(1) << L_REFERENCE_INDEX_BITS);
    return former >> L_REFERENCE_INDEX_BITS == 0 || !participant_used(connection, former);
}
