"""What needs a while to start, once for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ipc.instance.postgres import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()
