"""Moving and copying messages from one queue to another (ipc/queue/move.c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import FULL, INTERRUPTED, OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.timeout import Seconds, nanoseconds
from shmbroker.ipc.selector.selection import Selection

if TYPE_CHECKING:
    from shmbroker.ipc.queue.opened import OpenedQueue
    from shmbroker.ipc.selector.choice import Choice
    from shmbroker.ipc.selector.selector import Selector

LIMIT_MAX = 1 << 60
NO_CHOICE = (ffi.NULL, ffi.NULL)


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
) -> int:
    """How many messages it was; a signal ends it between two.

    `towards`: the target at another node that they are for, if they go there.  `choice`: instead of
    a selector.
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
    passage = ffi.new("sb_passage *")
    lib.sb_pass_begin(passage, min(most, LIMIT_MAX), nanoseconds(timeout), *chooses, copies)
    passage.target = towards
    code = INTERRUPTED
    while code == INTERRUPTED:  # our signal handlers run between the calls
        code = lib.sb_pass(source._queue, other, passage)
    if code not in (OK, FULL) and not passage.done:
        raise source._error(code, f"to queue {target.name!r} from")
    return int(passage.done)
