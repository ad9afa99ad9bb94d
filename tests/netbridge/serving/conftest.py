from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.netbridge.link.times import LinkTimes
from tests.support.serving import Site, site


@pytest.fixture
def at(vhost: str, tmp_path: Path) -> Iterator[Site]:
    """A broker that serves programs over TCP; nobody is lost because a machine is slow."""
    with site(vhost, tmp_path, times=LinkTimes(heartbeat_interval=10.0)) as made:
        yield made
