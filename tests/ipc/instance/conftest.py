"""Instances and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import vhost_for_a_while
from tests.support.postgres import PASSWORD, Postgres
from tests.support.runs import Run, Settings

Make = Callable[..., Run]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Started once."""
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def vhost() -> Iterator[str]:
    """Only a name: the broker makes it."""
    with vhost_for_a_while() as name:
        yield name


def leased(postgres: Postgres, renew: str, expiration: str) -> Settings:
    return {
        "store.lock": "sql",
        "sql.url": postgres.url,
        "sql.password": {"env": "LEASE_PASSWORD"},
        "sql.renew": renew,
        "sql.expiration": expiration,
    }


@pytest.fixture(params=["file", "sql"])
def locked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """By what kind of lock it is found who is live."""
    if request.param == "file":
        return {}
    monkeypatch.setenv("LEASE_PASSWORD", PASSWORD)
    # nothing runs out: on one host all is heard of at once
    return leased(request.getfixturevalue("postgres"), "20s", "60s")


@pytest.fixture
def make(tmp_path: Path, vhost: str, locked: Settings) -> Iterator[Make]:
    """Makes an instance; all of one test share a store."""
    made: list[Run] = []

    def one(name: str, role: str = "live", **settings: object) -> Run:
        made.append(Run(tmp_path / name, vhost, role, locked, **settings))
        return made[-1]

    yield one
    for each in made:
        each.kill()
