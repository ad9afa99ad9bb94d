"""Lives that confirm less than they are configured to are told by doctor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shmbroker.ipc.instance import process
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.status import Sign, Status
from shmbroker.netbridge.replicated.lessened import findings

MEMBERS = ["a=tcp://one:61618", "b=tcp://two:61618"]
Says = Callable[..., list[str]]


@pytest.fixture
def says(tmp_path: Path) -> Says:
    """What doctor says of a member, by the status that it shows."""

    def told(replication: str, state: str = "live", members: list[str] = MEMBERS) -> list[str]:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        create(folder, {
            "instance.name": "a", "ha.policy": "replication", "ha.members": members,
            "ha.replication.on-partition": "continue-alone",
        })  # fmt: skip
        sign = Sign(folder)
        sign.show(Status(state, epoch=1, process=process.this(), replication=replication))
        found = list(findings(folder))
        sign.close()
        return [f"{each.severity}: {each.problem}" for each in found]

    return told


def test_the_level_that_it_has_and_the_one_that_is_configured(says: Says) -> None:
    assert says("in sync") == says("syncing", "passive") == []
    [alone] = says("alone")
    assert alone == "warning: no backup is in sync: a confirm means disk, not disk+replicated"
    [suspended] = says("suspended: nobody is reached")
    assert suspended.startswith("error: it confirms nothing: it is suspended: nobody")
    [unguarded] = says("in sync, unguarded")
    assert unguarded.startswith("note: ")
    assert says("alone", members=MEMBERS[:1]) == [
        "warning: it has no backup: a confirm means disk, not disk+replicated"
    ]
