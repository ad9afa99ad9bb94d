"""A member that is stopped, or fails, while it starts or becomes live."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.paging.pager import Pager
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.member.action import Action
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.replicated.acting import Acting
from shmbroker.perf.machine.port import free_port
from tests.netbridge.replicated.conftest import PATIENCE, Made


def is_stopped_as_it_begins() -> None:
    """In its process: its first record is not synced as long as it runs."""
    is_stopping = threading.Event()
    stop, note = Member.stop, Journaler.standing

    def stopped(member: Member, now: float, *, hands_over: bool = True) -> list[Action]:
        actions = stop(member, now, hands_over=hands_over)
        is_stopping.set()
        return actions

    def noted(journaler: Journaler, body: bytes) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        assert is_stopping.wait(PATIENCE)
        return note(journaler, body)

    Member.stop = stopped  # type: ignore[method-assign]
    Journaler.standing = noted  # type: ignore[method-assign]
    Acting.journal_told = lambda _: None  # type: ignore[method-assign, assignment]


def test_a_member_that_is_stopped_as_it_begins_leaves_no_vhost(node: Made) -> None:
    two = node()
    two["a"].before = is_stopped_as_it_begins
    assert two["a"].start().ends() == 0
    assert not vhosts.exists(two.vhosts["a"])
    two["a"].before = lambda: None
    two["a"].start().becomes("live")


def fails_behind_its_takeover() -> None:
    """In its process: programs see the vhost by then."""

    def refused(pager: Pager, *given: Any, **named: Any) -> None:
        raise InvalidArgument("the folder of pages is somebody else's")

    Pager.__init__ = refused  # type: ignore[method-assign]


def test_a_member_that_fails_as_it_begins_leaves_no_vhost(node: Made) -> None:
    two = node()
    two["a"].before = fails_behind_its_takeover
    assert two["a"].start().ends() == 1
    assert "somebody else's" in two["a"].status.why
    assert not vhosts.exists(two.vhosts["a"])
    two["a"].before = lambda: None
    two["a"].start().becomes("live")


def test_a_member_that_cannot_start_leaves_no_rings(node: Made) -> None:
    witnesses = {
        "ha.replication.on-partition": None,
        "ha.replication.witnesses": [f"tcp://127.0.0.1:{free_port()}"],
    }
    two = node(witnesses)
    assert two["a"].start().ends() == 1
    assert "needs one [credentials.NAME]" in two["a"].status.why
    assert not vhosts.exists(two.vhosts["a"])
