"""Leases in a real PostgreSQL: who gets them, until when, and who notices that they ran out."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from shmbroker.ipc.base.errors import Replaced
from shmbroker.ipc.instance import process, store
from shmbroker.ipc.instance.config.config import FILE, configured
from shmbroker.ipc.instance.config.secret import SecretRefused
from shmbroker.ipc.instance.lock import lease_table, sql_lock
from shmbroker.ipc.instance.lock.database import Address, DatabaseFailed
from shmbroker.ipc.instance.lock.live_lock import News
from shmbroker.ipc.instance.lock.record import LIVE, Record
from shmbroker.ipc.instance.lock.sql_lock import SqlLock
from shmbroker.ipc.instance.store import Store, StoreRefused
from shmbroker.perf.machine.process import Process
from tests.support.postgres import PASSWORD, PATIENCE_SECONDS, Postgres

if TYPE_CHECKING:
    import psycopg

Make = Callable[..., SqlLock]

RACES = 50
KILLS = 50
FOR_EVER = {"sql.renew": "1h", "sql.expiration": "3h"}
"""Nothing is renewed, and nothing runs out, while a test looks."""
SHORT = {"sql.renew": "100ms", "sql.expiration": "3s"}


@pytest.fixture
def make(tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Locks of one store, each as if it were on a host of its own."""
    made: list[SqlLock] = []
    monkeypatch.setenv("LEASE_PASSWORD", PASSWORD)
    store.create(tmp_path / "data", "orders", "sql")
    (tmp_path / FILE).touch(0o600)

    def one(*, moved: bool = False, **given: object) -> SqlLock:
        settings = {
            "store.lock": "sql",
            "sql.url": postgres.url,
            "sql.password": {"env": "LEASE_PASSWORD"},
            **FOR_EVER,
            **{key.replace("_", "."): value for key, value in given.items()},
        }
        config = configured(tmp_path, settings)
        at = Store(tmp_path / "data", "orders", "sql")
        made.append(SqlLock(config, at, moved=moved))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.fixture
def sql(postgres: Postgres) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with postgres.connect() as connection:
        yield connection


def node_of(lock: SqlLock) -> str:
    return lock.store.node.hex()


def until_of(sql: psycopg.Connection[tuple[object, ...]], lock: SqlLock) -> datetime:
    """When the lease on being live runs out, as the database has it."""
    [until] = sql.execute(
        "SELECT until FROM shmbroker_lease WHERE place = 'live' AND node = %s", [node_of(lock)]
    ).fetchone() or [None]
    assert isinstance(until, datetime)
    return until


def in_background(work: Callable[[], object]) -> threading.Event:
    done = threading.Event()

    def run() -> None:
        work()
        done.set()

    threading.Thread(target=run, daemon=True).start()
    return done


def next_news(lock: SqlLock, *wanted: News) -> sql_lock.Told:
    while (told := lock._heard.get(timeout=PATIENCE_SECONDS)).news not in wanted:
        pass
    return told


# --- who gets it ----------------------------------------------------------------------------------


def test_one_has_it_until_it_gives_it_back(make: Make) -> None:
    one, two = make(), make()
    assert one.try_live()
    assert not two.try_live()
    assert one.is_held
    assert not two.is_held
    assert two.another_is_live
    one.release_live()
    assert two.try_live()
    assert not one.try_live()


def test_who_waits_is_woken_when_it_is_given_back(make: Make) -> None:
    """And not when it would have run out: that is in hours."""
    one, two = make(), make()
    assert one.try_live()
    waits = in_background(two.wait_live)
    one.release_live()
    assert waits.wait(PATIENCE_SECONDS)


def test_who_waits_and_has_no_descriptor_left_goes_on(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_process: process.Process) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    one, two = make(), make()
    assert one.try_live()
    with monkeypatch.context() as changed:
        changed.setattr(process.Process, "descriptor", refused)
        waits = in_background(two.wait_live)
        assert not waits.wait(0.5)
    assert two._is_reachable
    one.release_live()
    assert waits.wait(PATIENCE_SECONDS)


def test_who_waits_gets_it_when_it_runs_out(make: Make) -> None:
    """Of one that renews nothing any more: its thread is not there."""
    one, two = make(**SHORT), make(**SHORT)
    assert one.try_live()
    with one._talking:
        waits = in_background(two.wait_live)
        assert waits.wait(PATIENCE_SECONDS)
        assert not one.is_held


def test_it_is_renewed(make: Make, sql: psycopg.Connection[tuple[object, ...]]) -> None:
    """Nothing runs out meanwhile, however slow this machine is."""
    lock = make(sql_renew="50ms", sql_expiration="1h")
    assert lock.try_live()
    ours, theirs = lock.until[0], until_of(sql, lock)
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while lock.until[0] <= ours or until_of(sql, lock) <= theirs:
        assert time.monotonic() < ends_at, "it is not renewed"
        time.sleep(0.01)
    assert lock.is_held


@pytest.mark.parametrize("round_of_ten", range(RACES // 10))
def test_of_many_that_race_for_it_one_wins(make: Make, round_of_ten: int) -> None:
    racers = [make() for _ in range(4)]
    for _ in range(10):
        start = threading.Barrier(len(racers))
        won: list[SqlLock] = []

        def race(lock: SqlLock, start: threading.Barrier = start, won: list[SqlLock] = won) -> None:
            start.wait()
            if lock.try_live():
                won.append(lock)

        runs = [threading.Thread(target=race, args=(each,)) for each in racers]
        for each in runs:
            each.start()
        for each in runs:
            each.join()
        assert len(won) == 1
        won[0].release_live()


def test_the_clock_of_a_host_does_not_matter(
    make: Make, monkeypatch: pytest.MonkeyPatch, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    """One that is years late, or early, neither steals a lease nor thinks that it has one."""
    one, two = make(), make()
    assert one.try_live()
    real = time.time
    for years in (-50, 50):
        monkeypatch.setattr(time, "time", lambda years=years: real() + years * 365 * 86400)
        assert not two.try_live()
    row = sql.execute(
        "SELECT until > clock_timestamp() + interval '2 h' AND "
        "until <= clock_timestamp() + interval '3 h' FROM shmbroker_lease "
        "WHERE place = 'live' AND node = %s",
        [node_of(one)],
    ).fetchone()
    assert row == (True,)


def test_the_boot_clock_of_a_host_may_be_any(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads its own only to know how long ago it has asked."""
    one = make()
    assert one.try_live()
    real = sql_lock.now
    monkeypatch.setattr(sql_lock, "now", lambda: real() + 1e6)
    two = make()
    assert not two.try_live()
    one.release_live()
    assert two.try_live()
    assert two.is_held


def test_the_lease_of_who_is_dead_on_this_host_is_taken_at_once(make: Make) -> None:
    one, two = make(), make()
    child = process.Process(1 << 22, 1, process.boot(), process.namespace())
    one.holder = one._table.holder = sql_lock.holder_of("dead", child)  # type: ignore[union-attr]
    assert one.try_live()
    assert in_background(two.wait_live).wait(PATIENCE_SECONDS)


def test_not_the_one_of_who_may_live_on_another_host(make: Make) -> None:
    one, two = make(), make()
    elsewhere = process.Process(1 << 22, 1, "another boot", process.namespace())
    one.holder = one._table.holder = sql_lock.holder_of("far", elsewhere)  # type: ignore[union-attr]
    assert one.try_live()
    assert not two.try_live()


# --- the record -----------------------------------------------------------------------------------


def test_the_record_is_there_for_others(make: Make) -> None:
    one, two = make(), make()
    assert two.record() == Record()
    assert one.try_live()
    written = Record(1, LIVE, "a", process.this(), 77)
    one.write(written)
    next_news(two, News.CHANGED)
    while two.record() != written:
        next_news(two, News.CHANGED)
    assert one.file.read() == written


def test_only_who_is_live_writes_it_and_the_epoch_only_grows(make: Make) -> None:
    one, two = make(), make()
    with pytest.raises(Replaced):
        two.write(Record(1, LIVE))
    assert one.try_live()
    one.write(Record(5, LIVE))
    with pytest.raises(Replaced):
        one.write(Record(4, LIVE))
    with pytest.raises(Replaced):
        two.write(Record(6, LIVE))
    one.release_live()
    with pytest.raises(Replaced):
        one.write(Record(7, LIVE))
    assert two.try_live()
    assert two.record().epoch == 5
    assert two.file.read().epoch == 5, "and live.lock is as the database has it"


def test_failback_is_asked_by_who_is_announced(make: Make) -> None:
    live, original, other = make(), make(), make()
    assert live.try_live()
    live.write(Record(3, LIVE))
    assert not other.ask_failback(3)
    assert not live.is_failback_asked(3)
    original.wait_announced()
    assert original.ask_failback(3)
    while not live.is_failback_asked(3):
        next_news(live, News.CHANGED)
    assert not live.is_failback_asked(4)
    original.release_announced()
    other.wait_announced()
    while live.is_failback_asked(3):  # that was another one's wish
        next_news(live, News.CHANGED)
    while not live.another_is_announced:
        next_news(live, News.CHANGED)
    assert not live.is_failback_asked(3)


def test_a_holder_may_be_killed_at_any_moment(make: Make, tmp_path: Path) -> None:
    """Nobody waits for its lease to run out, and its epoch is never used again."""
    ours = make()
    chance = random.Random(5)

    def live_again_and_again() -> int:
        lock = make()
        while True:
            lock.wait_live()
            lock.write(Record(lock.record().epoch + 1, LIVE))
            ready.set()
            lock.release_live()

    epoch = 0
    for _ in range(KILLS):
        ready = multiprocessing.Event()
        child = Process(live_again_and_again, tmp_path / "errors")
        assert ready.wait(PATIENCE_SECONDS), (tmp_path / "errors").read_text()
        time.sleep(chance.uniform(0, 0.01))
        child.kill()
        assert in_background(ours.wait_live).wait(PATIENCE_SECONDS)
        found = ours.record().epoch
        assert found > epoch
        assert found - ours.file.read().epoch in (0, 1), "the database is told first"
        epoch = found + 1
        ours.write(Record(epoch, LIVE))
        ours.release_live()


# --- what runs out --------------------------------------------------------------------------------


def test_ours_runs_out_before_that_of_the_database(
    make: Make, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    """Whatever happens between asking and being answered: here it takes most of the lease."""
    lock = make(sql_renew="2s", sql_expiration="6s")
    table = lock._table
    assert table is not None
    real = table.take

    def slowly(place: str, dead: str | None) -> bool:
        taken = real(place, dead)
        time.sleep(0.3)
        return taken

    table.take = slowly  # type: ignore[method-assign]
    assert lock.try_live()
    [left] = sql.execute(
        "SELECT extract(epoch FROM until - clock_timestamp()) FROM shmbroker_lease "
        "WHERE place = 'live' AND node = %s",
        [node_of(lock)],
    ).fetchone() or [None]
    ours = lock.until[0] / 1e9 - sql_lock.now()
    assert 0 < ours < float(left) - 0.3  # type: ignore[arg-type]


def test_a_lease_that_was_taken_away_is_lost(
    make: Make, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    lock = make(sql_renew="50ms", sql_expiration="1h")
    assert lock.try_live()
    sql.execute("UPDATE shmbroker_lease SET holder = 'x' WHERE node = %s", [node_of(lock)])
    assert "ran out" in next_news(lock, News.LOST).why
    assert not lock.is_held
    assert lock.until[0] == 0


def test_what_is_renewed_too_late_is_lost(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journaler may have looked meanwhile."""
    lock = make()
    assert lock.try_live()
    with lock._talking:
        lock.leases["live"].until = sql_lock.now()
        lock._renew(lock._asked(), "live")
    assert next_news(lock, News.LOST).why == "it was renewed too late"
    assert not lock.is_held


def test_while_the_database_is_gone_it_says_so_once_and_ends_in_time(
    make: Make, postgres: Postgres
) -> None:
    lock = make(**SHORT)
    assert lock.try_live()
    lock.wait_announced()
    postgres.kill()
    try:
        wanted = (News.UNREACHABLE, News.LOST, News.UNANNOUNCED)  # a late machine has another order
        why = {told.news: told.why for told in (next_news(lock, *wanted) for _ in wanted)}
        assert why.keys() == set(wanted), "each once"
        assert f"127.0.0.1:{postgres.port}" in why[News.UNREACHABLE]
        with pytest.raises(Replaced):
            lock.write(Record(1, LIVE))
        assert lock.file.read() == Record()
    finally:
        postgres.start()
    assert next_news(lock, News.REACHABLE, News.UNREACHABLE).news == News.REACHABLE
    assert lock.try_live()


def test_a_database_that_fails_behind_a_record_is_as_one_that_fails_before(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = make()
    assert lock.try_live()

    def fails() -> dict[str, lease_table.Seen]:
        raise lock.address.failed("it has ended")

    with lock._talking:
        monkeypatch.setattr(lock._asked(), "look", fails)
        with pytest.raises(Replaced, match="it has ended"):
            lock.write(Record(1, LIVE))


def test_a_short_restart_of_the_database_is_not_felt(make: Make, postgres: Postgres) -> None:
    lock = make(sql_renew="100ms", sql_expiration="1h")
    assert lock.try_live()
    postgres.kill()
    postgres.start()
    next_news(lock, News.REACHABLE)
    assert lock.is_held
    lock.write(Record(1, LIVE))


def test_a_database_that_says_nothing_is_not_waited_for(make: Make, postgres: Postgres) -> None:
    lock = make(sql_renew="100ms", sql_expiration="600ms")
    assert lock.try_live()
    postgres.pause()
    try:
        next_news(lock, News.LOST)
        assert not lock.is_held
    finally:
        postgres.go_on()
    next_news(lock, News.REACHABLE)


def test_rows_that_are_gone_for_a_while_are_found_again(
    make: Make, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    """Somebody restores the table, say."""
    one, two = make(), make(sql_renew="50ms", sql_expiration="1h")
    assert one.try_live()
    one.write(Record(1, LIVE))
    waits = in_background(two.wait_live)
    columns = "node, place, holder, until, epoch, told"
    rows = sql.execute(
        f"DELETE FROM shmbroker_lease WHERE node = %s RETURNING {columns}", [node_of(one)]
    ).fetchall()
    assert "has lost the rows" in next_news(two, News.UNREACHABLE).why
    with sql.transaction(), sql.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO shmbroker_lease ({columns}) VALUES (%s, %s, %s, %s, %s, %s)", rows
        )
    next_news(two, News.REACHABLE)
    assert two.record() == Record(1, LIVE)
    assert not waits.is_set()
    sql.execute("UPDATE shmbroker_lease SET holder = NULL WHERE node = %s", [node_of(one)])
    assert waits.wait(PATIENCE_SECONDS)


# --- what is refused ------------------------------------------------------------------------------


def test_a_database_that_is_not_there_is_named(make: Make) -> None:
    with pytest.raises(DatabaseFailed) as error:
        make(sql_url="postgresql://broker:hunter2@127.0.0.1:1/orders", sql_password="")
    assert "database orders on 127.0.0.1:1" in str(error.value)
    assert "see that it runs" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_wrong_password_is_not_shown(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASE_PASSWORD", "hunter2")
    with pytest.raises(DatabaseFailed, match="password authentication failed") as error:
        make()
    assert "hunter2" not in str(error.value)


def test_what_a_database_says_is_shown_without_the_secrets() -> None:
    address = Address({"host": "db", "password": "hunter2"}, ("hunter2",))
    assert str(address.failed("user hunter2\nis unknown")) == "database db: user *** is unknown"
    assert "hunter2" not in repr(address)


@pytest.mark.parametrize("url", ["postgresql://b:hunter2@[", "host=x hunter2", "hunter2"])
def test_what_is_no_address_is_not_shown(make: Make, url: str) -> None:
    with pytest.raises(DatabaseFailed, match=r"sql\.url is no address") as error:
        make(sql_url=url)
    assert "hunter2" not in str(error.value)


def test_a_plain_password_that_others_may_read_is_refused(make: Make, tmp_path: Path) -> None:
    make(sql_password=PASSWORD)
    (tmp_path / FILE).chmod(0o644)
    with pytest.raises(SecretRefused, match="chmod 600"):
        make(sql_password=PASSWORD)


def test_without_psycopg_it_says_what_to_install(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(DatabaseFailed, match=r'pip install "shmbroker\[sql\]"'):
        make()


def test_a_database_that_knows_less_than_the_store_is_refused(
    make: Make, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    """With another database there would be another live."""
    one = make()
    assert one.try_live()
    one.write(Record(7, LIVE))
    one.close()
    other = f"other_{uuid4().hex}"
    with pytest.raises(StoreRefused, match=r"epoch 0 of store .* live by epoch 7.*--moved"):
        make(sql_table=other)
    moved = make(sql_table=other, moved=True)
    assert moved.record() == Record(7, LIVE)
    moved.close()
    make(sql_table=other)
    sql.execute(f"DROP TABLE {other}")


def test_its_table_is_made_once_by_many_at_once(
    make: Make, sql: psycopg.Connection[tuple[object, ...]]
) -> None:
    table = f"made_{uuid4().hex}"
    made = [in_background(lambda: make(sql_table=table)) for _ in range(8)]
    assert all(each.wait(PATIENCE_SECONDS) for each in made)
    sql.execute(f"DROP TABLE {table}")


def test_a_lease_that_ran_out_before_its_waiter_woke_is_asked_for_again() -> None:
    lock: Any = SqlLock.__new__(SqlLock)  # its database is not asked
    lease = sql_lock.Lease()
    lock.leases, lock.until = {lease_table.LIVE: lease}, [0]
    lock._changed, lock._wake, lock._heard = threading.Condition(), os.eventfd(0), SimpleQueue()
    lock.config = SimpleNamespace(sql=SimpleNamespace(expiration=1.0))
    waiter = threading.Thread(target=lock.wait_live, daemon=True)
    waiter.start()
    while not lease.is_awaited:
        time.sleep(0.001)
    with lock._changed:  # the process stands still: its threads do not run
        lock._have(lease_table.LIVE, sql_lock.now() - 2)
        lock._lose(lease_table.LIVE, "it could not be renewed in time")
    assert lease.is_wanted
    lock._have(lease_table.LIVE, sql_lock.now())
    waiter.join(PATIENCE_SECONDS)
    os.close(lock._wake)
    assert not waiter.is_alive()
    assert not lease.is_wanted
