"""Programs in shared memory are told that their broker serves no more, or serves again."""

from __future__ import annotations

from shmbroker.core.codes import OK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.broker.journaler import attach
from shmbroker.ipc.connection.broker import Broker


def moves(vhost: str, to: str) -> None:
    """From now on each call there raises Moved, with this address; empty: it is not known.

    For a live whose place another member has taken, with rings of its own.  Its own connections
    are closed by then: they would hear the same.
    """
    with attach(vhost) as broker:
        code: int = lib.sb_vhost_moves(broker._connection, ffi.new("char[]", to.encode()))
        _check(code, vhost)


def departs(vhost: str, to: str) -> None:
    """`moves`, when transactions under way have ended.  Those who remain do not hear it."""
    with attach(vhost) as broker:
        code: int = lib.sb_vhost_departs(broker._connection, ffi.new("char[]", to.encode()))
        _check(code, vhost)


def remains(broker: Broker) -> None:
    """This connection goes on with what is there, when programs are told that it has moved."""
    _check(lib.sb_vhost_remains(broker._connection), broker.vhost)


def serves(vhost: str) -> None:
    """It serves again, with what is there: whoever connects anew goes on."""
    with attach(vhost) as broker:
        _check(lib.sb_vhost_serves(broker._connection), vhost)


def _check(code: int, vhost: str) -> None:
    if code != OK:
        raise error_for(code, f"moving vhost {vhost!r}", ffi.errno, detail_of(code))
