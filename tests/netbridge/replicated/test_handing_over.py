"""How long nobody serves while a live hands over."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from shmbroker.netbridge.replica.warm import Warm
from shmbroker.netbridge.replicated.served import Served
from shmbroker.netbridge.replicated.store import Store
from tests.netbridge.replicated.conftest import Made
from tests.netbridge.replicated.test_losing import MANY, filled


def reads_all_again_when_it_may(pipe: Path) -> None:
    """In this process: what is in its journal, after it has served."""
    end, warm = Served.end, Store.warm

    def waits(store: Store) -> Warm:
        pipe.read_bytes()
        return warm(store)

    def ended(served: Served) -> None:
        end(served)
        Store.warm = waits  # type: ignore[method-assign]

    Served.end = ended  # type: ignore[method-assign]


def test_a_handover_does_not_wait_until_the_former_live_has_read_its_journal(
    node: Made, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    two = node({"ha.allow-failback": False, "ha.replication.handover-timeout": "10m"})
    two["a"].before = partial(reads_all_again_when_it_may, pipe)
    filled(two.up())
    assert two.orders("a", {"verb": "handover"}) == ""
    two["b"].becomes("live")
    assert two.bodies("b") == MANY
    two.says("b", "alone")
    pipe.write_bytes(b"")
    two.says("a", "in sync")
    two.says("b", "in sync")
