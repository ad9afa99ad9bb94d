/* A setting of a queue, as its ring has it. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

/* By bit: where in the page it is. */
static const struct place {
    int64_t set, at;
    bool is_name;
} PLACES[] = {
    {SB_SET_MAX_DELIVERIES, L_SETTING_MAX_DELIVERIES_AT, false},
    {SB_SET_DEAD_LETTER, L_SETTING_DEAD_LETTER_AT, true},
    {SB_SET_TTL, L_SETTING_TTL_AT, false},
    {SB_SET_TTL_MIN, L_SETTING_TTL_MIN_AT, false},
    {SB_SET_TTL_MAX, L_SETTING_TTL_MAX_AT, false},
    {SB_SET_EXPIRY_QUEUE, L_SETTING_EXPIRY_QUEUE_AT, true},
    {SB_SET_MAX_MESSAGES, L_SETTING_MAX_MESSAGES_AT, false},
    {SB_SET_MAX_BYTES, L_SETTING_MAX_BYTES_AT, false},
    {SB_SET_WHEN_FULL, L_SETTING_WHEN_FULL_AT, false},
    {SB_SET_AUTO_DELETE, L_SETTING_AUTO_DELETE_AT, false},
    {SB_SET_AUTO_DELETE_DELAY, L_SETTING_AUTO_DELETE_DELAY_AT, false},
    {SB_SET_AUTO_CREATE, L_SETTING_AUTO_CREATE_AT, false},
    {SB_SET_PRIORITIES, L_SETTING_PRIORITIES_AT, false},
    {SB_SET_DURABLE, L_SETTING_DURABLE_AT, false},
    {SB_SET_REDELIVERY_DELAY, L_SETTING_REDELIVERY_DELAY_AT, false},
    {SB_SET_REDELIVERY_MULTIPLIER, L_SETTING_REDELIVERY_MULTIPLIER_AT, false},
    {SB_SET_MAX_REDELIVERY_DELAY, L_SETTING_MAX_REDELIVERY_DELAY_AT, false},
    {SB_SET_MAX_SCHEDULED, L_SETTING_MAX_SCHEDULED_AT, false},
    {SB_SET_DUPLICATE_IDS, L_SETTING_DUPLICATE_IDS_AT, false},
    {SB_SET_GROUPS, L_SETTING_GROUPS_AT, false},
    {SB_SET_REBALANCE, L_SETTING_REBALANCE_AT, false},
    {SB_SET_SINGLE_ACTIVE, L_SETTING_SINGLE_ACTIVE_AT, false},
    {SB_SET_LAST_VALUE, L_SETTING_LAST_VALUE_AT, false},
    {SB_SET_NON_DESTRUCTIVE, L_SETTING_NON_DESTRUCTIVE_AT, false},
    {SB_SET_MAX_PRODUCER_BYTES, L_SETTING_MAX_PRODUCER_BYTES_AT, false},
    {SB_SET_SLOW_CONSUMER_THRESHOLD, L_SETTING_SLOW_CONSUMER_THRESHOLD_AT, false},
    {SB_SET_SLOW_CONSUMER_POLICY, L_SETTING_SLOW_CONSUMER_POLICY_AT, false},
};

/* --- of a queue that is there ----------------------------------------------------------------- */

int64_t setting(const sb_queue *queue, int64_t at)
{
    return word_load(queue->ring.memory, at);
}
