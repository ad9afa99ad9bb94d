from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from tests.support.client_api import STYLES, TRANSPORTS, Api, ways
from tests.support.serving import Site


@pytest.fixture(params=[f"{transport}-{style}" for transport in TRANSPORTS for style in STYLES])
def api(request: pytest.FixtureRequest, vhost: str, tmp_path: Path) -> Iterator[Api]:
    """Every test that has it runs in each way."""
    transport, style = request.param.split("-")
    yield from ways(vhost, tmp_path, transport, style)


@pytest.fixture
def served(vhost: str, tmp_path: Path) -> Iterator[Site]:
    """A broker that serves programs."""
    with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
        site = Site(broker, tmp_path)
        with site.served():
            yield site
