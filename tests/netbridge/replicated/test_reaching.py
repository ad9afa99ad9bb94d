"""Peers of `network-check`."""

from __future__ import annotations

import pytest

from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.replicated.reaching import is_reached


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
def test_a_name_that_cannot_be_one_is_not_reached(host: str) -> None:
    """Nobody would be told whether there is any peer: it counts as one that is looked for still."""
    assert not is_reached(Single(host, 7), 1.0)
