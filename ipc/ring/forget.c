/* A participant uses a queue no more. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

void participant_forgets(sb_connection *connection, int64_t id, int64_t reference)
{
    char *entry = participant_entry(connection, id);
    if (id == connection->id) /* those of a dead one are not looked at any more */
        participant_selects_no_more(connection, reference);
    for (int64_t index = 0; index < participant_list_length(entry) && index < L_PARTICIPANT_LIST;
         index++) {
        int64_t at = L_PARTICIPANT_LIST_AT + 8 * index;
        if ((word_load(entry, at) & ~L_USES) == reference)
            word_store(entry, at, 0);
    }
    int64_t row = reference & L_REFERENCE_INDEX_MASK;
    if (row_last_reference(connection, row) != reference)
        /* we never used it, or its row would not be another's: what is there is of that one */
        return;
    if (participant_list_is_full(entry))
        atomic_store(participant_row_byte(connection, id, row), 0);
    if (sb_row_reference(connection->catalog.memory, L_QUEUES, row) < 0 &&
        !participant_used(connection, reference))
        blocks_drop(connection, row);
}
