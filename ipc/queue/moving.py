"""Moving and copying messages from one queue to another (ipc/queue/move.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.timeout import Seconds, nanoseconds
from shmbroker.ipc.selector.selection import Selection

if TYPE_CHECKING:
    from shmbroker.ipc.queue.opened import OpenedQueue
    from shmbroker.ipc.selector.selector import Selector

LIMIT_MAX = 1 << 60
NO_CHOICE = (ffi.NULL, ffi.NULL)


def pass_over(
    verb: Callable[..., int],
    source: OpenedQueue,
    target: OpenedQueue,
    limit: int | None,
    selector: str | Selector | None,
    timeout: Seconds | None,
) -> int:
    """How many messages it was; a signal ends it between two."""
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
    chooses = (
        (ffi.addressof(lib, "sb_is_selected"), selection.selection) if selection else NO_CHOICE
    )
    code = verb(source._queue, other, min(most, LIMIT_MAX), nanoseconds(timeout), *chooses)
    if code < 0:
        raise source._error(code, f"to queue {target.name!r} from")
    return code
