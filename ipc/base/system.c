/* The system calls that the kernels need; each returns 0 or a code of codes.py. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

/* posix_fallocate, not ftruncate alone: an exhausted tmpfs is then an error here, and not a SIGBUS
 * when somebody touches the memory. */
int64_t sb_system_allocate(int64_t file, int64_t offset, int64_t length)
{
    sigset_t before;
    int error;
    /* kernels before 6.11 begin anew after each, and a periodic timer has the next one ready */
    signals_block(&before);
    do
        error = posix_fallocate((int)file, offset, length);
    while (error == EINTR);
    signals_restore(&before);
    if (error == 0)
        return SB_OK;
    errno = error;
    return error == ENOSPC ? SB_NO_MEMORY : SB_SYSTEM;
}

int64_t sb_system_checksum(int64_t crc, int64_t address, int64_t length)
{
    return crc32c((uint32_t)crc, (const void *)(intptr_t)address, (size_t)length);
}

/* Futexes are words of 32 bits: the low half of a bell, which comes first on the machines we know.
 * Not FUTEX_PRIVATE: the sleepers are other processes. */
int64_t sb_system_wait(int64_t address, int64_t value, int64_t timeout_ns)
{
    struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    if (syscall(SYS_futex, address, FUTEX_WAIT, (uint32_t)value, &timeout, NULL, 0) == 0)
        return SB_OK;
    switch (errno) {
    case EAGAIN: return SB_OK;
    case EINTR: return SB_INTERRUPTED;
    case ETIMEDOUT: return SB_EMPTY;
    default: return SB_SYSTEM;
    }
}

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449 /* the same on all architectures; Linux 5.16 */
#endif
#define WAITV_SIZE_U32 2

struct waitv { /* linux/futex.h of 5.16 calls it futex_waitv */
    uint64_t value, address;
    uint32_t flags, reserved;
};

/* An older kernel, or a sandbox that does not know the call: one word after the other. */
static int64_t wait_in_turn(const system_word *words, int64_t count, int64_t deadline)
{
    static _Atomic uint64_t turn;
    const system_word *word = &words[atomic_fetch_add(&turn, 1) % (uint64_t)count];
    int64_t left = deadline - sb_system_clock();
    if (left <= 0)
        return SB_EMPTY;
    return sb_system_wait(word->address, word->value, left < TURN_NS ? left : TURN_NS) ==
                   SB_INTERRUPTED ? SB_INTERRUPTED : SB_OK;
}

int64_t system_wait_any(const system_word *words, int64_t count, int64_t deadline)
{
    struct waitv waits[WAIT_WORDS_MAX];
    struct timespec until = {deadline / 1000000000, deadline % 1000000000};
    for (int64_t each = 0; each < count; each++)
        waits[each] = (struct waitv){.value = (uint32_t)words[each].value,
                                     .address = (uint64_t)words[each].address,
                                     .flags = WAITV_SIZE_U32};
    if (syscall(SYS_futex_waitv, waits, count, 0, &until, CLOCK_MONOTONIC) >= 0)
        return SB_OK;
    switch (errno) {
    case EAGAIN: return SB_OK;
    case EINTR: return SB_INTERRUPTED;
    case ETIMEDOUT: return SB_EMPTY;
    case ENOSYS:
    case EPERM: return wait_in_turn(words, count, deadline);
    default: return SB_SYSTEM;
    }
}

int64_t sb_system_wake(int64_t address, int64_t count)
{
    return syscall(SYS_futex, address, FUTEX_WAKE, (int)count, NULL, NULL, 0);
}

int64_t sb_system_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t sb_system_yield(void)
{
    return sched_yield();
}
