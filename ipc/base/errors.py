"""All errors as one tree, and the error for each code of a kernel."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shmbroker.core import codes

if TYPE_CHECKING:
    from shmbroker.ipc.base.timeout import Seconds

TEXT_MAX = 2000
"""Characters of an error's text: it may quote an argument of any length."""


def shortened(text: str) -> str:
    """The beginning, which says what is wrong, and the end, which says what to do."""
    left = len(text) - TEXT_MAX
    half = TEXT_MAX // 2
    return text if left <= 0 else f"{text[:half]}... ({left} characters) ...{text[-half:]}"


class Error(Exception):
    """The base of all errors of shmbroker."""

    code: int = codes.OK
    """SB_FULL and so on, as C programs know it; 0 where C has none."""
    published: int = 0
    """Of publish_many and copy_to: how many messages were published before it failed."""

    def __init__(self, *told: object) -> None:
        super().__init__(*(shortened(each) if isinstance(each, str) else each for each in told))


class Empty(Error, queue.Empty):
    """There is nothing to take."""


class QueueFull(Error, queue.Full):
    """The ring is full; nothing was published."""


class DeliveryRevoked(Error):
    """The message is no longer ours: the lease ran out, or we were taken for dead."""


class AlreadyDealtWith(DeliveryRevoked):
    """We have acknowledged the message, given it back or rejected it before."""


class MessageGone(Error):
    """The message at this position has been recycled."""


class ArenaFull(Error):
    """The memory for messages is exhausted; nothing was published."""


class MessageTooLarge(Error):
    """The message is larger than a quarter of the arena."""


class Damaged(Error):
    """The shared memory contradicts itself: something else has written into it."""


class InvalidArgument(Error, ValueError):
    """An argument is out of range."""


class NotASegment(Error):
    """This is no segment of shmbroker, or one that cannot be used."""


class SegmentExists(Error):
    """A segment of this name exists already."""


class NotFound(Error, LookupError):
    """The catalog has no such queue, exchange or binding."""


class TooMany(Error):
    """There are as many as there can be: participants, rows of a table, loans of a process."""


class ConnectionClosed(Error):
    """The connection was closed before."""


class Moved(ConnectionClosed):
    """The broker of this vhost serves no more: the message says who does, if that is known.

    What was published and not confirmed is in doubt, and what was taken comes again there.
    """


class ReplicaReadOnly(Error):
    """The queue follows a queue of another broker, and is changed there until it is detached."""


class GroupingTimeout(Error, TimeoutError):
    """To which node of a cluster a group goes was not decided in time; nothing was published."""


class ConnectionForked(Error):
    """The connection belongs to the parent process."""


class InUse(Error):
    """What is to be deleted is in use."""


class DeclaredDifferently(Error):
    """It exists, and was declared differently."""


class InvalidName(InvalidArgument):
    """A name that nothing can have."""


class SelectorError(InvalidArgument):
    """The text of a selector is wrong; the message says where, and what was expected."""


class Unroutable(Error):
    """No queue took a message that was published as mandatory, or none with a consumer one that was
    published as immediate."""


class TransactionEnded(Error):
    """The transaction was committed or rolled back before."""


class NoReply(Error, TimeoutError):
    """No reply to a request came within the timeout."""

    ask_back: Callable[[], Any] | None = None

    def take_back(self) -> Any:
        """Take the request out of its queue: whether it was still there, and nobody had it.

        With asyncio the answer is awaited.
        """
        return self.ask_back is not None and self.ask_back()


class Unconfirmed(Error, TimeoutError):
    """A message is in its queue, and nobody has said in time that it is on disk: unknown.

    `pending` says where it is, as names of queues and positions; `confirm` asks again.
    """

    pending: tuple[tuple[str, int], ...] = ()
    ask: Callable[[Seconds | None], Any] | None = None
    token: object = None
    """Over a link: what `Broker.retry` takes; of publish_many one for all that is unknown."""

    def confirm(self, timeout: Seconds | None = None) -> Any:
        """Wait until it is on disk; Unconfirmed if nobody says so in time, or nobody can be asked.

        With asyncio the answer is awaited.
        """
        if self.ask is None:
            raise self
        return self.ask(timeout)


class NotEnoughReplicas(Unconfirmed):
    """Fewer copies are in sync than `min-insync` asks for: nothing is confirmed meanwhile."""


class NotLocal(Error):
    """This needs shared memory, and the connection is a link: the message says what does it."""


class NotAllowed(Error):
    """The role of whoever asks for this over a link does not include it."""


class TransactionRolledBack(TransactionEnded):
    """The session was made again at another broker, and what the transaction had is undone."""


class RequesterLeft(Error):
    """Whoever asked has left: nobody waits for this reply."""


class SubscriptionTaken(Error):
    """A subscription that is not shared has another consumer."""


class DiskFull(Error):
    """The disk of the journal is full; nothing is lost, and it goes on when there is room."""


class JournalFailed(Error):
    """The journal could not be written or synced: whoever writes it must end."""


class Replaced(JournalFailed):
    """Another broker is live by now, or may be: this one writes and confirms nothing any more."""


class JournalDamaged(Error):
    """Something that was synced is not there any more; the message says which segment and where."""


class SystemRefused(Error):
    """The operating system refused something; the text says what."""


class Untrusted(SystemRefused):
    """A file belongs to another user, or others may write it; the message says whose it is."""


class OtherHeader(Error):
    """The caller was compiled with the shmbroker.h of another version of the library."""


class NotAsyncio(Error, RuntimeError):
    """shmbroker.aio was used outside of an event loop of asyncio: under trio, say."""


ERRORS: dict[int, type[Error]] = {
    codes.EMPTY: Empty,
    codes.UNDECIDED: Empty,
    codes.FULL: QueueFull,
    codes.REVOKED: DeliveryRevoked,
    codes.GONE: MessageGone,
    codes.ARENA_FULL: ArenaFull,
    codes.TOO_LARGE: MessageTooLarge,
    codes.DUPLICATE: InvalidArgument,
    codes.DAMAGED: Damaged,
    codes.INVALID: InvalidArgument,
    codes.NO_GATE: InvalidArgument,
    codes.NO_PRODUCER: InvalidArgument,
    codes.TOO_SMALL: InvalidArgument,
    codes.NOT_A_SEGMENT: NotASegment,
    codes.OTHER_VERSION: NotASegment,
    codes.TRUNCATED: NotASegment,
    codes.WRONG_ARENA: NotASegment,
    codes.SYSTEM: SystemRefused,
    codes.EXISTS: SegmentExists,
    codes.NO_MEMORY: ArenaFull,
    codes.NEEDS_COMMIT: ArenaFull,
    codes.TOO_MANY_LOANS: TooMany,
    codes.NOT_FOUND: NotFound,
    codes.TABLE_FULL: TooMany,
    codes.INTERRUPTED: SystemRefused,
    codes.SLEPT: Empty,
    codes.CLOSED: ConnectionClosed,
    codes.FORKED: ConnectionForked,
    codes.IN_USE: InUse,
    codes.DIFFERENT: DeclaredDifferently,
    codes.BAD_NAME: InvalidName,
    codes.NO_VHOST: NotFound,
    codes.TOO_MANY: TooMany,
    codes.TOO_MANY_OPEN: TooMany,
    codes.OTHER_BOOT: NotASegment,
    codes.LOCKED: SystemRefused,
    codes.ENDED: TransactionEnded,
    codes.UNFINISHED: QueueFull,
    codes.NO_REPLY: NoReply,
    codes.REQUESTER_LEFT: RequesterLeft,
    codes.TAKEN: SubscriptionTaken,
    codes.UNCONFIRMED: Unconfirmed,
    codes.DISK_FULL: DiskFull,
    codes.JOURNAL_FAILED: JournalFailed,
    codes.JOURNAL_DAMAGED: JournalDamaged,
    codes.STALE: Replaced,
    codes.ASSIGNED: Empty,
    codes.OVER_SHARE: QueueFull,
    codes.SLOW: ConnectionClosed,
    codes.DISCONNECTED: ConnectionClosed,
    codes.MOVED: Moved,
    codes.READ_ONLY: ReplicaReadOnly,
    codes.GROUPING_TIMEOUT: GroupingTimeout,
    codes.UNROUTABLE: Unroutable,
    codes.UNTRUSTED: Untrusted,
    codes.OTHER_HEADER: OtherHeader,
}

SUBCLASSES: dict[type[Error], int] = {
    AlreadyDealtWith: codes.REVOKED,
    SelectorError: codes.INVALID,
    NotAsyncio: codes.OK,
    NotAllowed: codes.OK,
    NotEnoughReplicas: codes.UNCONFIRMED,
    NotLocal: codes.OK,
    TransactionRolledBack: codes.ENDED,
}
"""Errors that only Python has, with the code of what they are to C."""

for code, kind in reversed(ERRORS.items()):  # the first of its codes is that of a class
    kind.code = code
for kind, code in SUBCLASSES.items():
    kind.code = code

for each in list(vars().values()):
    if isinstance(each, type) and issubclass(each, Error):
        each.__module__ = "shmbroker"  # as users import it: so tracebacks and pickles name it


def error_for(code: int, what: str, errno: int = 0, detail: str = "") -> Error:
    """The exception for a code; `what` says which object was meant, `detail` knows more."""
    text = f"{what}: {detail or codes.TEXTS[code]}"
    if code == codes.SYSTEM and not detail:
        text = f"{what}: {os.strerror(errno)}"
    error = ERRORS[code](text)
    error.code = code
    return error


assert set(ERRORS) | {codes.OK} == set(codes.TEXTS)
