"""What every room uses: errors and their codes, names, units, time-outs, system calls.

In C: segments in /dev/shm, futexes, the log of errors, checksums, clocks.
It knows no vhost, queue or journal.
"""
