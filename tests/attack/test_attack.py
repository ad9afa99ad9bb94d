"""The short form of the attack: each world once, for some seconds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.attack.worlds import WORLDS


@pytest.mark.parametrize("world", WORLDS)
def test_nothing_confirmed_is_lost_whatever_is_done_to(world: str) -> None:
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        Path(folder).chmod(0o755)  # strangers may look into it
        found = WORLDS[world](Path(folder), seed=1, seconds=5)
    assert not found["wrong"], found
