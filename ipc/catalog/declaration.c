/* Declarations: what a vhost consists of, as bodies of the journal's records.
 *
 * Rows and references are of one boot only, so records name things: a queue by its random identity
 * (the lower half is its number in the journal) and its name, ends of bindings by their names.
 * What is no queue is read again by Python (broker/declared.py).
 *
 * The schedule of a queue is declared as a queue of its own, flagged so, under the name of its
 * queue: in place of the reference in its settings stands that queue's number, and there is the
 * last id that was given, so that none is given twice. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"

#define HEAD_BYTES ((int64_t)sizeof(declaration_head))
#define DIGEST_BEGINS UINT64_C(0xCBF29CE484222325)

/* --- queues ----------------------------------------------------------------------------------- */

/* Settings without the zeros at their end. */
static int64_t settings_length(const char *settings)
{
    int64_t length = L_RING_GATES_AT - L_RING_SETTINGS_AT;
    while (length > 0 && settings[length - 1] == 0)
        length--;
    return length;
}

static int64_t name_of(const char *entry, char *name)
{
    int64_t length = word_load(entry, L_ENTRY_NAME_LENGTH_AT);
    if (length < 0 || length > L_NAME_BYTES_MAX)
        return 0;
    memcpy(name, entry + L_ENTRY_NAME_AT, (size_t)length);
    return length;
}

/* Of a schedule: whose it is.  Of which queue the body speaks; SB_NOT_FOUND if that is gone. */
static int64_t schedule_declare(sb_queue *schedule, char *settings, char *name)
{
    char entry[L_ENTRY_BYTES];
    int64_t of = setting(schedule, L_SETTING_SCHEDULE_OF_AT), row = of & L_REFERENCE_INDEX_MASK;
    if (sb_row_copy(schedule->connection->catalog.memory, L_QUEUES, row, entry) != of)
        return SB_NOT_FOUND;
    name[name_of(entry, name)] = 0;
    word_store(settings, L_SETTING_SCHEDULE_OF_AT - L_RING_SETTINGS_AT,
               word_load(entry, L_QUEUE_IDENTITY_LOW_AT) & INT64_MAX);
    word_store(settings, L_SETTING_SCHEDULED_AT - L_RING_SETTINGS_AT,
               word_load(schedule->ring.memory, L_RING_SCHEDULED_AT));
    return SB_OK;
}

int64_t declaration_of(sb_queue *queue, const char *entry, char *body)
{
    char name[L_NAME_BYTES_MAX + 1], settings[L_RING_GATES_AT - L_RING_SETTINGS_AT];
    memcpy(settings, (const char *)queue->ring.memory + L_RING_SETTINGS_AT, sizeof settings);
    strcpy(name, queue->name);
    if (word_load(entry, L_QUEUE_FLAGS_AT) & L_QUEUE_SCHEDULE &&
        schedule_declare(queue, settings, name) != SB_OK)
        return SB_NOT_FOUND;
    declaration_head head = {
        .identity = {word_load(entry, L_QUEUE_IDENTITY_HIGH_AT),
                     word_load(entry, L_QUEUE_IDENTITY_LOW_AT)},
        .slots = queue->slots,
        .flags = word_load(entry, L_QUEUE_FLAGS_AT),
        .created = word_load(entry, L_QUEUE_CREATED_AT),
        .monotonic = sb_system_clock(),
        .realtime = realtime_ns(),
        .name_length = (int64_t)strlen(name),
        .settings_length = settings_length(settings),
    };
    memcpy(body, &head, sizeof head);
    memcpy(body + HEAD_BYTES, name, (size_t)head.name_length);
    memcpy(body + HEAD_BYTES + head.name_length, settings, (size_t)head.settings_length);
    return HEAD_BYTES + head.name_length + head.settings_length;
}

int64_t declaration_read(const void *body, int64_t length, declaration_head *head, char *name,
                         char *page)
{
    if (length < HEAD_BYTES)
        return SB_JOURNAL_DAMAGED;
    memcpy(head, body, sizeof *head);
    if (head->name_length < 1 || head->name_length > L_NAME_BYTES_MAX ||
        head->settings_length < 0 || head->settings_length > L_RING_GATES_AT - L_RING_SETTINGS_AT ||
        length != HEAD_BYTES + head->name_length + head->settings_length ||
        sb_ring_bytes(head->slots) < 0)
        return SB_JOURNAL_DAMAGED;
    memcpy(name, (const char *)body + HEAD_BYTES, (size_t)head->name_length);
    name[head->name_length] = 0;
    memset(page, 0, L_RING_GATES_AT);
    memcpy(page + L_RING_SETTINGS_AT, (const char *)body + HEAD_BYTES + head->name_length,
           (size_t)head->settings_length);
    return SB_OK;
}

/* --- exchanges and bindings: one record each; the first of all begins anew -------------------- */

typedef int64_t (*record_taker)(void *context, const char *record, int64_t length);

static int64_t each_record(sb_connection *connection, int64_t table, record_taker taker,
                           void *context)
{
    int64_t buffer[(L_DECLARED_BUFFER_BYTES + 7) / 8], row = 0, code = SB_OK;
    void *catalog = connection->catalog.memory;
    while (code == SB_OK && (row = sb_row_next(catalog, table, row)) >= 0) {
        int64_t length = sb_declared_record(catalog, table, row++, buffer);
        if (length)
            code = taker(context, (const char *)buffer + L_DECLARED_RECORD_AT, length);
    }
    return code;
}

static int64_t each_of_both(sb_connection *connection, record_taker taker, void *context)
{
    int64_t code = each_record(connection, L_EXCHANGES, taker, context);
    return code == SB_OK ? each_record(connection, L_BINDINGS, taker, context) : code;
}

static int64_t digest_one(void *context, const char *made, int64_t length)
{
    uint64_t digest = *(uint64_t *)context;
    for (int64_t at = 0; at < length; at++)
        digest = (digest ^ ((const unsigned char *)made)[at]) * UINT64_C(0x100000001B3);
    *(uint64_t *)context = digest;
    return SB_OK;
}

uint64_t catalog_digest(sb_connection *connection)
{
    uint64_t digest = DIGEST_BEGINS;
    each_of_both(connection, digest_one, &digest);
    return digest;
}

typedef struct staging {
    sb_journal *journal;
    uint64_t digest;
} staging;

static int64_t stage_one(void *context, const char *made, int64_t length)
{
    staging *to = context;
    digest_one(&to->digest, made, length);
    return sb_journal_stage(to->journal, SB_RECORD_CATALOG, 0, 1, made, length);
}

int64_t catalog_stage(sb_connection *connection, sb_journal *journal, uint64_t *digest)
{
    staging to = {journal, DIGEST_BEGINS};
    int64_t code = sb_journal_stage(journal, SB_RECORD_CATALOG, 0, 0, "", 0);
    if (code == SB_OK)
        code = each_of_both(connection, stage_one, &to);
    *digest = to.digest;
    return code;
}
