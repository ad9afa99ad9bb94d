/* What a queue is declared with, and settings by pattern of the name. */

#ifndef SHMBROKER_SETTINGS_ROOM_H
#define SHMBROKER_SETTINGS_ROOM_H

#include "base/base.h"

/* --- settings.c ------------------------------------------------------------------------------- */

/* All of these take a page of settings as a ring, or as if it were in one: at L_RING_SETTINGS_AT. */
/* Check settings, and write what is given into a page that is all zero. */
int64_t settings_write(const sb_settings *settings, void *page);
/* Take over what a pattern has and the page has not, but for what is refused; *have: bits SB_SET_*. */
int64_t settings_inherit(void *page, const void *pattern, int64_t refused, int64_t *have);
void settings_default(void *page, int64_t have);
int64_t settings_agree(const void *page);
/* The same, once nothing is missing any more. */
int64_t settings_finished(const void *page);
/* How a ring with these settings is taken from: its RING_MODE. */
int64_t settings_mode(const void *page);
/* Whether what is asked for, and was written, is what a queue was declared as. */
bool settings_same(const void *asked, const void *there);
int64_t name_in(const void *page, int64_t at, char *name);
int64_t setting(const sb_queue *queue, int64_t at);
/* A queue's name in the settings: its length, 0 if there is none. */
int64_t setting_name(const sb_queue *queue, int64_t at, char *name);

/* --- pattern.c -------------------------------------------------------------------------------- */

/* Complete the settings of a queue of this name with those of the patterns that match. */
int64_t patterns_apply(sb_connection *connection, const char *name, void *page);
/* Whether a queue of this name is to be made when somebody asks for it. */
bool patterns_create(sb_connection *connection, const char *name);
/* Remove what a death in the middle of a change has left. */
void patterns_tidy(sb_connection *connection);

#endif
