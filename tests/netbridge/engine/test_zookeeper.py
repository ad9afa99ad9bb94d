"""What servers of ZooKeeper answer, without any."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.engine.engine import EngineFailed, LeaseStep, Seen
from shmbroker.netbridge.engine.zookeeper import Tag, ZooKeeper

kazoo = pytest.importorskip("kazoo.exceptions")
NODE = bytes(16)


def changes(*answers: object) -> bool:
    """Whether a new ledger was written, if a transaction is answered so."""
    made = ZooKeeper("server", "/nodes", "a", 1.0)
    steps = SimpleNamespace(
        create=lambda *_, **__: None,
        commit_async=lambda: SimpleNamespace(get=lambda timeout: list(answers)),
    )
    client: Any = SimpleNamespace(
        transaction=lambda: steps, client_id=(1, b""),
        handler=SimpleNamespace(timeout_exception=TimeoutError),
    )  # fmt: skip
    made._client, made._kazoo = client, SimpleNamespace(exceptions=kazoo)
    return made.change(NODE, Seen(None, None, Tag(None)), Ledger(), LeaseStep.TAKEN)


def test_somebody_was_first() -> None:
    assert changes("/nodes/0", "/nodes/0/holder")
    assert not changes(kazoo.NodeExistsError(), kazoo.RuntimeInconsistency())
    assert not changes(kazoo.RolledBackError(), kazoo.BadVersionError())


@pytest.mark.parametrize("refusal", [kazoo.NoAuthError, kazoo.InvalidACLError])
def test_what_the_servers_refuse_is_told(refusal: type[Exception]) -> None:
    """And not tried again and again, as if others were faster."""
    with pytest.raises(EngineFailed, match=refusal.__name__):
        changes(refusal(), kazoo.RuntimeInconsistency())
