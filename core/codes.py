"""Error codes of kernels: negative numbers, and their texts."""

from __future__ import annotations

from typing import Final

OK: Final = 0
EMPTY: Final = -1
FULL: Final = -2
REVOKED: Final = -3
GONE: Final = -4
ARENA_FULL: Final = -5
TOO_LARGE: Final = -6
DUPLICATE: Final = -7
DAMAGED: Final = -8
INVALID: Final = -9
NO_GATE: Final = -10
NO_PRODUCER: Final = -11
TOO_SMALL: Final = -12
NEEDS_COMMIT: Final = -13
NOT_A_SEGMENT: Final = -14
OTHER_VERSION: Final = -15
TRUNCATED: Final = -16
WRONG_ARENA: Final = -17
SYSTEM: Final = -18
EXISTS: Final = -19
NO_MEMORY: Final = -20
TOO_MANY_LOANS: Final = -21
NOT_FOUND: Final = -22
TABLE_FULL: Final = -23
INTERRUPTED: Final = -24
SLEPT: Final = -25
CLOSED: Final = -26
FORKED: Final = -27
IN_USE: Final = -28
DIFFERENT: Final = -29
BAD_NAME: Final = -30
NO_VHOST: Final = -31
TOO_MANY: Final = -32
OTHER_BOOT: Final = -33
LOCKED: Final = -34
UNDECIDED: Final = -35
ENDED: Final = -36
UNFINISHED: Final = -37
NO_REPLY: Final = -38
REQUESTER_LEFT: Final = -39
TAKEN: Final = -40
ASSIGNED: Final = -41
DISK_FULL: Final = -42
JOURNAL_FAILED: Final = -43
JOURNAL_DAMAGED: Final = -44
STALE: Final = -45
UNCONFIRMED: Final = -46
OVER_SHARE: Final = -47
SLOW: Final = -48
UNTRUSTED: Final = -49
OTHER_HEADER: Final = -50
TOO_MANY_OPEN: Final = -51
MOVED: Final = -52
READ_ONLY: Final = -53
GROUPING_TIMEOUT: Final = -54
UNROUTABLE: Final = -55
DISCONNECTED: Final = -56

TEXTS: Final[dict[int, str]] = {
    OK: "done",
    EMPTY: "there is nothing to take",
    UNDECIDED: "the message is taken, and may be expired or delivered too often",
    FULL: "the queue is full: wait until messages are acknowledged, or declare it larger",
    REVOKED: "the message is no longer ours: its lease ran out, or we were considered dead",
    GONE: "the message at this position is no longer in the queue",
    ARENA_FULL: "the memory for messages is full: acknowledge some, or make the arena larger",
    TOO_LARGE: "the message is larger than a quarter of the arena",
    DUPLICATE: "a message with this id or number was published before: this one is dropped",
    DAMAGED: "the shared memory contradicts itself: something else has written into it",
    INVALID: "an argument is invalid",
    NO_GATE: "the queue has as many subscribers as it can have: close one first",
    NO_PRODUCER: "the queue has as many numbered producers as it can have",
    TOO_SMALL: "the buffer is too small",
    NEEDS_COMMIT: "the arena needs more memory behind it",
    NOT_A_SEGMENT: "the file is no segment of shmbroker: the magic number is missing",
    OTHER_VERSION: "it has another layout version: use the shmbroker that made it, or delete it",
    TRUNCATED: "a segment was cut short: delete the vhost",
    WRONG_ARENA: "the ring belongs to another arena: delete the vhost",
    SYSTEM: "the operating system refused: see errno",
    EXISTS: "it exists already: use it, or remove it first",
    NO_MEMORY: "/dev/shm is full: free some of it, or mount it larger",
    TOO_MANY_LOANS: "too many loans and threads in one queue: publish or drop some loans first",
    NOT_FOUND: "there is no such queue, exchange, binding or property",
    TABLE_FULL: "the vhost has no room for one more: delete some queues or bindings first",
    INTERRUPTED: "a signal came while waiting: call again",
    SLEPT: "nothing happened for a while: repair, then wait on",
    CLOSED: "the connection is closed: connect again",
    FORKED: "the connection belongs to the parent process: connect anew after fork",
    IN_USE: "it is in use: close it there first, or force",
    DIFFERENT: "it exists and was declared differently: delete it first, or declare it as it is",
    BAD_NAME: "a name is 1 to 255 bytes of UTF-8 without '/' and control characters",
    NO_VHOST: "there is no such vhost: create it first",
    TOO_MANY: "there are as many of them as there can be: close or end some first",
    OTHER_BOOT: "the vhost was made before the machine was started anew: delete it",
    NO_REPLY: "no reply came in time",
    REQUESTER_LEFT: "the requester has left: nobody waits for this reply",
    UNCONFIRMED: "the message is in the queue, and was not confirmed in time to be on disk",
    TAKEN: "another participant has this subscription: share it, or wait until that one leaves",
    ASSIGNED: "who takes what is a matter of groups: look there",
    OVER_SHARE: "the participant holds as much of the arena as one producer may",
    SLOW: "the participant was disconnected: it was a slow consumer; connect again",
    DISCONNECTED: "the participant was disconnected by an operator: connect again",
    UNTRUSTED: "the file belongs to another user, or others may write it: it is not trusted",
    OTHER_HEADER: "compiled with the shmbroker.h of another version: compile the program anew",
    MOVED: "the broker of this vhost serves no more, another one does: connect there",
    READ_ONLY: "the queue follows a queue of another broker: change it there, or ha detach",
    UNROUTABLE: "no binding takes the message, and it is mandatory or immediate",
    GROUPING_TIMEOUT: "to which node of the cluster the group goes was not decided in time",
    TOO_MANY_OPEN: "too many earlier messages of this producer are open: retry or give up some",
    LOCKED: "another process has held a lock for too long: it may be stopped",
    ENDED: "the transaction was committed or rolled back before: begin another",
    UNFINISHED: "the transaction is committed, and needs room to finish: call again",
    DISK_FULL: "the disk of the journal is full: make room, and it goes on",
    JOURNAL_FAILED: "the journal could not be written: the broker must be restarted",
    JOURNAL_DAMAGED: "the journal is damaged: see shmbroker journal verify",
    STALE: "another broker writes this journal by now: this one must end",
}

assert sorted(TEXTS) == list(range(DISCONNECTED, OK + 1))
