/* Looking through the segments of before, for somebody who knows what should be in them.
 *
 * Whoever takes over rings that are there begins without having read the journal.  All of it is
 * looked through in the background; who audits is told of each message that is there, and of each
 * segment that is damaged or missing.  Nothing in a damaged one counts: nobody could read beyond
 * it.  What the auditor misses it stages anew, and then the damaged ones are let go. */

#ifndef SHMBROKER_JOURNAL_AUDIT_H
#define SHMBROKER_JOURNAL_AUDIT_H

#include "base/base.h"

typedef struct journal_auditor {
    /* These messages of a queue are in a segment that is whole. */
    void (*found)(int64_t queue, int64_t first, int64_t last, void *context);
    /* A segment that is needed cannot be read: in words. */
    void (*damaged)(const char *what, void *context);
    void *context;
} journal_auditor;

/* Before it begins; if something was adopted, there is nothing to audit. */
void journal_audited_by(sb_journal *journal, const journal_auditor *auditor);
/* Tell the auditor what was found since: whether all was looked through. */
bool journal_audit(sb_journal *journal);
/* All that the auditor missed is staged, or was committed: once it is committed, damaged segments
 * are not needed any more. */
void journal_audit_done(sb_journal *journal);
/* Nothing is to be written just now: note how far all was. */
void journal_rests(sb_journal *journal);
/* Write the list of what is needed, with all ends that are known by now. */
int64_t journal_list_anew(sb_journal *journal);

#endif
