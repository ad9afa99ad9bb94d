"""What all tests share: names in /dev/shm that are gone afterwards, also when a test fails."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import tests.support.sources  # noqa: F401

# isort: split
import shmbroker
from shmbroker.ipc.vhost import vhost as vhosts
from tests.support import large_pages, stretching
from tests.support.scheduling import Scheduling, sort_tests

SHM = Path("/dev/shm")

# how long an example takes depends on who else is on the machine
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

# a shell starts what runs in the background with Ctrl-C ignored, and what we start would inherit it
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    if stretching.keep():
        config.add_cleanup(stretching.forget)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    sort_tests(items)


def pytest_collection_finish() -> None:
    """All tests are there, and stay: no later collection looks at them, so a process that a test
    forks does not copy them.  Nor does it make what each broker with links begins with."""
    from shmbroker.netbridge.broker import network  # noqa: F401
    from shmbroker.netbridge.paired import owner  # noqa: F401
    from shmbroker.netbridge.plan.text import parse

    parse("tcp://127.0.0.1:1")
    gc.collect()
    gc.freeze()
    large_pages.collapse()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    return Scheduling(config, log)


@pytest.fixture
def ring_name() -> Iterator[str]:
    """A name that nobody else uses; its segments are removed."""
    name = f"test-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    yield name
    for segment in SHM.glob(f"{name}*"):
        segment.unlink()


@contextmanager
def vhost_for_a_while() -> Iterator[str]:
    """A name for a vhost; what is there under it afterwards is removed, in use or not."""
    name = f"test-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        yield name
    finally:
        for segment in SHM.glob(f"shmbroker.{name}.*"):
            segment.unlink()
        if (shared := SHM / f"shmbroker.{name}").is_dir():
            shutil.rmtree(shared)


@pytest.fixture
def vhost() -> Iterator[str]:
    """A vhost that nobody else uses."""
    with vhost_for_a_while() as name:
        vhosts.create(name, arena_bytes=64 << 20)
        yield name


@pytest.fixture
def url(vhost: str) -> str:
    """Its address."""
    return f"shm://{vhost}"


@pytest.fixture
def broker(vhost: str) -> Iterator[shmbroker.Broker]:
    """A connection to that vhost.  A test that wants more in it has a fixture of this name."""
    with shmbroker.connect(f"shm://{vhost}") as connected:
        yield connected


@pytest.fixture
def other(vhost: str) -> Iterator[shmbroker.Broker]:
    """Another connection to the same vhost: another participant."""
    with shmbroker.connect(f"shm://{vhost}", name="other") as connected:
        yield connected


@pytest.fixture(scope="session", autouse=True)
def contexts_of_nobody(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What commands write into the home of their user goes into a folder of this run."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After all tests /dev/shm holds of ours what it held before."""
    before = {path.name for path in SHM.iterdir()}
    yield
    left = {path.name for path in SHM.iterdir()} - before
    ours = f"test-{os.getpid()}-"  # not another run's on the same host
    assert not {name for name in left if ours in name}
