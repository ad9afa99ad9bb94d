/* Which member of a replicated node is live, and who is in sync, as the journal says it: bytes that
 * somebody else has made (netbridge/member/).  They are written with the next frame, or alone while
 * an end is full (turn.c), and each segment begins with those that hold.
 *
 * Whoever hands over has the journal hold: what is there is written once more, and then nothing
 * else, so that what the others have by then is all that there is. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/base.h"
#include "broker/journaler.h"
#include "journal/journal.h"

static void wake(sb_journaler *journaler)
{
    atomic_fetch_add(&journaler->control, 1);
    sb_system_wake((int64_t)(intptr_t)&journaler->control, 1);
}

/* The mutex is held. */
static void tell(sb_journaler *journaler)
{
    standing *of = &journaler->standing;
    of->last = journaler->noted;
    if (of->event >= 0)
        eventfd_write(of->event, 1);
}

standing_look standing_seen(sb_journaler *journaler)
{
    standing *of = &journaler->standing;
    pthread_mutex_lock(&of->mutex);
    const standing_look seen = {of->news != NULL, of->hold, of->hold && of->held == of->hold,
                                of->held != of->hold, of->serves_again};
    pthread_mutex_unlock(&of->mutex);
    return seen;
}

int64_t standing_stage(sb_journaler *journaler)
{
    standing *of = &journaler->standing;
    int64_t code = SB_OK;
    pthread_mutex_lock(&of->mutex);
    if (of->news) {
        code = sb_journal_stage(journaler->journal, SB_RECORD_STANDING, 0, 0, of->news,
                                of->news_length);
        if (code == SB_OK) {
            free(of->body);
            of->body = of->news;
            of->length = of->news_length;
            of->news = NULL;
            of->staged = of->wanted;
        }
    }
    pthread_mutex_unlock(&of->mutex);
    return code;
}

/* Of the journaler's thread alone is what holds. */
int64_t standing_stage_held(sb_journaler *journaler, sb_journal *journal)
{
    const standing *of = &journaler->standing;
    return of->body ? sb_journal_stage(journal, SB_RECORD_STANDING, 0, 0, of->body, of->length)
                    : SB_OK;
}

void standing_committed(sb_journaler *journaler)
{
    standing *of = &journaler->standing;
    pthread_mutex_lock(&of->mutex);
    if (of->synced != of->staged) {
        of->synced = of->staged;
        of->number = journaler->noted;
        tell(journaler);
    }
    pthread_mutex_unlock(&of->mutex);
}

void standing_serves(sb_journaler *journaler)
{
    standing *of = &journaler->standing;
    pthread_mutex_lock(&of->mutex);
    bool again = of->serves_again;
    of->serves_again = false;
    pthread_mutex_unlock(&of->mutex);
    for (int64_t each = 0; again && each < journaler->count; each++) {
        followed *one = journaler->queues[each];
        if (is_replicated(one->queue))
            sb_port_wake_takers(&one->port);
        else
            sb_port_wake_all(&one->port); /* also who waits for a confirm */
    }
}

void standing_rests(sb_journaler *journaler, int64_t hold)
{
    standing *of = &journaler->standing;
    pthread_mutex_lock(&of->mutex);
    if (of->held != hold) {
        of->held = hold;
        tell(journaler);
    }
    pthread_mutex_unlock(&of->mutex);
}

void standing_free(sb_journaler *journaler)
{
    free(journaler->standing.body);
    free(journaler->standing.news);
    pthread_mutex_destroy(&journaler->standing.mutex);
}

/* --- of other threads ------------------------------------------------------------------------- */

int64_t sb_journaler_standing(sb_journaler *journaler, const void *body, int64_t length)
{
    standing *of = &journaler->standing;
    char *news = malloc((size_t)length + 1);
    if (!news)
        return fail_system("memory for the standing of a member");
    memcpy(news, body, (size_t)length);
    pthread_mutex_lock(&of->mutex);
    free(of->news); /* each says all */
    of->news = news;
    of->news_length = length;
    int64_t count = ++of->wanted;
    pthread_mutex_unlock(&of->mutex);
    wake(journaler);
    return count;
}

void sb_journaler_hold(sb_journaler *journaler, int64_t holds)
{
    standing *of = &journaler->standing;
    pthread_mutex_lock(&of->mutex);
    if (!holds)
        of->hold = 0;
    else if (!of->hold)
        of->hold = ++of->holds;
    pthread_mutex_unlock(&of->mutex);
    wake(journaler);
}

void sb_journaler_serves(sb_journaler *journaler)
{
    standing *of = &journaler->standing;
    pthread_mutex_lock(&of->mutex);
    of->serves_again = true;
    pthread_mutex_unlock(&of->mutex);
    wake(journaler);
}

void sb_journaler_tell(sb_journaler *journaler, int64_t event)
{
    standing *of = &journaler->standing;
    pthread_mutex_lock(&of->mutex);
    of->event = (int)event;
    pthread_mutex_unlock(&of->mutex);
}

void sb_journaler_told(sb_journaler *journaler, sb_standing_told *told)
{
    standing *of = &journaler->standing;
    pthread_mutex_lock(&of->mutex);
    *told = (sb_standing_told){of->synced, of->number, of->last,
                                of->hold && of->held == of->hold};
    pthread_mutex_unlock(&of->mutex);
}
