/* Joining a vhost as a participant, and leaving it. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "repair/repair.h"
#include "vhost/vhost.h"

static void fill_in(sb_connection *connection, int64_t id, const char *name)
{
    char *entry = participant_entry(connection, id);
    size_t length = strlen(name);
    if (length > L_PARTICIPANT_NAME_BYTES_MAX)
        length = L_PARTICIPANT_NAME_BYTES_MAX;
    memset(entry + 8, 0, (size_t)L_PARTICIPANT_BYTES - 8);
    word_store(entry, L_PARTICIPANT_PID_AT, getpid());
    word_store(entry, L_PARTICIPANT_START_AT, start_of(getpid()));
    word_store(entry, L_PARTICIPANT_NAMESPACE_AT, pid_namespace());
    word_store(entry, L_PARTICIPANT_JOINED_AT, realtime_ns());
    word_store(entry, L_PARTICIPANT_NAME_LENGTH_AT, (int64_t)length);
    memcpy(entry + L_PARTICIPANT_NAME_AT, name, length);
}

int64_t participant_join(sb_connection *connection, const char *name, bool repairs)
{
    for (int64_t id = 1; id < L_PARTICIPANTS; id++) {
        if (!participant_lock_byte(connection->lock_file, id, F_WRLCK))
            continue;
        int64_t code = SB_OK;
        if (id >= participants_high(connection))
            code = sb_system_allocate(connection->participants.file, participant_at(id),
                                      L_PARTICIPANT_BYTES);
        if (code != SB_OK) {
            code = fail_system("memory for a participant");
            participant_lock_byte(connection->lock_file, id, F_UNLCK);
            return code;
        }
        raise_high(connection, id + 1);
        char *entry = participant_entry(connection, id);
        connection->id = id;
        if (word_load(entry, L_PARTICIPANT_STATE_AT) != L_PARTICIPANT_FREE) {
            /* its former owner is dead or leaving: first put right what it left */
            if (!repairs || participant_still_runs(entry) || repair_owner(connection, id) < 0) {
                connection->id = 0; /* it stays that of another */
                participant_lock_byte(connection->lock_file, id, F_UNLCK);
                continue;
            }
            note_death(connection, id);
        }
        fill_in(connection, id, name);
        participant_state_set(connection, id, L_PARTICIPANT_LIVE);
        return SB_OK;
    }
    return fail(SB_TOO_MANY, "vhost '%s' has %d participants already: close some",
                connection->vhost, (int)L_PARTICIPANTS - 1);
}

void participant_leave(sb_connection *connection)
{
    int64_t id = connection->id;
    participant_state_set(connection, id, L_PARTICIPANT_LEAVING);
    /* what we took and did not deal with goes to others at once; or, if our rings are out of reach,
     * when they serve again */
    if (repair_owner(connection, id) >= 0)
        participant_state_set(connection, id, L_PARTICIPANT_FREE);
    participant_lock_byte(connection->lock_file, id, F_UNLCK);
}
