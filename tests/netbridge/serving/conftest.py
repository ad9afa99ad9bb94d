from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.serving import Site, site


@pytest.fixture
def at(vhost: str, tmp_path: Path) -> Iterator[Site]:
    """A broker that serves programs over TCP."""
    with site(vhost, tmp_path) as made:
        yield made
