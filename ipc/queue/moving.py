"""Moving and copying messages from one queue to another (ipc/queue/move.c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from shmbroker.core.codes import FULL, INTERRUPTED, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import Error, InvalidArgument
from shmbroker.ipc.base.timeout import Seconds, nanoseconds
from shmbroker.ipc.selector.selection import Selection

if TYPE_CHECKING:
    from shmbroker.ipc.queue.opened import OpenedQueue
    from shmbroker.ipc.selector.choice import Choice
    from shmbroker.ipc.selector.selector import Selector
    from shmbroker.ipc.sink.fetch import Fetch

LIMIT_MAX = 1 << 60
NO_CHOICE = (ffi.NULL, ffi.NULL)


class Passed(NamedTuple):
    messages: int
    is_full: bool
    """There are more, and no room for them."""
    end: int
    """Below it all was looked at; of a queue that was moved from, the next one may be there and not
    be synced yet."""
    error: Error | None = None
    """What ended it behind these messages, other than the want of room there."""


def pass_over(
    source: OpenedQueue,
    target: OpenedQueue,
    limit: int | None,
    selector: str | Selector | None,
    timeout: Seconds | None,
    *,
    copies: bool,
    towards: int = 0,
    choice: Choice | None = None,
    fetch: Fetch | None = None,
    flags: bool = False,
    begin: int = 0,
) -> Passed:
    """A signal ends it between two messages.

    `towards`: the target at another node that they are for, if they go there.  `choice` or `fetch`:
    instead of a selector.  `flags`: what may have been delivered before says so there.  `begin`:
    what is below this position stays.
    """
    most = 0 if limit is None else limit
    if not isinstance(most, int) or isinstance(most, bool) or (limit is not None and limit < 1):
        raise InvalidArgument(f"limit is a number of messages or None, not {limit!r}")
    try:
        other = target._queue
    except AttributeError:
        raise InvalidArgument(
            f"messages go to another queue, not to {type(target).__name__}"
        ) from None
    selection = None if selector is None else Selection(selector)
    chooses: tuple[Any, Any] = NO_CHOICE
    if selection is not None:
        chooses = ffi.addressof(lib, "sb_is_selected"), selection.selection
    elif choice is not None:
        chooses = ffi.addressof(lib, "sb_is_chosen"), choice.choice
    elif fetch is not None:
        chooses = fetch.chooses
    passage = ffi.new("sb_passage *")
    lib.sb_pass_begin(passage, min(most, LIMIT_MAX), nanoseconds(timeout), *chooses, copies)
    passage.target = towards
    passage.flags = flags or towards != 0
    passage.position = begin
    code = INTERRUPTED
    while code == INTERRUPTED:  # our signal handlers run between the calls
        code = lib.sb_pass(source._queue, other, passage)
    done, error = int(passage.done), None
    if code not in (OK, FULL):
        error = source._error(code, f"to queue {target.name!r} from")
        error.published = done
        if not done:
            raise error
    return Passed(done, code == FULL, int(passage.position), error)


class Changes(NamedTuple):
    """What is known at once; to count what is there takes as long as the ring is."""

    head: int
    tail: int
    given_back: int
    revoked: int
    consumers: int

    @property
    def length_at_most(self) -> int:
        """Its positions that are in use: what is done with may be among them."""
        return max(0, self.tail - self.head)

    @property
    def returned(self) -> int:
        """So many messages have come back: what a wait for another one of them begins with."""
        return self.given_back + self.revoked

    @property
    def news(self) -> tuple[int, int]:
        """Another one if a message has come, or come back."""
        return self.tail, self.returned


def changes(queue: OpenedQueue) -> Changes:
    told = ffi.new("sb_queue_changes *")
    code = lib.sb_changes(queue._queue, told)
    if code != OK:
        raise queue._error(code, "looking at")
    return Changes(told.head, told.tail, told.given_back, told.revoked, told.consumers)
