"""The voters of a member, as its configuration names them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import ConfigError, configured
from shmbroker.netbridge.broker.network import Given
from shmbroker.netbridge.broker.voters import Chosen, chosen
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.config.config import network
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.wire.words import Standing

REPLICATED = {"ha.policy": "replication", "instance.name": "a"}
WITNESSES = [f"tcp://witness{number}:61617" for number in (1, 2, 3)]
VOTES = {"credentials.votes.password": "correct horse battery", "credentials.votes.role": "witness"}


@pytest.fixture
def thread() -> Iterator[NetworkThread]:
    with NetworkThread() as made:
        yield made


def found(folder: Path, thread: NetworkThread, **given: object) -> Chosen | None:
    values = REPLICATED | {key.replace("__", "."): value for key, value in given.items()}
    wanted = network(folder, values)
    known, _ = credentials(wanted)
    ours = Identity(os.urandom(16), os.urandom(16), "a", Standing.NONE, 0)
    return chosen(configured(folder, values), Given(wanted, known), thread, ours, lambda _: None)


def test_witnesses_are_known_by_host_and_port(tmp_path: Path, thread: NetworkThread) -> None:
    made = found(tmp_path, thread, **{"ha.replication.witnesses": WITNESSES}, **VOTES)
    assert made is not None
    assert made.electorate.voters == ("witness1:61617", "witness2:61617", "witness3:61617")
    assert made.electorate.needed == 2


def test_without_anybody_to_ask_there_are_none(tmp_path: Path, thread: NetworkThread) -> None:
    given = {"ha.replication.on-partition": "stop-confirming"}
    assert found(tmp_path, thread, **given) is None


def test_witnesses_need_credentials(tmp_path: Path, thread: NetworkThread) -> None:
    with pytest.raises(ConfigError, match=r'of role "witness".*there is none'):
        found(tmp_path, thread, **{"ha.replication.witnesses": WITNESSES})
