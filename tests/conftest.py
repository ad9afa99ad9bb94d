"""What all tests share: names in /dev/shm that are gone afterwards, also when a test fails."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

SHM = Path("/dev/shm")


@pytest.fixture
def ring_name() -> Iterator[str]:
    """A name that nobody else uses; its segments are removed."""
    name = f"test-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    yield name
    for segment in SHM.glob(f"{name}*"):
        segment.unlink()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After all tests /dev/shm holds of ours what it held before."""
    before = {path.name for path in SHM.iterdir()}
    yield
    left = {path.name for path in SHM.iterdir()} - before
    ours = f"test-{os.getpid()}-"  # not another run's on the same host
    assert not {name for name in left if ours in name}
