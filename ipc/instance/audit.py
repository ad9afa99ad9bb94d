"""Lines `audit` of a log: who has changed what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shmbroker.ipc.base.errors import InvalidArgument, NotFound, shortened
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance.log import Log


@contextmanager
def audited(log: Log, **fields: object) -> Iterator[None]:
    """Of what is done inside; with `why`, if it fails and a part of it may be done."""
    try:
        yield
    except Exception as error:
        if not is_refused_at_once(error):
            log.write("audit", **fields, why=shortened(told(error)))
        raise
    log.write("audit", **fields)


def is_refused_at_once(error: Exception) -> bool:
    """Nothing was done, not even a part of it."""
    return isinstance(error, InvalidArgument | NotFound)
