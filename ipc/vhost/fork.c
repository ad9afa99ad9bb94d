/* All connections of this process.  After fork the child's copies answer SB_FORKED, and it closes
 * its copies of the locks. */

#define _GNU_SOURCE
#include <sys/mman.h>

#include "base/base.h"
#include "vhost/vhost.h"

static pthread_mutex_t connections_mutex = PTHREAD_MUTEX_INITIALIZER;

static sb_connection *connections;

static void before_fork(void)
{
    pthread_mutex_lock(&connections_mutex);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&connections_mutex);
}

static void after_fork_child(void)
{
    for (sb_connection *each = connections; each; each = each->next) {
        atomic_store(&each->closed, SB_FORKED);
        /* our copies of the descriptors would keep the parent alive after its death, also of one
         * that it is just making or closing in another thread */
        close_locks(each);
    }
    connections = NULL;
    pthread_mutex_unlock(&connections_mutex);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

int64_t connections_add(sb_connection *connection)
{
    pthread_mutex_lock(&connections_mutex);
    int64_t code = open_locks(connection);
    connection->next = connections;
    connections = connection;
    pthread_mutex_unlock(&connections_mutex);
    return code;
}

void connections_remove(sb_connection *connection)
{
    pthread_mutex_lock(&connections_mutex);
    for (sb_connection **at = &connections; *at; at = &(*at)->next)
        if (*at == connection) {
            *at = connection->next;
            break;
        }
    close_locks(connection);
    pthread_mutex_unlock(&connections_mutex);
}

void connections_unmap(void)
{
    pthread_mutex_lock(&connections_mutex);
    for (sb_connection *each = connections; each; each = each->next)
        madvise(each->arena.memory, (size_t)each->arena.bytes, MADV_DONTNEED);
    pthread_mutex_unlock(&connections_mutex);
}
