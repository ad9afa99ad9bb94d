"""The voters of a member, as its configuration names them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import ConfigError, configured
from shmbroker.ipc.instance.lock.database import DatabaseFailed
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.broker.voters import Chosen, chosen
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.config.config import network
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.engine.engine import EngineFailed
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.wire.words import Standing

REPLICATED = {"ha.policy": "replication", "instance.name": "a"}
WITNESSES = [f"tcp://witness{number}:61617" for number in (1, 2, 3)]
VOTES = {"credentials.votes.password": "correct horse battery", "credentials.votes.role": "witness"}


@pytest.fixture
def thread() -> Iterator[NetworkThread]:
    with NetworkThread() as made:
        yield made


Lines = list[dict[str, object]]


def found(
    folder: Path, thread: NetworkThread, lines: Lines | None = None, **given: object
) -> Chosen | None:
    values = REPLICATED | {key.replace("__", "."): value for key, value in given.items()}
    wanted = network(folder, values)
    known, _ = credentials(wanted)
    ours = Identity(os.urandom(16), os.urandom(16), "a", Standing.NONE, 0)
    told: Lines = [] if lines is None else lines
    config = configured(folder, values)
    return chosen(config, Given(wanted, known), thread, ours, lambda line: told.append(dict(line)))


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


ZOOKEEPER = {
    "ha.replication.lock-manager": "zookeeper",
    "ha.zookeeper.connect": "one:2181, two:2181,three:2181",
}
SQL = {"ha.replication.lock-manager": "sql", "sql.url": "postgresql://broker@db/broker"}


def test_an_engine_is_the_only_voter(tmp_path: Path, thread: NetworkThread) -> None:
    made = found(tmp_path, thread, **ZOOKEEPER)
    assert made is not None
    assert made.electorate.voters == ("ZooKeeper one:2181,two:2181,three:2181/shmbroker",)
    assert made.electorate.needed == 1
    in_sql = found(tmp_path, thread, **SQL)
    assert in_sql is not None
    assert in_sql.electorate.voters == ("database broker on db, table shmbroker_lease",)


def test_one_server_of_zookeeper_is_a_warning(tmp_path: Path, thread: NetworkThread) -> None:
    lines: Lines = []
    found(tmp_path, thread, lines, **ZOOKEEPER)
    assert not lines
    found(tmp_path, thread, lines, **(ZOOKEEPER | {"ha.zookeeper.connect": "one:2181"}))
    assert [(each["level"], each["state"]) for each in lines] == [("warning", "one server")]


def test_an_engine_says_how_long_a_lease_is(tmp_path: Path) -> None:
    def lease(given: dict[str, object]) -> float:
        read = network(tmp_path, REPLICATED | given).replication
        assert read is not None
        assert read.can_ask
        assert read.vote_on_replication_failure
        return read.lease

    assert lease({**ZOOKEEPER}) == 6
    assert lease({**ZOOKEEPER, "ha.zookeeper.session-timeout": "2s"}) == 2
    assert lease({**SQL}) == 20
    assert lease({**SQL, "sql.expiration": "30s"}) == 30


@pytest.mark.parametrize(("given", "said"), [
    ({"ha.replication.lock-manager": "zookeeper"}, "ha.zookeeper.connect does not name"),
    ({"ha.replication.lock-manager": "sql"}, "sql.url does not say which database"),
    (ZOOKEEPER | {"ha.replication.lease": "1s"}, "ha.zookeeper.session-timeout takes its place"),
    (SQL | {"ha.replication.lease": "1s"}, "sql.expiration takes its place"),
    (ZOOKEEPER | {"ha.replication.witnesses": WITNESSES}, "takes the place of witnesses"),
    (SQL | {"ha.zookeeper.connect": "one:2181"}, '[ha.zookeeper] needs ha.replication.lock-mana'),
    (ZOOKEEPER | {"ha.zookeeper.connect": "one"}, "is servers, as in"),
    (ZOOKEEPER | {"ha.zookeeper.namespace": "nodes/"}, "is a path in ZooKeeper"),
    (ZOOKEEPER | {"ha.zookeeper.session-timeout": "0.5s"}, "is in 1s…60s"),
    (ZOOKEEPER | {"ha.zookeeper.tls-cert": "a.pem"}, "go together"),
    (ZOOKEEPER | {"ha.zookeeper.conect": "one:2181"}, "did you mean ha.zookeeper.connect?"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, given: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError) as error:
        network(tmp_path, REPLICATED | given)
    assert said in str(error.value)


def test_the_digest_is_of_credentials(tmp_path: Path, thread: NetworkThread) -> None:
    with pytest.raises(ConfigError, match=r"names \[credentials.zk\], which is not there"):
        found(tmp_path, thread, **ZOOKEEPER, **{"ha.zookeeper.credentials": "zk"})


def test_a_driver_that_is_missing_is_one_line(
    tmp_path: Path, thread: NetworkThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kazoo", None)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(EngineFailed, match=r"pip install .shmbroker\[zookeeper\]"):
        found(tmp_path, thread, **ZOOKEEPER)
    with pytest.raises(DatabaseFailed, match=r"pip install .shmbroker\[sql\]"):
        found(tmp_path, thread, **SQL)
