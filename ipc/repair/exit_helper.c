/* The exit helper: a process beside ours that has the same memory, and does nothing.
 *
 * A process that is killed first gives its memory back, page by page, and only then its files, and
 * the locks with them: milliseconds in which it is dead, nobody else can be live, and whoever waits
 * for a confirm waits.  Memory that another process still has is not given back: so our files are
 * closed at once, and the helper, which ends when we have ended, gives the memory back when our
 * locks are another's already.  When the last of our threads has, that is: if the helper went with
 * the first (PR_SET_PDEATHSIG), a thread that is slow to end would have all of the memory to give
 * back, before the files.
 *
 * It has no file but one that tells of our end, hears no signal and has nothing to run but what is
 * here.  Who is killed together with it, or without one, dies as slowly as before. */

#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

#define STACK_BYTES 16384
#define NICE 19 /* what is wanted then is the processor, for who takes over */

static _Alignas(16) char stack[STACK_BYTES];
static pid_t kept; /* whose memory it is that has a helper: after a fork it is another's */

/* It has the thread's locals, errno too, of who made it: system calls only, and such as do not
 * fail. */
static int keep(void *context)
{
    pid_t whose = *(const pid_t *)context;
    syscall(SYS_close_range, 0, ~0U, 0);
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, whose, 0), .events = POLLIN};
    if (end.fd < 0 || syscall(SYS_getppid) != whose)
        return 0; /* killed before that */
    setpriority(PRIO_PROCESS, 0, NICE);
    prctl(PR_SET_NAME, "exit helper");
    while (!(end.revents & POLLIN)) /* poll() is a point of cancellation: ours */
        syscall(SYS_ppoll, &end, 1, NULL, NULL, 0);
    return 0;
}

int64_t sb_keep_memory(void)
{
    sigset_t before;
    if (kept == getpid())
        return SB_OK;
    kept = getpid();
    signals_block(&before);
    int made = clone(keep, stack + STACK_BYTES, CLONE_VM, &kept);
    signals_restore(&before);
    if (made >= 0)
        return SB_OK;
    kept = 0;
    return fail_system("a process that keeps the memory");
}
