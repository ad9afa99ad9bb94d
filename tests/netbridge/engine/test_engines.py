"""Real engines, PostgreSQL and three servers of ZooKeeper: who gets an epoch, and who does not."""

from __future__ import annotations

import itertools
import json
import select
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from click import UsageError
from click.testing import CliRunner, Result

from shmbroker.cli.epoch import epoch
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Grant, Node, Release, Renew, Stale, Verdict
from shmbroker.netbridge.engine.engine import Engine, EngineFailed, LeaseStep, Seen
from shmbroker.netbridge.engine.zookeeper import ZooKeeper
from tests.netbridge.replicated.conftest import Made
from tests.netbridge.replicated.test_losing import MANY, filled
from tests.support.engines import (
    LEASE_MS,
    EngineMember,
    Make,
    in_database,
    living,
    of_postgres,
    zookeeper,
)
from tests.support.postgres import PASSWORD, Postgres
from tests.support.until import until
from tests.support.witness import BOTH, HOUR_MS, NODE, PATIENCE_SECONDS, alone
from tests.support.zookeeper import Ensemble

RACES = 10
New = Callable[[str], EngineMember]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(scope="module")
def ensemble() -> Iterator[Ensemble]:
    servers = Ensemble()
    yield servers
    servers.close()


@pytest.fixture
def in_sql(postgres: Postgres) -> Make:
    return of_postgres(postgres, f"t{uuid4().hex[:8]}")


@pytest.fixture
def in_zookeeper(ensemble: Ensemble) -> Make:
    ensemble.start()
    return zookeeper(ensemble, f"/t{uuid4().hex[:8]}/nodes")


@pytest.fixture(params=["sql", "zookeeper"])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.getfixturevalue(f"in_{request.param}")
    return made


@pytest.fixture
def members() -> Iterator[Callable[[Make], New]]:
    made: list[EngineMember] = []

    def of(make: Make) -> New:
        def one(name: str) -> EngineMember:
            made.append(EngineMember(name, make))
            return made[-1]

        return one

    yield of
    for each in made:
        each.close()


@pytest.fixture
def member(make: Make, members: Callable[[Make], New]) -> New:
    return members(make)


# --- both -----------------------------------------------------------------------------------------


def test_what_is_written_is_read_by_others(make: Make) -> None:
    one, two = make("a"), make("b")
    one.open(lambda: None)
    two.open(lambda: None)
    assert one.look(NODE).ledger is None
    assert one.change(NODE, one.look(NODE), Ledger(BOTH, 1, lease_ms=600), LeaseStep.TAKEN)
    seen = two.look(NODE)
    assert seen.ledger == Ledger(BOTH, 1, lease_ms=600)
    assert seen.lease is not None
    assert seen.lease.holder == "a"
    assert two.nodes() == [NODE]
    assert one.change(NODE, one.look(NODE), Ledger(BOTH, 1, lease_ms=600), LeaseStep.TAKEN)
    assert two.look(NODE).lease != seen.lease, "a renewal is seen"
    assert one.change(NODE, one.look(NODE), Ledger(BOTH, 2), LeaseStep.FREED)
    assert two.look(NODE).lease is None
    one.close()
    two.close()


def test_of_changes_of_what_was_seen_one_counts(make: Make) -> None:
    one, two = make("a"), make("b")
    for each in (one, two):
        each.open(lambda: None)
    for number in range(RACES):
        seen = [each.look(NODE) for each in (one, two)]
        done = [each.change(NODE, its, Ledger(BOTH, 2 * number + at), LeaseStep.STAYS)
                for at, (each, its) in enumerate(zip((one, two), seen, strict=True))]  # fmt: skip
        assert done == [True, False]
    one.close()
    two.close()


def test_a_lease_that_was_taken_meanwhile_is_not_free(make: Make) -> None:
    one, two = make("a"), make("b")
    for each in (one, two):
        each.open(lambda: None)
    ledger = Ledger(BOTH, 1)
    assert one.change(NODE, one.look(NODE), ledger, LeaseStep.STAYS)
    seen = two.look(NODE)
    assert one.change(NODE, one.look(NODE), ledger, LeaseStep.TAKEN)
    assert not two.change(NODE, seen, Ledger(BOTH, 2), LeaseStep.IS_FREE)
    assert two.look(NODE).ledger == ledger
    one.close()
    two.close()


def test_a_backup_waits_for_the_lease_and_is_told_of_its_release(member: New) -> None:
    a, b = member("a").wait(), member("b").wait()
    a.renew(lease_ms=3_600_000)
    assert b.ask(alone(2, "b")).reason == "it sees a"
    a.say(Release(NODE, 1))
    assert b.answer(b.attempt).verdict is Verdict.YES
    assert b.elected(alone(2, "b"))
    assert b.renew(alone(2, "b")).epoch == 2


def test_a_live_that_is_killed_is_succeeded_when_its_lease_is_over(
    make: Make, member: New, tmp_path: Path
) -> None:
    live = living(make, BOTH, tmp_path)
    until((tmp_path / "renewed").exists)
    b = member("b").wait()
    assert b.ask(alone(2, "b")).reason == "it sees a"
    live.kill()
    assert b.answer(b.attempt).verdict is Verdict.YES
    assert b.elected(alone(2, "b"))


def test_a_live_that_stood_still_finds_that_it_was_succeeded(
    make: Make, member: New, tmp_path: Path
) -> None:
    """Its session has expired, or its lease has run out."""
    live = living(make, BOTH, tmp_path)
    until((tmp_path / "renewed").exists)
    b = member("b").wait()
    assert b.ask(alone(2, "b")).reason == "it sees a"
    live.stop()
    assert b.answer(b.attempt).verdict is Verdict.YES
    assert b.elected(alone(2, "b"))
    b.renew(alone(2, "b"))
    live.go_on()
    assert live.has_ended(30)
    assert (tmp_path / "stale").read_text() == "2"


def test_of_candidates_for_one_epoch_one_wins(member: New) -> None:
    known = Grant(1, "a", (*BOTH.copies, *alone(1, "c").copies))
    a, rivals = member("a").wait(), [member("b").wait(), member("c").wait()]
    a.renew(known)
    a.say(Release(NODE, 1))
    until(lambda: rivals[0].ask(alone(2, "b")).verdict is Verdict.YES)
    start = threading.Barrier(2)
    won: list[str] = []

    def race(rival: EngineMember, life: str) -> None:
        start.wait()
        if rival.elected(alone(2, rival.name), life):
            won.append(rival.name)

    for life in map(str, range(RACES)):
        threads = [threading.Thread(target=race, args=(each, life)) for each in rivals]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(set(won)) == 1, "who has won asks again, and has won still"


def test_what_a_library_did_not_foresee_ends_a_connection_and_not_the_member(
    make: Make, members: Callable[[Make], New], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make("a")
    look, failures = engine.look, [TypeError("'NoneType' object is not subscriptable")]

    def fails_once(node: Node) -> Seen:
        if failures:
            raise failures.pop()
        return look(node)

    monkeypatch.setattr(engine, "look", fails_once)
    a = members(lambda _: engine)("a").wait()
    a.say(Renew(NODE, BOTH, 1, 1, LEASE_MS))
    until(lambda: "unreachable" in a.states())
    [failed] = [each for each in a.lines if each["state"] == "unreachable"]
    assert "TypeError" in str(failed["reason"])
    renewed_after_a_loss(a)


# --- ZooKeeper ------------------------------------------------------------------------------------


def test_with_one_server_of_three_killed_it_goes_on(
    ensemble: Ensemble, in_zookeeper: Make, members: Callable[[Make], New]
) -> None:
    a = members(in_zookeeper)("a").wait()
    a.renew(lease_ms=LEASE_MS)
    ensemble.servers[0].kill()
    a.wait()
    renewed_after_a_loss(a)


def test_with_two_servers_of_three_killed_nobody_is_granted_anything(
    ensemble: Ensemble, in_zookeeper: Make, members: Callable[[Make], New]
) -> None:
    member = members(in_zookeeper)
    a, b = member("a").wait(), member("b").wait()
    a.renew(lease_ms=LEASE_MS)
    engine = in_zookeeper("c")
    engine.open(lambda: None)
    seen = engine.look(NODE)
    for each in ensemble.servers[:2]:
        each.kill()
    # the third server may serve for a moment more, until it misses the others
    until(lambda: a.states()[-1] == b.states()[-1] == "unreachable")
    b.say(b.question(alone(2, "b")))
    assert b.hears_nothing(0.2)
    until(lambda: is_lost(engine))
    with pytest.raises(EngineFailed, match=r"the session at ZooKeeper .* has ended"):
        engine.change(NODE, seen, Ledger(BOTH, 2), LeaseStep.TAKEN)
    engine.close()
    ensemble.start()
    a.wait()
    b.wait()
    renewed_after_a_loss(a)


def is_lost(engine: Engine) -> bool:
    try:
        engine.take_word()
    except EngineFailed:
        return True
    return False


def renewed_after_a_loss(member: EngineMember) -> None:
    """What was asked while the connection was lost is lost."""

    def is_renewed() -> bool:
        member.wait()
        member.serial += 1
        member.say(Renew(NODE, BOTH, 1, member.serial, LEASE_MS))
        return not member.hears_nothing(1.0)

    until(is_renewed)


def test_a_session_ends_when_its_member_ends_in_good_order(
    in_zookeeper: Make, members: Callable[[Make], New]
) -> None:
    member = members(in_zookeeper)
    a, b = member("a").wait(), member("b").wait()
    a.renew(lease_ms=LEASE_MS)
    assert b.ask(alone(2, "b")).reason == "it sees a"
    a.voters.close()
    assert b.answer(b.attempt).verdict is Verdict.YES


def test_servers_that_are_emptied_are_refused_with_both_epochs(
    in_zookeeper: Make, members: Callable[[Make], New]
) -> None:
    live = members(in_zookeeper)("a").wait()
    grant = alone(1, "a")
    live.renew(grant)
    engine = in_zookeeper("z")
    engine.open(lambda: None)
    client = engine._client  # type: ignore[attr-defined]
    client.delete(engine._path(NODE), recursive=True)  # type: ignore[attr-defined]
    live.say(Renew(NODE, grant, 1, 99, LEASE_MS))
    until(lambda: "refused" in live.states())
    [refused] = [each for each in live.lines if each["state"] == "refused"]
    assert "it knows epoch 0" in str(refused["reason"])
    assert "a epoch 1" in str(refused["reason"])
    assert live.said.empty()
    engine.close()


def test_sessions_that_are_shorter_than_wanted_are_refused(ensemble: Ensemble) -> None:
    asks = ZooKeeper(ensemble.connect, "/short", "a", 120.0)
    with pytest.raises(EngineFailed, match=r"sessions of 60 s, and session-timeout is 120 s"):
        asks.open(lambda: None)
    asks.close()


# --- PostgreSQL -----------------------------------------------------------------------------------


def test_word_that_comes_with_an_answer_is_heard(
    in_sql: Make, members: Callable[[Make], New]
) -> None:
    """Once it is read nothing is left in the socket, and who sleeps would not wake of it."""
    a, ledger = in_sql("a"), Ledger(BOTH, 1, lease_ms=HOUR_MS)
    a.open(lambda: None)
    assert a.change(NODE, a.look(NODE), ledger, LeaseStep.TAKEN)
    looks = itertools.count()

    def released_meanwhile(of_b: Engine, look: Callable[[Node], Seen], node: Node) -> Seen:
        """The second look, which is the last one before b sleeps, is too early."""
        seen = look(node)
        if next(looks) == 1:
            of_b.take_word()
            assert a.change(NODE, a.look(NODE), ledger, LeaseStep.FREED)
            assert of_b.file is not None
            assert select.select([of_b.file], [], [], PATIENCE_SECONDS)[0]
            assert look(node).lease is None
        return seen

    def make(me: str) -> Engine:
        engine = in_sql(me)
        engine.look = partial(released_meanwhile, engine, engine.look)  # type: ignore[method-assign]
        return engine

    b = members(make)("b").wait()
    assert b.ask(alone(2, "b")).reason == "it sees a"
    assert b.answer(b.attempt).verdict is Verdict.YES
    a.close()


def test_a_database_that_is_restarted_goes_on(
    postgres: Postgres, in_sql: Make, members: Callable[[Make], New]
) -> None:
    member = members(in_sql)
    a, b = member("a").wait(), member("b").wait()
    a.renew(lease_ms=300)
    assert b.ask(alone(2, "b")).reason == "it sees a"
    postgres.kill()
    until(lambda: not a.up and not b.up)
    postgres.start()
    b.wait()
    assert b.ask(alone(2, "b")).reason == "it sees a", "it may be another server: from now on"
    renewed_after_a_loss(a)


@pytest.mark.parametrize("until_", ["to_timestamp(0)", "'infinity'"])
def test_what_the_clock_of_the_database_says_does_not_matter(
    postgres: Postgres, in_sql: Make, members: Callable[[Make], New], until_: str
) -> None:
    """As if it had been set a year on, or back: the lease is neither over, nor for ever."""
    member = members(in_sql)
    a, b = member("a").wait(), member("b").wait()
    a.renew(lease_ms=LEASE_MS)
    table = in_sql("z")._table  # type: ignore[attr-defined]
    with postgres.connect() as other:
        other.execute(f"UPDATE {table} SET until = {until_}")
    assert b.ask(alone(2, "b")).reason == "it sees a"
    assert b.answer(b.attempt).verdict is Verdict.YES


def test_a_table_that_is_emptied_is_refused_with_both_epochs(
    postgres: Postgres, in_sql: Make, members: Callable[[Make], New]
) -> None:
    live = members(in_sql)("a").wait()
    live.renew()
    table = in_sql("z")._table  # type: ignore[attr-defined]
    with postgres.connect() as other:
        other.execute(f"DELETE FROM {table}")
    live.say(Renew(NODE, BOTH, 1, 99, LEASE_MS))
    until(lambda: "refused" in live.states())
    assert live.said.empty()


def test_a_standby_that_is_promoted_goes_on_from_the_last_grant(
    postgres: Postgres, members: Callable[[Make], New]
) -> None:
    """It is a synchronous one, so it has all that was granted."""
    standby = Postgres(primary=postgres)
    both = {
        "user": "broker", "dbname": "postgres", "host": "127.0.0.1,127.0.0.1",
        "port": f"{postgres.port},{standby.port}", "target_session_attrs": "read-write",
    }  # fmt: skip
    with postgres.connect() as primary:
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.execute("SELECT pg_reload_conf()")
    try:
        member = members(in_database(both, f"t{uuid4().hex[:8]}"))
        a, b = member("a").wait(), member("b").wait()
        a.renew(lease_ms=300)
        assert b.ask(alone(2, "b")).reason == "it sees a"
        assert b.answer(b.attempt).verdict is Verdict.YES
        assert b.elected(alone(2, "b"))
        postgres.kill()
        until(lambda: not a.up and not b.up)
        standby.promote()
        a.wait()
        a.say(Renew(NODE, BOTH, 1, 99, 300))
        _, said = a.said.get(timeout=PATIENCE_SECONDS)
        assert said == Stale(NODE, 1, alone(2, "b"), is_decided=False)
    finally:
        standby.close()
        if postgres.server is None or postgres.server.poll() is not None:
            (postgres.folder / "data" / "postgresql.auto.conf").write_text("")
            postgres.start()


def test_a_table_of_before_gets_its_column(postgres: Postgres, in_sql: Make) -> None:
    table = in_sql("z")._table  # type: ignore[attr-defined]
    with postgres.connect() as other:
        other.execute(
            f"CREATE TABLE {table} (node text, place text, holder text, until timestamptz NOT NULL "
            "DEFAULT to_timestamp(0), epoch bigint NOT NULL DEFAULT 0, told text NOT NULL DEFAULT "
            "'', PRIMARY KEY (node, place))"
        )
    engine = in_sql("a")
    engine.open(lambda: None)
    assert engine.change(NODE, engine.look(NODE), Ledger(BOTH, 1), LeaseStep.TAKEN)
    with postgres.connect() as other:
        found = other.execute(f"SELECT place, epoch, holder, in_sync FROM {table}").fetchall()
    assert found == [("granted", 1, "a", "a b")]
    engine.close()


# --- by command -----------------------------------------------------------------------------------


@pytest.fixture
def folder(
    postgres: Postgres, in_sql: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Of a member whose lock manager is PostgreSQL."""
    monkeypatch.setenv("LEASE_PASSWORD", PASSWORD)
    table = in_sql("z")._table  # type: ignore[attr-defined]
    file = tmp_path / FILE
    file.write_text(
        '[instance]\nname = "a"\n[ha]\npolicy = "replication"\n[ha.replication]\n'
        f'lock-manager = "sql"\n[sql]\nurl = "{postgres.url}"\ntable = "{table}"\n'
        'password = { env = "LEASE_PASSWORD" }\n'
    )
    file.chmod(0o600)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(epoch, list(words), standalone_mode=False)


def test_an_engine_that_was_emptied_is_put_right_by_command(
    postgres: Postgres, folder: Path, in_sql: Make, members: Callable[[Make], New]
) -> None:
    a = members(in_sql)("a").wait()
    held = Grant(7, "a", BOTH.copies)
    assert run("set", str(folder), NODE.hex(), "7", "--holder", "a", "--yes").exception is None
    a.renew(held)
    with postgres.connect() as other:
        other.execute(f"DELETE FROM {in_sql('z')._table}")  # type: ignore[attr-defined]
    a.say(Renew(NODE, held, 1, 99, LEASE_MS))
    until(lambda: "refused" in a.states())
    done = run("set", str(folder), NODE.hex(), "7", "--holder", "a", "--in-sync", "b", "--yes")
    assert done.exception is None, done.output
    a.renew(held, version=2)
    [found] = json.loads(run("list", str(folder), "--json").output)
    assert (found["node"], found["epoch"], found["holder"]) == (NODE.hex(), 7, "a")
    assert (found["in_sync"], found["lease_of"]) == (["a", "b"], "a")
    lines = [json.loads(each) for each in (folder / "log" / "shmbroker.log").open()]
    assert [(each["event"], each["was"], each["epoch"]) for each in lines] == [
        ("epoch set", 0, 7), ("epoch set", 0, 7),
    ]  # fmt: skip
    assert lines[0]["user"]


def test_an_epoch_is_not_set_without_a_yes_or_a_holder(folder: Path) -> None:
    no_holder = run("set", str(folder), NODE.hex(), "7", "--yes")
    assert "say --holder" in str(no_holder.exception)
    not_sure = run("set", str(folder), NODE.hex(), "7", "--holder", "a")
    assert isinstance(not_sure.exception, UsageError)
    assert str(not_sure.exception).startswith(f"to set epoch 0 of {NODE.hex()} at ")
    assert json.loads(run("list", str(folder), "--json").output) == []


# --- a pair of brokers ----------------------------------------------------------------------------


@pytest.fixture(params=["sql", "zookeeper"])
def managed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What both members are configured with."""
    of_both: dict[str, object] = {
        "ha.replication.on-partition": None,
        "ha.replication.vote-retry-wait": "200ms",
        "ha.replication.check-for-live-server": True,
        "ha.replication.lock-manager": request.param,
    }
    if request.param == "zookeeper":
        servers: Ensemble = request.getfixturevalue("ensemble")
        servers.start()
        return of_both | {
            "ha.zookeeper.connect": servers.connect,
            "ha.zookeeper.namespace": f"/p{uuid4().hex[:8]}",
            "ha.zookeeper.session-timeout": LEASE_MS,
        }
    monkeypatch.setenv("LEASE_PASSWORD", PASSWORD)
    database: Postgres = request.getfixturevalue("postgres")
    return of_both | {
        "sql.url": database.url,
        "sql.password": {"env": "LEASE_PASSWORD"},
        "sql.table": f"p{uuid4().hex[:8]}",
        "sql.renew": "500ms",
        "sql.expiration": LEASE_MS,
    }


def test_a_pair_fails_over_and_back(node: Made, managed: dict[str, object]) -> None:
    two = node(managed).up()
    filled(two)
    two["a"].kill()
    two["b"].becomes("live")
    assert two.bodies("b") == MANY
    assert (two["b"].status.epoch, "vote won" in two["b"].events()) == (2, True)
    two["a"].start().becomes("live")
    two.says("b", "in sync")
    assert two.bodies("a") == MANY
    assert two["a"].status.epoch == 3
