"""A member that is stopped while it becomes live."""

from __future__ import annotations

import os
import signal
import threading

from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.vhost import vhost as vhosts
from shmbroker.netbridge.member.action import Action
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.replicated.acting import Acting
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
