"""Live and backup with a lease: what is live when it runs out, and when the database is gone.

What does not depend on time is in test_pair.py, for both kinds of lock.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shmbroker
from shmbroker.ipc.base.errors import Replaced
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.backup import take
from shmbroker.ipc.instance.config.config import load
from shmbroker.ipc.instance.live import Live
from shmbroker.ipc.instance.lock.record import LIVE, Record
from shmbroker.ipc.instance.lock.sql_lock import SqlLock
from shmbroker.ipc.instance.machine import Machine, Options, State
from shmbroker.ipc.instance.restoration import restore
from shmbroker.ipc.vhost import vhost as vhosts
from tests.ipc.instance.conftest import Make, leased
from tests.ipc.instance.test_pair import bodies, eventually, is_announced, put
from tests.support.postgres import PASSWORD, Postgres
from tests.support.runs import Run, Settings

LEASE_SECONDS = 1.5


@pytest.fixture
def locked(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("LEASE_PASSWORD", PASSWORD)
    return leased(postgres, f"{LEASE_SECONDS * 100:g}ms", f"{LEASE_SECONDS:g}s")


class Publisher:
    """One message after the other, and how many were confirmed."""

    def __init__(self, vhost: str) -> None:
        self.confirmed = 0
        self._vhost = vhost
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._publish, daemon=True)
        self._thread.start()

    def _publish(self) -> None:
        with shmbroker.connect(f"shm://{self._vhost}") as broker:
            queue = broker.declare_queue("orders", durable=True)
            while not self._ends.is_set():
                position = queue.publish(b"%d" % self.confirmed, confirm="shm")
                while not self._ends.is_set():
                    try:
                        queue.confirm(position, timeout=0.05)
                        self.confirmed += 1
                        queue.receive()  # or the queue is full one day
                        break
                    except shmbroker.Unconfirmed:
                        pass

    def goes_on(self) -> None:
        before = self.confirmed
        eventually(lambda: self.confirmed > before)

    def end(self) -> None:
        self._ends.set()
        self._thread.join()


@pytest.fixture
def publisher(vhost: str, make: Make) -> Callable[[], Publisher]:
    made: list[Publisher] = []

    def one() -> Publisher:
        made.append(Publisher(vhost))
        return made[-1]

    yield one  # type: ignore[misc]
    for each in made:
        each.end()


def pause(run: Run) -> None:
    assert run.process is not None
    run.process.stop()


def go_on(run: Run) -> None:
    assert run.process is not None
    run.process.go_on()


def test_a_live_that_was_stopped_for_too_long_never_confirms_again(
    make: Make, vhost: str, publisher: Callable[[], Publisher]
) -> None:
    """Another host has taken its lease meanwhile: nobody here has killed it, nor its rings."""
    live = make("a").start().becomes("live")
    published = publisher()
    published.goes_on()
    other = live.lock()
    pause(live)
    other.wait_live()
    confirmed = published.confirmed
    go_on(live)
    eventually(lambda: "lost the lease" in live.events())
    live.becomes("passive")
    assert published.confirmed == confirmed
    other.close()
    live.becomes("live")
    published.goes_on()
    assert live.status.epoch == 2
    assert live.events().count("lost the lease") == 1


def test_a_live_that_hangs_is_replaced_by_its_backup_on_the_same_host(
    make: Make, vhost: str, publisher: Callable[[], Publisher]
) -> None:
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    published = publisher()
    published.goes_on()
    pause(live)
    backup.becomes("live")
    published.goes_on()
    assert "killed a live that hangs" in backup.events()
    assert live.ends() == -signal.SIGKILL


@pytest.mark.parametrize("how", ["hangs", "is killed"])
def test_without_its_database_a_live_ends_in_time_and_comes_back(
    make: Make, postgres: Postgres, publisher: Callable[[], Publisher], how: str
) -> None:
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    published = publisher()
    published.goes_on()
    (postgres.pause if how == "hangs" else postgres.kill)()
    try:
        live.becomes("passive")
        confirmed = published.confirmed
        eventually(lambda: "database unreachable" in backup.events())
        eventually(lambda: not backup.status.is_announced)
        assert published.confirmed == confirmed
        assert backup.status.state == "passive", "it does not know that nobody is live"
    finally:
        (postgres.go_on if how == "hangs" else postgres.start)()
    eventually(lambda: "live" in (live.status.state, backup.status.state))
    published.goes_on()
    for each in (live, backup):
        assert each.process is not None
        assert not each.process.has_ended()
        eventually(lambda run=each: run.events().count("database reachable") == 1)  # type: ignore[misc]
        assert each.events().count("database unreachable") == 1, "once, not for each try"
    assert live.events().count("lost the lease") == 1


def test_a_backup_whose_lease_runs_out_while_its_command_runs_does_not_take_over(
    make: Make, postgres: Postgres, tmp_path: Path
) -> None:
    """Somebody else may be live by then: it waits again, and asks again."""
    blocks = tmp_path / "blocks"
    os.mkfifo(blocks)
    command = ["/bin/sh", "-c", f"mkdir {tmp_path}/asked && cat {blocks}; true"]
    live = make("a").start().becomes("live")
    backup = make("b", "backup", on_promote=command, on_promote_timeout="60s").start()
    is_announced(backup)
    live.kill()
    backup.becomes("promoting")
    postgres.pause()
    try:
        backup.becomes("passive")
    finally:
        postgres.go_on()
    assert "lost the lease" in backup.events()
    backup.becomes("live")
    blocks.write_text("")
    assert backup.stop() == 0


def test_who_has_no_lease_any_more_touches_nothing_of_the_next_live() -> None:
    live: Any = SimpleNamespace(lock=SimpleNamespace(is_held=False))
    with pytest.raises(Replaced, match="before it took over"):
        Live._take_over(live)


@pytest.mark.parametrize(("says", "state"), [(None, State.RESTORING), ("no", State.PASSIVE)])
def test_a_command_of_a_promotion_that_was_lost_says_nothing_about_the_next_one(
    says: str | None, state: State
) -> None:
    """About the same live: nobody else was live meanwhile."""
    former, answers = Record(2, LIVE), []
    backup: Any = SimpleNamespace(
        machine=Machine(Options("backup", has_command=True)), promotions=0,
        config=SimpleNamespace(on_promote_failure="refuse"), store=SimpleNamespace(node=b""),
        lock=SimpleNamespace(record=lambda: former),
        log=SimpleNamespace(write=lambda *_, **__: None), _detach=lambda: None, _do=list,
        _in_background=lambda _, then: answers.append(then),
    )  # fmt: skip
    backup._answered = partial(Live._answered, backup)
    machine = backup.machine
    list(machine.start())
    for _ in range(2):
        for step in (machine.lost(), machine.announced(former), machine.locked(former)):
            list(step)
        assert machine.state == State.PROMOTING
        Live._ask_command(backup)
    first, second = answers
    for of_before in ("no", None):
        first(of_before)
        assert machine.state == State.PROMOTING
    second(says)
    assert machine.state == state


def test_a_live_goes_on_while_its_database_is_restarted(
    make: Make, postgres: Postgres, locked: Settings, publisher: Callable[[], Publisher]
) -> None:
    locked |= {"sql.renew": "100ms", "sql.expiration": "60s"}
    live = make("a").start().becomes("live")
    published = publisher()
    published.goes_on()
    postgres.kill()
    published.goes_on()
    eventually(lambda: "database unreachable" in live.events())
    postgres.start()
    eventually(lambda: "database reachable" in live.events())
    published.goes_on()
    assert live.status.epoch == 1


def test_a_stop_while_the_database_is_gone_ends_all_the_same(
    make: Make, postgres: Postgres, vhost: str
) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    postgres.kill()
    try:
        assert live.stop() == 0
    finally:
        postgres.start()
    live.start().becomes("live")
    assert bodies(vhost) == [b"1"]


def test_a_live_without_a_database_says_why_it_does_not_start(make: Make, locked: Settings) -> None:
    locked["sql.url"] = "postgresql://broker@127.0.0.1:1/orders"
    live = make("a").start()
    assert live.ends() == 1
    assert "database orders on 127.0.0.1:1" in live.errors()
    assert "see that it runs" in live.errors()
    assert "see that it runs" in live.why("failed")


def test_no_secret_is_in_what_an_instance_leaves_or_shows(
    make: Make, vhost: str, locked: Settings, postgres: Postgres
) -> None:
    locked["sql.url"] = postgres.url.replace("@", ":" + PASSWORD.replace(" ", "%20") + "@")
    locked["sql.password"] = {"env": "LEASE_PASSWORD"}
    live = make("a").start().becomes("live")
    postgres.kill()
    try:
        eventually(lambda: "database unreachable" in live.events())
    finally:
        postgres.start()
    assert live.process is not None
    shown = [
        Path(f"/proc/{live.process.pid}/cmdline").read_text(),
        str(status.read(live.folder)),
        live.errors(),
        *(path.read_text() for path in live.folder.rglob("*") if path.suffix not in (".toml", "")),
        (live.folder / "run" / "status").read_text(),
    ]
    for secret in (PASSWORD, PASSWORD.replace(" ", "%20")):
        assert not [text for text in shown if secret in text]


def test_a_store_that_others_lock_in_another_way_is_refused(make: Make, locked: Settings) -> None:
    live = make("a").start().becomes("live")
    lock = live.lock()
    assert isinstance(lock, SqlLock)
    lock.close()
    live.stop()
    config = live.folder / "shmbroker.toml"
    config.write_text(config.read_text().replace('lock = "sql"', 'lock = "file"'))
    live.start()
    assert live.ends() == 1
    assert 'has lock = "sql", and store.lock is "file"' in live.errors()
    live.start(moved=True).becomes("live")
    assert live.status.epoch == 2


def answers_the_second_time() -> None:
    """As a database that is restarted just now."""
    asks, tries = SqlLock.ask_failback, chain((False,), repeat(True))

    def ask(lock: SqlLock, epoch: int) -> bool:
        return asks(lock, epoch) if next(tries) else False

    setattr(SqlLock, "ask_failback", ask)  # noqa: B010  # mypy knows that it is another one


def test_an_original_asks_for_its_role_until_the_database_has_heard_of_it(make: Make) -> None:
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    live.kill()
    backup.becomes("live")
    live.before = answers_the_second_time
    live.start().becomes("live")
    assert "asked for the role back" in live.events()


def test_a_restored_store_does_not_go_on_with_the_rings_of_before(
    make: Make, vhost: str, tmp_path: Path
) -> None:
    """What was purged since is what somebody wants back; and once more."""
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    take(load(live.folder), tmp_path / "backup", None, print)
    for lost in ("lost", "lost again"):
        with shmbroker.connect(f"shm://{vhost}") as broker:
            broker.queue("orders").purge()
        live.stop()
        shutil.move(tmp_path / "store" / "journal", tmp_path / lost)
        restore(load(live.folder), tmp_path / "backup", new_node=False)
        assert live.start().ends() == 1
        assert "shmbroker run DIR --moved" in live.why("failed")
        assert live.start(moved=True).ends() == 1
        assert f"shmbroker vhost delete {vhost}" in live.why("failed")
        assert live.start().ends() == 1  # as its supervisor does
        assert vhosts.exists(vhost)
        vhosts.delete(vhost)
        live.start().becomes("live")
        assert bodies(vhost) == [b"1"]


def test_epochs_only_grow_while_the_role_goes_to_and_fro(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    backup = make("b", "backup").start()
    epochs = [live.status.epoch]
    for number in range(5):
        is_announced(backup)
        put(vhost, b"%d" % number)
        live.kill()
        backup.becomes("live")
        epochs.append(backup.status.epoch)
        live.start().becomes("live")
        epochs.append(live.status.epoch)
        backup.becomes("passive")
    assert epochs == list(range(1, 12))
    assert bodies(vhost) == [b"%d" % number for number in range(5)]
