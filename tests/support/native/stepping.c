/* Stepping through another program faster than Python can: see tracer.py. */

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* So many instructions: 1; or 0 if the program stopped itself before, -1 if it ended. */
int step(int pid, long instructions)
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
