"""A session is asked for where it may be: in the process of the broker that made it."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.remote.action import Say
from shmbroker.netbridge.remote.client import Client
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.wire.frame import Attach
from tests.support.session_ends import Ends, options


@pytest.mark.parametrize("process", [b"other", b"first"])
def test_another_process_is_not_asked_for_the_session_of_the_one_that_died(process: bytes) -> None:
    of = Ends(Client(b"s" * 16, options()))
    of.does(of.client.start(0.0))
    of.connect(b"node", b"first")
    of.broker_dies()
    of.did.clear()
    of.connect(b"node", process)
    asked = [each.frame for each in of.of(Say) if isinstance(each.frame, Attach)]
    assert [each.resumes for each in asked] == ([True, False] if process == b"first" else [False])
    assert of.client.phase is Phase.UP
