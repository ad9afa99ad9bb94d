/* Requests and their replies: the queues that replies come to, and handles of those that we reply
 * to.  It stands on queue. */

#ifndef SHMBROKER_REQUEST_ROOM_H
#define SHMBROKER_REQUEST_ROOM_H

#include "base/base.h"

/* --- request.c -------------------------------------------------------------------------------- */

/* At the end of the connection. */
void request_free(sb_connection *connection);

/* --- reply.c ---------------------------------------------------------------------------------- */

/* Close the handles for replies; and, at the end of the connection, free them. */
void reply_shut(sb_connection *connection);
void reply_free(sb_connection *connection);
/* Whether a handle of reply.c is open for this queue; the connection's mutex is held. */
bool reply_goes_to(sb_connection *connection, int64_t reference);

#endif
