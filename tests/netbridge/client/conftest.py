from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker.netbridge.link.times import LinkTimes
from tests.support.client_api import STYLES, TRANSPORTS, Api, ways
from tests.support.serving import Site

CALM = LinkTimes(heartbeat_interval=10.0)
"""Nobody is lost because a machine is slow: who is killed, or cut, is known at once."""


def calm(to: Site) -> str:
    """Where a program finds it."""
    return f"tcp://127.0.0.1:{to.port}?heartbeat-interval={CALM.heartbeat_interval:g}s"


@pytest.fixture(params=[f"{transport}-{style}" for transport in TRANSPORTS for style in STYLES])
def api(request: pytest.FixtureRequest, vhost: str, tmp_path: Path) -> Iterator[Api]:
    """Every test that has it runs in each way."""
    transport, style = request.param.split("-")
    yield from ways(vhost, tmp_path, transport, style)


@pytest.fixture
def served(vhost: str, tmp_path: Path) -> Iterator[Site]:
    """A broker that serves programs."""
    with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
        site = Site(broker, tmp_path, times=CALM)
        with site.served():
            yield site


@pytest.fixture
def mortal(vhost: str, tmp_path: Path) -> Iterator[Site]:
    """A broker in a process of its own, which may be killed and begun again; its rings outlive
    it."""
    with shmbroker.connect(f"shm://{vhost}", name="test") as broker:
        made = Site(broker, tmp_path, times=CALM)
        with made.opened:
            made.begin()
            yield made
