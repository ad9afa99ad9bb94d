/* What perf/machine/client.py connects by: sb_connect is an inline function, and this a symbol.
 *
 * Each of these libraries has one source file, which includes this. */
#ifndef SHMBROKER_PERF_CONNECT_H
#define SHMBROKER_PERF_CONNECT_H

#include <shmbroker.h>

#define PATIENCE_NS INT64_C(60000000000) /* the other process has failed */

int64_t ours_connect(const char *vhost, const char *name, sb_connection **connection)
{
    return sb_connect(vhost, name, connection);
}

#endif
