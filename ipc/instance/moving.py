"""Programs in shared memory are told that their broker serves no more, or serves again."""

from __future__ import annotations

from collections.abc import Callable

from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.broker.journaler import attach
from shmbroker.ipc.connection.broker import Broker

Parts = Callable[[str, Broker], None]
"""Programs go to this address; empty: it is not known.  A connection of the network's remains."""


def moves(vhost: str, to: str) -> None:
    """From now on each call there raises Moved, with this address; empty: it is not known.

    For a live whose place another member has taken, with rings of its own.  Its own connections
    are closed by then: they would hear the same.
    """
    with attach(vhost) as broker:
        code: int = lib.sb_vhost_moves(broker._connection, to.encode(), ffi.NULL, 0)
        _check(code, vhost)


def departs(vhost: str, to: str, *remain: Broker) -> None:
    """`moves`, when transactions under way have ended.  Those who remain do not hear it: they go on
    with all that programs have made until then."""
    ours = [each._connection for each in remain]
    with attach(vhost) as broker:
        code: int = lib.sb_vhost_departs(broker._connection, to.encode(), ours, len(ours))
        _check(code, vhost)


def serves(vhost: str) -> None:
    """It serves again, with what is there: whoever connects anew goes on."""
    with attach(vhost) as broker:
        _check(lib.sb_vhost_serves(broker._connection), vhost)


def _check(code: int, vhost: str) -> None:
    if code != OK:
        raise error_for(code, f"moving vhost {vhost!r}", ffi.errno, detail_of(code))
