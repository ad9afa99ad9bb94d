/* Stepping through another program faster than Python can: see tracer.py. */

#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static int stepped(int pid, long instructions)
{
    for (long each = 0; each < instructions; each++) {
        int status;
        if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) < 0 || waitpid(pid, &status, 0) < 0 ||
            !WIFSTOPPED(status))
            return -1;
        if (WSTOPSIG(status) == SIGSTOP)
            return 0;
    }
    return 1;
}

/* So many instructions: 1; or 0 if the program stopped itself before, -1 if it ended.

   Both on one processor meanwhile: they take turns, and to wake a process on another one, and to
   wait for it, takes four times as long. */
int step(int pid, long instructions)
{
    cpu_set_t ours, theirs, here;
    int is_known = sched_getaffinity(0, sizeof(ours), &ours) == 0 &&
                   sched_getaffinity(pid, sizeof(theirs), &theirs) == 0;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    if (is_known) {
        sched_setaffinity(0, sizeof(here), &here);
        sched_setaffinity(pid, sizeof(here), &here);
    }
    int answer = stepped(pid, instructions);
    if (is_known) {
        sched_setaffinity(0, sizeof(ours), &ours);
        sched_setaffinity(pid, sizeof(theirs), &theirs);
    }
    return answer;
}
