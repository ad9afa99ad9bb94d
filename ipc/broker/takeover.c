/* What a member leaves out that takes over from another one: queues and exchanges whose `replicate`
 * is 'none', and the messages of queues whose is 'configuration'.
 *
 * The frames of the journal are copied as they are, so it has all of that, and each replica too.
 * It is left out before anything has its name, so no program ever sees it here.  The first frame of
 * the new live lists the queues that exist: whoever reads or copies it drops the others.  Before
 * that frame nothing has changed, and the next member that takes over does the same; after it all
 * is done.  So a death in between leaves nothing half.
 *
 * A queue with 'configuration' is made anew, with an identity of its own: what is known of the
 * messages that are gone (their ids, what is scheduled, how far streams are) goes with them. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "broker/applier.h"

/* --- queues ----------------------------------------------------------------------------------- */

/* Empty, and of a number that no segment knows.  The row of the former one is free: there may be no
 * other. */
static int64_t made_anew(sb_applier *all, restored **at)
{
    char page[L_RING_GATES_AT] = "", name[L_NAME_BYTES_MAX + 1];
    declaration_head head = (*at)->head;
    strcpy(name, (*at)->name);
    memcpy(page + L_RING_SETTINGS_AT, (const char *)(*at)->ring.memory + L_RING_SETTINGS_AT,
           L_RING_GATES_AT - L_RING_SETTINGS_AT);
    applier_forget(all, at);
    if (getrandom(head.identity, sizeof head.identity, 0) != sizeof head.identity)
        return fail_system("random numbers");
    head.monotonic = sb_system_clock();
    head.realtime = realtime_ns();
    int64_t number = head.identity[1] & INT64_MAX;
    int64_t code = applier_declare(all, number, &head, name, page, 0);
    if (code == SB_OK)
        (*applier_place(all, number))->is_anew = true;
    return code;
}

/* A schedule and an inbox have what their queue has said, and go with it. */
static int64_t queues_left_out(sb_applier *all)
{
    int64_t code = SB_OK;
    for (int hash = 0; hash < HASHES; hash++)
        for (restored **at = &all->queues[hash]; *at && code == SB_OK;) {
            int64_t said = word_load((*at)->ring.memory, L_SETTING_REPLICATE_AT);
            bool is_beside = (*at)->is_schedule || (*at)->head.flags & L_QUEUE_INBOX;
            if ((*at)->is_anew || replicate_is_all(said))
                at = &(*at)->next;
            else if (said == L_REPLICATE_CONFIGURATION && !is_beside)
                code = made_anew(all, at);
            else
                applier_forget(all, at);
        }
    return code;
}

/* --- exchanges -------------------------------------------------------------------------------- */

static catalog_body **exchange_place(sb_applier *all, const char *name)
{
    char each[L_NAME_BYTES_MAX + 1], alternate[L_NAME_BYTES_MAX + 1];
    catalog_body **at = &all->bodies;
    while (*at && (catalog_exchange((*at)->bytes, (*at)->length, each, alternate) < 0 ||
                   strcmp(each, name) != 0))
        at = &(*at)->next;
    return at;
}

/* Bindings to and from them find an end missing, and are left out as well (restore.c). */
static void exchanges_left_out(sb_applier *all)
{
    char name[L_NAME_BYTES_MAX + 1], alternate[L_NAME_BYTES_MAX + 1];
    for (catalog_body **at = &all->bodies; *at;) {
        catalog_body *each = *at;
        if (catalog_exchange(each->bytes, each->length, name, alternate) != L_REPLICATE_NONE) {
            at = &each->next;
            continue;
        }
        *at = each->next;
        free(each);
    }
    for (all->last = &all->bodies; *all->last; all->last = &(*all->last)->next) {
        catalog_body *each = *all->last;
        if (catalog_exchange(each->bytes, each->length, name, alternate) >= 0 && *alternate &&
            !*exchange_place(all, alternate))
            each->length = catalog_without_alternate(each->bytes);
    }
}

int64_t applier_takes_over(sb_applier *all)
{
    exchanges_left_out(all);
    return queues_left_out(all);
}
