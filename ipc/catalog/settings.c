/* Settings of a queue: a page of its ring, written before the ring has its name.  They are part of
 * what the queue was declared as: who wants other ones makes another queue.
 *
 * What who declares it leaves out comes from patterns (pattern.c) or is the default.  A pattern has
 * a page of the same shape, so that a setting is taken over by copying its bytes. */

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "settings_table.h"
#include "vhost/vhost.h"

static const sb_settings NONE;

#define COUNT (int)(sizeof PLACES / sizeof *PLACES)

/* --- from the caller -------------------------------------------------------------------------- */

static int64_t limit(const char *what, int64_t value, int64_t most)
{
    if (value >= 0 && value <= most)
        return SB_OK;
    return fail(SB_INVALID, "%s is a number from 0 to %lld, not %lld", what, (long long)most,
                (long long)value);
}

static int64_t name_write(void *page, int64_t at, const char *name)
{
    if (!name)
        return SB_OK;
    int64_t code = name_check("queue", name);
    if (code != SB_OK)
        return code;
    word_store(page, at, (int64_t)strlen(name));
    strcpy((char *)page + at + 8, name);
    return SB_OK;
}

static int64_t set_by(const sb_settings *s, const void *page)
{
    int64_t set = s->set;
    for (int each = 0; each < COUNT; each++)
        if (word_load(page, PLACES[each].at) != 0)
            set |= PLACES[each].set;
    return s->max_deliveries ? set | SB_SET_MAX_DELIVERIES : set;
}

/* A queue that keeps the last values, or all messages. */
static bool keeps(const void *page)
{
    return word_load(page, L_SETTING_LAST_VALUE_AT) ||
           word_load(page, L_SETTING_NON_DESTRUCTIVE_AT);
}

/* What nobody can have of a queue from which nothing is taken; a pattern may give it all the same,
 * for other queues that it matches. */
static int64_t kept_agree(const void *page)
{
    static const struct {
        int64_t set;
        const char *name, *why;
    } WITHOUT[] = {
        {SB_SET_MAX_DELIVERIES, "max_deliveries", "nothing is delivered, each consumer looks"},
        {SB_SET_DEAD_LETTER, "dead_letter", "nothing is delivered, so nothing can be rejected"},
        {SB_SET_PRIORITIES, "priorities", "each consumer sees all messages, in their order"},
        {SB_SET_SLOW_CONSUMER_THRESHOLD, "slow_consumer_threshold", "nobody has to wait for one"},
    };
    static const struct {
        int64_t at;
        const char *name, *why;
    } NEITHER[] = {
        {L_SETTING_GROUPS_AT, "groups", "they are about who takes, and in which order"},
        {L_SETTING_SINGLE_ACTIVE_AT, "single_active", "it is about who takes, and in which order"},
        {L_SETTING_REDELIVERY_DELAY_AT, "redelivery_delay", "what comes back is there at once"},
        {L_SETTING_DUPLICATE_IDS_AT, "duplicate_ids",
         "what is published counts, whatever was before"},
    };
    int64_t set = word_load(page, L_SETTINGS_SET_AT);
    const char *kind = word_load(page, L_SETTING_LAST_VALUE_AT) ? "last_value" : "non_destructive";
    for (size_t each = 0; keeps(page) && each < sizeof NEITHER / sizeof *NEITHER; each++)
        if (word_load(page, NEITHER[each].at))
            return fail(SB_INVALID, "a %s queue has no %s: %s", kind, NEITHER[each].name,
                        NEITHER[each].why);
    if (!word_load(page, L_SETTING_NON_DESTRUCTIVE_AT))
        return SB_OK;
    if (word_load(page, L_SETTING_DURABLE_AT))
        return fail(SB_INVALID,
                    "a non_destructive queue has no durable: the journal follows what is "
                    "taken or replaced, not what stays");
    for (size_t each = 0; each < sizeof WITHOUT / sizeof *WITHOUT; each++)
        if (set & WITHOUT[each].set)
            return fail(SB_INVALID, "a non_destructive queue has no %s: %s", WITHOUT[each].name,
                        WITHOUT[each].why);
    return SB_OK;
}

/* What does not go with pages: what is there is in order, and cannot be looked at or replaced. */
static int64_t pages_agree(const void *page)
{
    static const struct {
        int64_t at;
        const char *name, *why;
    } NEITHER[] = {
        {L_SETTING_LAST_VALUE_AT, "last_value", "what is in pages cannot be replaced"},
        {L_SETTING_NON_DESTRUCTIVE_AT, "non_destructive",
         "nothing leaves it, so nothing would come back from its pages"},
        {L_SETTING_DUPLICATE_IDS_AT, "duplicate_ids", "what is in pages is not compared"},
    };
    if (word_load(page, L_SETTING_WHEN_FULL_AT) != L_PAGE)
        return SB_OK;
    for (size_t each = 0; each < sizeof NEITHER / sizeof *NEITHER; each++)
        if (word_load(page, NEITHER[each].at))
            return fail(SB_INVALID, "a queue with when_full 'page' has no %s: %s",
                        NEITHER[each].name, NEITHER[each].why);
    return SB_OK;
}

static int64_t settings_agree(const void *page)
{
    int64_t ttl_max = word_load(page, L_SETTING_TTL_MAX_AT);
    if (ttl_max && word_load(page, L_SETTING_TTL_MIN_AT) > ttl_max)
        return fail(SB_INVALID, "ttl_min is longer than ttl_max: no message could have both");
    int64_t multiplier = word_load(page, L_SETTING_REDELIVERY_MULTIPLIER_AT);
    if (multiplier && multiplier < L_MULTIPLIER_UNIT)
        return fail(SB_INVALID,
                    "redelivery_multiplier is less than 1: the delay would become shorter");
    int64_t delay_max = word_load(page, L_SETTING_MAX_REDELIVERY_DELAY_AT);
    if (delay_max && word_load(page, L_SETTING_REDELIVERY_DELAY_AT) > delay_max)
        return fail(SB_INVALID, "redelivery_delay is longer than max_redelivery_delay");
    int64_t groups = word_load(page, L_SETTING_GROUPS_AT);
    int64_t single = word_load(page, L_SETTING_SINGLE_ACTIVE_AT);
    if (groups && single)
        return fail(SB_INVALID, "groups and single_active exclude each other: with a single active "
                    "consumer all messages go to one anyway");
    if ((groups || single) && word_load(page, L_SETTING_PRIORITIES_AT))
        return fail(SB_INVALID, "%s and priorities exclude each other: the order is that of "
                    "publishing, or that of priorities", groups ? "groups" : "single_active");
    int64_t code = pages_agree(page);
    return code == SB_OK ? kept_agree(page) : code;
}

/* One setting from the caller to the page. */
static int64_t setting_write(const sb_settings *settings, void *page, const struct place *place)
{
    int64_t number = word_load(settings, (int64_t)place->given_at);
    if (place->is_name)
        return name_write(page, place->at, (const char *)number);
    if (place->set == SB_SET_MAX_DELIVERIES && number == SB_UNLIMITED)
        number = 0;
    int64_t code = limit(place->name, number, place->most);
    if (code == SB_OK)
        word_store(page, place->at, number);
    return code;
}

int64_t settings_write(const sb_settings *settings, void *page)
{
    const sb_settings *s = settings ? settings : &NONE;
    int64_t code = limit("given_length", s->given_length, L_SETTINGS_GIVEN_BYTES_MAX);
    for (int each = 0; each < COUNT && code == SB_OK; each++)
        code = setting_write(s, page, &PLACES[each]);
    if (code != SB_OK)
        return code;
    if (s->max_producer_bytes > 0 && s->max_producer_bytes < L_BLOCK_BYTES)
        return fail(SB_INVALID,
                    "max_producer_bytes is at least %d, which is how the arena is divided, "
                    "not %lld",
                    (int)L_BLOCK_BYTES, (long long)s->max_producer_bytes);
    word_store(page, L_SETTINGS_SET_AT, set_by(s, page));
    word_store(page, L_SETTINGS_GIVEN_LENGTH_AT, s->given_length);
    if (s->given_length)
        memcpy((char *)page + L_SETTINGS_GIVEN_AT, s->given, (size_t)s->given_length);
    return settings_agree(page);
}

int64_t settings_finished(const void *page)
{
    if (word_load(page, L_SETTING_NON_DESTRUCTIVE_AT) &&
        word_load(page, L_SETTING_WHEN_FULL_AT) == L_BLOCK && !word_load(page, L_SETTING_TTL_AT) &&
        !word_load(page, L_SETTING_TTL_MAX_AT))
        return fail(SB_INVALID, "non_destructive and when_full 'block' without a ttl or ttl_max: "
                    "nothing ever leaves, so producers would wait for ever");
    if (word_load(page, L_SETTINGS_SET_AT) & SB_SET_CONFIRM_REPLICAS &&
        word_load(page, L_SETTING_CONFIRM_REPLICAS_AT) && !word_load(page, L_SETTING_DURABLE_AT))
        return fail(SB_INVALID, "confirm_replicas is for durable queues: no other confirms");
    if (word_load(page, L_SETTINGS_SET_AT) & SB_SET_REPLICATE &&
        word_load(page, L_SETTING_REPLICATE_AT) != L_REPLICATE_NONE &&
        !word_load(page, L_SETTING_DURABLE_AT))
        return fail(SB_INVALID, "replicate is 'none' for a queue that is not durable: it is not in "
                    "the journal, and other members have nothing else");
    return settings_agree(page);
}

int64_t replicate_default(sb_connection *connection)
{
    int64_t said = word_load(connection->catalog.memory, L_CATALOG_REPLICATE_AT);
    return said ? said - 1 : L_REPLICATE_UNSAID;
}

int64_t settings_replicate(sb_connection *connection, const void *page, int64_t flags)
{
    int64_t said = word_load(page, L_SETTING_REPLICATE_AT);
    if (!word_load(page, L_SETTING_DURABLE_AT))
        return L_REPLICATE_NONE;
    if (said != L_REPLICATE_UNSAID)
        return said;
    return flags & L_QUEUE_TEMPORARY ? L_REPLICATE_NONE : replicate_default(connection);
}

void sb_vhost_replicates(sb_connection *connection, int64_t replicate)
{
    word_store(connection->catalog.memory, L_CATALOG_REPLICATE_AT, 1 + replicate);
}

int64_t settings_mode(const void *page)
{
    int64_t single = word_load(page, L_SETTING_SINGLE_ACTIVE_AT);
    int64_t buckets = single ? 1 : word_load(page, L_SETTING_GROUPS_AT);
    return word_load(page, L_SETTING_PRIORITIES_AT) << L_MODE_LEVELS_SHIFT |
           buckets << L_MODE_BUCKETS_SHIFT | (single ? L_MODE_SINGLE : 0) |
           (word_load(page, L_SETTING_NON_DESTRUCTIVE_AT) ? L_MODE_KEPT : 0) |
           (word_load(page, L_SETTING_REPLICA_AT) ? L_MODE_REPLICA : 0);
}

/* --- from patterns, and the defaults ---------------------------------------------------------- */

static void take_over(void *page, const void *from, const struct place *place)
{
    size_t bytes = place->is_name ? 8 + L_NAME_BYTES_MAX + 1 : 8;
    memcpy((char *)page + place->at, (const char *)from + place->at, bytes);
}

/* Note whose settings these are, for people. */
static int64_t note_source(void *page, const void *pattern, int64_t taken)
{
    int64_t used = word_load(page, L_SETTINGS_GIVEN_LENGTH_AT);
    int64_t name = word_load(pattern, L_SETTINGS_PATTERN_AT);
    int64_t given = word_load(pattern, L_SETTINGS_GIVEN_LENGTH_AT);
    if (used == 0)
        *((char *)page + L_SETTINGS_GIVEN_AT + used++) = (char)0x80; /* nothing was declared */
    if (used + name + given + 7 > L_SETTINGS_GIVEN_BYTES_MAX)
        return fail(SB_INVALID,
                    "the settings of the patterns that match, and its own, take more than %d bytes",
                    (int)L_SETTINGS_GIVEN_BYTES_MAX);
    unsigned char *at = (unsigned char *)page + L_SETTINGS_GIVEN_AT + used, *start = at;
    *at++ = 0xD9;
    *at++ = (unsigned char)name;
    memcpy(at, (const char *)pattern + L_SETTINGS_PATTERN_AT + 8, (size_t)name);
    at += name;
    *at++ = 0xCE;
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (unsigned char)(taken >> shift);
    if (given == 0)
        *at++ = 0x80;
    memcpy(at, (const char *)pattern + L_SETTINGS_GIVEN_AT, (size_t)given);
    word_store(page, L_SETTINGS_GIVEN_LENGTH_AT, used + (at + given - start));
    return SB_OK;
}

int64_t settings_inherit(void *page, const void *pattern, int64_t refused, int64_t *have)
{
    int64_t taken = 0, offered = word_load(pattern, L_SETTINGS_SET_AT) & ~refused;
    for (int each = 0; each < COUNT; each++)
        if (offered & ~*have & PLACES[each].set) {
            take_over(page, pattern, &PLACES[each]);
            taken |= PLACES[each].set;
        }
    *have |= taken;
    return taken ? note_source(page, pattern, taken) : SB_OK;
}

void settings_default(void *page, int64_t have)
{
    for (int each = 0; each < COUNT; each++) {
        const struct place *place = &PLACES[each];
        int64_t number = word_load(page, place->at);
        bool is_given = number || have & place->set;
        if (!place->is_name && (!is_given || number < place->least))
            word_store(page, place->at, place->otherwise);
    }
    if (word_load(page, L_SETTING_NON_DESTRUCTIVE_AT) && !(have & SB_SET_WHEN_FULL))
        word_store(page, L_SETTING_WHEN_FULL_AT, L_DROP_OLDEST);
    if (!(have & SB_SET_DUPLICATE_IDS) &&
        (keeps(page) || word_load(page, L_SETTING_WHEN_FULL_AT) == L_PAGE))
        word_store(page, L_SETTING_DUPLICATE_IDS_AT, 0);
}

static bool same(const void *left, const void *right, const struct place *place)
{
    int64_t length = word_load(left, place->at);
    if (length != word_load(right, place->at))
        return false;
    return !place->is_name || (length >= 0 && length <= L_NAME_BYTES_MAX &&
                               memcmp((const char *)left + place->at + 8,
                                      (const char *)right + place->at + 8, (size_t)length) == 0);
}

/* The value as people write it. */
static void value_write(char *text, size_t room, const void *page, const struct place *place)
{
    char name[L_NAME_BYTES_MAX + 1];
    int64_t value = word_load(page, place->at);
    switch (value == 0 && place->is_none_at_0 ? KIND_NONE : place->kind) {
    case KIND_NONE:
        snprintf(text, room, "none");
        break;
    case KIND_QUEUE:
        snprintf(text, room, "'%.*s'", (int)name_in(page, place->at, name), name);
        break;
    case KIND_SECONDS:
        snprintf(text, room, "%g s", (double)value / 1e9);
        break;
    case KIND_RATE:
        snprintf(text, room, "%g/s", 1e9 / (double)value);
        break;
    case KIND_FACTOR:
        snprintf(text, room, "%g", (double)value / L_MULTIPLIER_UNIT);
        break;
    case KIND_FLAG:
        snprintf(text, room, value ? "on" : "off");
        break;
    case KIND_CHOICE:
        if (value == place->otherwise && value > place->most)
            snprintf(text, room, "none");
        else
            snprintf(text, room, "'%s'",
                     value >= 0 && value <= place->most ? place->choices[value] : "?");
        break;
    default:
        snprintf(text, room, "%lld", (long long)value);
    }
}

bool settings_differ(const void *asked, const void *there, char *text, size_t room)
{
    int64_t given = word_load(asked, L_SETTINGS_SET_AT);
    size_t length = 0;
    text[0] = 0;
    for (int each = 0; each < COUNT; each++) {
        char has[L_NAME_BYTES_MAX + 8], wanted[L_NAME_BYTES_MAX + 8];
        if (!(given & PLACES[each].set) || same(asked, there, &PLACES[each]))
            continue;
        value_write(has, sizeof has, there, &PLACES[each]);
        value_write(wanted, sizeof wanted, asked, &PLACES[each]);
        if (length < room)
            length += (size_t)snprintf(text + length, room - length, "%s%s is %s, not %s",
                                       length ? ", " : "", PLACES[each].name, has, wanted);
    }
    return length > 0;
}

int64_t name_in(const void *page, int64_t at, char *name)
{
    int64_t length = word_load(page, at);
    if (length < 0 || length > L_NAME_BYTES_MAX)
        length = 0;
    memcpy(name, (const char *)page + at + 8, (size_t)length);
    name[length] = 0;
    return length;
}

int64_t setting_name(const sb_queue *queue, int64_t at, char *name)
{
    return name_in(queue->ring.memory, at, name);
}

int64_t sb_when_full(sb_queue *queue)
{
    return queue->when_full;
}

int64_t sb_is_non_destructive(sb_queue *queue)
{
    return queue->non_destructive;
}

int64_t sb_replicate(sb_queue *queue)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    int64_t said = setting(queue, L_SETTING_REPLICATE_AT);
    queue_looked(queue);
    return said == L_REPLICATE_UNSAID ? L_REPLICATE_NONE : said;
}

int64_t sb_settings_given(sb_queue *queue, void *buffer, int64_t capacity)
{
    int64_t length;
    if (!queue_look(queue, &length))
        return length;
    length = setting(queue, L_SETTINGS_GIVEN_LENGTH_AT);
    if (length < 0 || length > L_SETTINGS_GIVEN_BYTES_MAX)
        length = SB_DAMAGED;
    else if (length > capacity)
        length = SB_TOO_SMALL;
    else
        memcpy(buffer, (const char *)queue->ring.memory + L_SETTINGS_GIVEN_AT, (size_t)length);
    queue_looked(queue);
    return length;
}
