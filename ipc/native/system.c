/* The system calls that the kernels need; each returns 0 or a code of codes.py. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>

#include "shmbroker.h"

/* posix_fallocate, not ftruncate alone: an exhausted tmpfs is then an error here, and not a SIGBUS
 * when somebody touches the memory. */
int64_t sb_system_allocate(int64_t file, int64_t offset, int64_t length)
{
    int error;
    do
        error = posix_fallocate((int)file, offset, length);
    while (error == EINTR);
    if (error == 0)
        return SB_OK;
    errno = error;
    return error == ENOSPC ? SB_NO_MEMORY : SB_SYSTEM;
}

int64_t sb_system_yield(void)
{
    return sched_yield();
}
