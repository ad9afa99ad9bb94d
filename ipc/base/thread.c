/* Threads of our own, in whatever program we are: signals are for the program's threads.
 *
 * A signal that the kernel gives to a thread of ours interrupts no wait of the program's, so a
 * program that sleeps until it is told to end would sleep on. */

#define _GNU_SOURCE

#include "base/base.h"

void signals_block(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

void signals_restore(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

int64_t thread_start(pthread_t *started, void *(*work)(void *), void *context, const char *what)
{
    sigset_t before;
    /* a new thread has the mask of who makes it, from its first moment on */
    signals_block(&before);
    int error = pthread_create(started, NULL, work, context);
    signals_restore(&before);
    if (error == 0)
        return SB_OK;
    errno = error;
    return fail_system("starting the thread of %s", what);
}
