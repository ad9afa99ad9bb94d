"""Live and backup as processes: who is live after what, and what is in the queues then."""

from __future__ import annotations

import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.broker.journaler import begin_restoring
from shmbroker.ipc.broker.restoring import Progress, Restoring
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config.config import load
from shmbroker.ipc.instance.instance import Instance
from shmbroker.ipc.instance.lock import record
from shmbroker.ipc.instance.lock.file_lock import FileLock
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.vhost import vhost as vhosts
from tests.ipc.instance.conftest import Make
from tests.support.runs import PATIENCE_SECONDS, Run, Settings
from tests.support.takeover_damage import is_whole, segments, told, zeroed


def put(vhost: str, *bodies: bytes) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True)
        for body in bodies:
            queue.publish(body, timeout=PATIENCE_SECONDS)


def bodies(vhost: str) -> list[bytes]:
    with shmbroker.connect(f"shm://{vhost}", observe=True) as broker:
        return [bytes(each.body) for each in broker.queue("orders").browse()]


def eventually(what: Callable[[], object]) -> None:
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while not what():
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.005)


def is_announced(run: Run) -> Run:
    eventually(lambda: run.status.is_announced)
    return run


# --- who is live ----------------------------------------------------------------------------------


def test_a_live_that_is_killed_is_replaced_and_gets_its_role_back(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    assert backup.status.state == "passive"
    put(vhost, b"1", b"2")
    live.kill()
    backup.becomes("live")
    put(vhost, b"3")
    live.start().becomes("live")
    backup.becomes("passive")
    assert bodies(vhost) == [b"1", b"2", b"3"]
    assert live.status.epoch == 3
    assert backup.stop() == 0


def test_what_is_in_a_journal_of_another_folder_is_restored(
    make: Make, vhost: str, tmp_path: Path
) -> None:
    live = make("a", store__journal=str(tmp_path / "journal")).start().becomes("live")
    put(vhost, b"1")
    assert live.stop() == 0
    vhosts.delete(vhost, force=True)  # as if the machine had been started anew
    live.start().becomes("live")
    assert bodies(vhost) == [b"1"]


def test_a_stop_in_good_order_does_not_hand_over(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    put(vhost, b"1")
    assert live.stop() == 0
    assert live.status.state == "stopped"
    lock = live.lock()
    eventually(lambda: not lock.another_is_live)  # the backup had it, to see that it is not wanted
    live.start().becomes("live")
    assert backup.events() == ["starting", "passive"], "and it says nothing while it rests"
    live.kill()
    backup.becomes("live")
    assert bodies(vhost) == [b"1"]


def test_with_failover_on_shutdown_it_does(make: Make, vhost: str) -> None:
    live = make("a", failover_on_shutdown=True).start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    put(vhost, b"1")
    assert live.stop() == 0
    backup.becomes("live")
    put(vhost, b"2")
    assert bodies(vhost) == [b"1", b"2"]


def test_a_backup_that_starts_first_waits_for_its_live(make: Make) -> None:
    backup = is_announced(make("b", "backup").start())
    live = make("a").start().becomes("live")
    assert backup.status.state == "passive"
    live.kill()
    backup.becomes("live")


def test_what_the_journal_loses_is_written_anew_by_each_that_takes_over(
    make: Make, vhost: str, tmp_path: Path
) -> None:
    """By a backup, by the live that gets its role back; then from the journal alone."""
    folder = tmp_path / "store" / "journal"
    confirmed = [b"%d " % number + b"x" * 20_000 for number in range(150)]
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    put(vhost, *confirmed)
    segments(folder)[1].unlink()
    live.kill()
    backup.becomes("live")
    eventually(lambda: is_whole(folder))
    zeroed(segments(folder)[-1])
    live.start().becomes("live")
    eventually(lambda: is_whole(folder))
    assert bodies(vhost) == confirmed
    assert any("written anew from memory" in text for text in told(vhost))
    backup.kill()
    live.kill()
    vhosts.delete(vhost, force=True)
    live.start().becomes("live")
    assert bodies(vhost) == confirmed


def test_a_backup_that_does_not_restart_ends_after_the_failback(make: Make) -> None:
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup", restart_backup=False).start())
    live.kill()
    backup.becomes("live")
    live.start().becomes("live")
    assert backup.ends() == 0
    assert backup.status.state == "stopped"


@pytest.mark.parametrize("whose", ["live", "backup"])
def test_no_failback_if_either_does_not_allow_it(make: Make, whose: str) -> None:
    live = make("a", allow_failback=whose != "live").start().becomes("live")
    backup = make("b", "backup", allow_failback=whose != "backup").start()
    is_announced(backup)
    live.kill()
    backup.becomes("live")
    is_announced(live.start())
    assert backup.status.state == "live"
    backup.kill()
    live.becomes("live")


def test_with_two_backups_one_is_announced_and_there_is_no_failback(make: Make) -> None:
    live = make("a").start().becomes("live")
    one = is_announced(make("b", "backup").start())
    two = make("c", "backup").start().becomes("passive")
    assert not two.status.is_announced
    live.kill()
    one.becomes("live")
    is_announced(two)
    live.start().becomes("passive")
    assert not live.status.is_announced
    assert one.status.state == "live"
    one.kill()
    # now only one waits: it is announced, and if it is faster than we are, has its role already
    eventually(lambda: "live" in two.events())
    assert one.status.state == "not running"
    assert "handing over" not in one.events()  # it did not give its role back


def test_an_instance_runs_once(make: Make) -> None:
    live = make("a").start().becomes("live")
    first = live.process
    live.start()
    assert live.ends() == 1
    assert "runs already" in live.errors()
    assert live.status.state == "live"
    live.process = first  # to be ended with the test


def test_a_copied_store_is_refused(make: Make) -> None:
    live = make("a").start().becomes("live")
    store = live.folder.parent / "store"
    live.stop()
    shutil.copytree(store, store.with_name("copy"))
    shutil.rmtree(store)
    store.with_name("copy").rename(store)
    live.start()
    assert live.ends() == 1
    assert "is a copy" in live.errors()
    assert "is a copy" in live.why("failed")
    live.start(moved=True).becomes("live")


def restores_for_ever() -> None:
    def replay(restoring: Restoring, replay: Replay, progress: Progress) -> None:
        while True:
            progress(0, 1)

    setattr(Restoring, "replay", replay)  # noqa: B010  # mypy knows that it is another one


def test_a_second_stop_ends_one_that_restores_and_the_next_start_has_everything(
    make: Make, vhost: str
) -> None:
    run = make("a").start().becomes("live")
    put(vhost, b"1", b"2")
    run.stop()
    vhosts.delete(vhost)
    run.before = restores_for_ever
    process = run.start().becomes("restoring").process
    assert process is not None

    def is_stopped() -> bool:  # again: two signals that come at once are one
        process.send(signal.SIGTERM)
        return process.has_ended(0.1)

    eventually(is_stopped)
    assert run.ends() == 0
    assert run.status.state == "stopped"
    run.before = lambda: None
    run.start().becomes("live")
    assert bodies(vhost) == [b"1", b"2"]


# --- what is asked before -------------------------------------------------------------------------


def test_a_command_may_say_no(make: Make) -> None:
    live = make("a").start().becomes("live")
    backup = make("b", "backup", on_promote=["/bin/sh", "-c", "exit 3"])
    is_announced(backup.start())
    live.kill()
    eventually(lambda: "on-promote refused" in backup.events())
    backup.becomes("passive")
    assert backup.why("on-promote refused") == "it ended with 3"
    live.start().becomes("live")
    assert backup.events().count("promoting") == 1, "it was not asked again and again"


def test_the_next_backup_takes_over_when_a_command_has_said_no(make: Make) -> None:
    """However late it comes to that: whoever has said no is not announced before it."""
    live = make("a").start().becomes("live")
    refuses = is_announced(make("b", "backup", on_promote=["/bin/sh", "-c", "exit 3"]).start())
    takes = make("c", "backup").start().becomes("passive")
    assert takes.process is not None
    takes.process.stop()
    live.kill()
    eventually(lambda: "on-promote refused" in refuses.events())
    refuses.becomes("passive")
    takes.process.go_on()
    takes.becomes("live")


def test_a_command_that_says_yes_knows_what_it_is_about(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    said = live.folder / "said"
    ask = f'echo "$SHMBROKER_INSTANCE $SHMBROKER_VHOST $SHMBROKER_EPOCH" > {said}'
    backup = is_announced(make("b", "backup", on_promote=["/bin/sh", "-c", ask]).start())
    live.kill()
    backup.becomes("live")
    assert said.read_text() == f"b {vhost} 2\n"


def test_commands_are_run_in_order_until_one_fails(make: Make) -> None:
    live = make("a").start().becomes("live")
    said = live.folder / "said"
    steps = ["echo 1 $SHMBROKER_OLD_LIVE $SHMBROKER_NEW_LIVE", "echo 2; exit 4", "echo 3"]
    commands = [["/bin/sh", "-c", f"({each}) >> {said}"] for each in steps]
    backup = make("b", "backup", on_promote=commands)
    is_announced(backup.start())
    live.kill()
    eventually(lambda: "on-promote refused" in backup.events())
    assert backup.why("on-promote refused") == "/bin/sh: it ended with 4"
    assert said.read_text() == "1 a b\n2\n"


def test_a_command_that_fails_may_be_no_reason(make: Make) -> None:
    live = make("a").start().becomes("live")
    backup = make(
        "b", "backup", on_promote=["/bin/sh", "-c", "exit 3"], on_promote_failure="continue"
    )
    is_announced(backup.start())
    live.kill()
    backup.becomes("live")
    assert backup.why("on-promote failed") == "it ended with 3"


def test_a_command_that_hangs_says_no(make: Make) -> None:
    live = make("a").start().becomes("live")
    backup = make("b", "backup", on_promote=["/bin/sleep", "60"], on_promote_timeout="10ms")
    is_announced(backup.start())
    live.kill()
    eventually(lambda: "on-promote refused" in backup.events())


def test_systemd_hears_of_it_when_it_is_live(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE_SECONDS)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        live = make("a").start()
        assert manager.recv(100) == b"READY=1\nSTATUS=live"
        backup = make("b", "backup").start()
        assert manager.recv(100) == b"READY=1\nSTATUS=passive"
        live.kill()
        backup.becomes("live")


# --- where the rings come from --------------------------------------------------------------------


def test_what_was_confirmed_is_there_after_the_machine_was_started_anew(
    make: Make, vhost: str
) -> None:
    live = make("a").start().becomes("live")
    put(vhost, *(b"%d" % number for number in range(100)))
    with shmbroker.connect(f"shm://{vhost}") as broker:
        assert broker.queue("orders").receive() == b"0"
    live.stop()
    vhosts.delete(vhost)
    live.start().becomes("live")
    assert bodies(vhost) == [b"%d" % number for number in range(1, 100)]
    with shmbroker.connect(f"shm://{vhost}") as broker, broker.queue("orders").get() as message:
        assert message.deliveries > 0, "it may have been delivered before"


def test_a_vhost_that_was_half_restored_is_restored_anew(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    live.stop()
    vhosts.delete(vhost)
    with (
        begin_restoring(vhost, name="dies", arena_bytes=1 << 20),
        pytest.raises(shmbroker.NotFound, match="is being restored"),
    ):
        shmbroker.connect(f"shm://{vhost}")
    live.start().becomes("live")
    assert bodies(vhost) == [b"1"]


def test_rings_that_are_somebody_elses_are_left_alone(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    live.stop()
    vhosts.delete(vhost)
    vhosts.create(vhost)
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("theirs").publish(b"precious")
    assert live.start().ends() == 1
    assert live.status.state == "failed"
    assert "shmbroker vhost delete" in live.status.why
    with shmbroker.connect(f"shm://{vhost}") as broker:
        assert broker.queue("theirs").receive() == b"precious"


def test_programs_hear_of_it_when_another_host_was_live_meanwhile(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    with shmbroker.connect(f"shm://{vhost}") as broker, ThreadPoolExecutor() as threads:
        waits = threads.submit(broker.declare_queue("asked").get, timeout=PATIENCE_SECONDS)
        live.kill()
        lock = live.lock()
        eventually(lock.try_live)
        lock.write(replace(lock.record(), rings=1))  # those of the other host
        lock.close()
        live.start().becomes("live")
        with pytest.raises(shmbroker.Moved):
            waits.result()
    assert bodies(vhost) == [b"1"]


def test_rings_that_were_there_before_the_store_become_durable(make: Make, vhost: str) -> None:
    vhosts.create(vhost)
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("orders", durable=True).publish(b"1", confirm="shm")
        make("a").start().becomes("live")
        broker.queue("orders").confirm(timeout=PATIENCE_SECONDS)


# --- who is live no more --------------------------------------------------------------------------


def test_a_live_that_was_replaced_unknowingly_confirms_nothing_more(
    make: Make, vhost: str, locked: Settings
) -> None:
    """As on NFS, when the server has given the lock to another host: the epoch tells.

    With a lease, when its database has forgotten what it knew.
    """
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    lock = FileLock(live.folder.parent / "store")
    lock.write(record.Record(epoch=2, state=record.LIVE))
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.queue("orders")
        with pytest.raises(shmbroker.Unconfirmed):
            queue.publish(b"2", timeout=0.2)
    assert live.ends() == 1
    why = "was live by epoch 2: it is another database" if locked else "another broker is live"
    assert why in live.status.why
    lock.close()


def test_stopping_writes_what_is_there(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.queue("orders")
        for number in range(500):
            queue.publish(b"%d" % number, confirm="shm")
        live.stop()
        assert queue.confirm(timeout=0) == "disk"


def test_who_waits_for_a_confirm_gets_it_from_the_next_live(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    live.stop()
    confirmed = threading.Event()

    def publish() -> None:
        put(vhost, b"2")
        confirmed.set()

    waiting = threading.Thread(target=publish)
    waiting.start()
    live.start().becomes("live")
    waiting.join(PATIENCE_SECONDS)
    assert confirmed.is_set()


def test_whoever_has_waited_for_a_state_finds_its_line_in_the_log(make: Make) -> None:
    run = make("a")
    instance = Instance(load(run.folder))
    seen: list[str] = []
    instance.sign.show = lambda status: seen.extend([status.state, run.events()[-1]])  # type: ignore[method-assign]
    instance._show()
    assert seen == ["starting", "starting"]
    instance.sign.close()


def test_the_status_of_one_that_never_ran(make: Make) -> None:
    run = make("a")
    assert status.read(run.folder).state == "not running"
    with pytest.raises(status.NotRunning):
        run.stop()


def test_a_queue_that_pages_goes_on_with_the_backup(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("bulk", slots=64, when_full="page")
        published = taken = 0

        def publish(count: int) -> None:
            nonlocal published
            for _ in range(count):
                queue.publish(published.to_bytes(4, "little"), timeout=PATIENCE_SECONDS)
                published += 1

        def take(count: int) -> None:
            nonlocal taken
            for _ in range(count):
                body = queue.receive(timeout=PATIENCE_SECONDS)
                assert body == taken.to_bytes(4, "little")
                taken += 1

        publish(10_000)
        take(1000)
        live.kill()
        publish(10_000)
        backup.becomes("live")
        take(5000)
        live.start().becomes("live")  # it asks for its role back
        is_announced(backup)
        publish(1000)
        take(published - taken)
        assert queue.statistics().depth == 0
        eventually(lambda: not list((live.folder.parent / "store").glob("pages/*/*")))


def test_whoever_is_live_writes_the_spool(make: Make, vhost: str, tmp_path: Path) -> None:
    spools = {name: tmp_path / f"{name}-spool" for name in ("a", "b")}
    settings: Settings = {"spool__interval": "50ms", "spool__parquet": False}
    live = make("a", spool__path=str(spools["a"]), **settings).start().becomes("live")
    backup = make("b", "backup", spool__path=str(spools["b"]), **settings).start()
    is_announced(backup)
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True)
        queue.latency(True)

        def use() -> None:
            queue.publish(b"order")
            queue.get(timeout=PATIENCE_SECONDS).ack()

        use()
        eventually(lambda: list(spools["a"].glob("*.part")))
        assert not spools["b"].exists()  # who is not live writes none
        live.kill()
        backup.becomes("live")
        use()
        eventually(lambda: list(spools["b"].glob("*.part")))
    assert backup.stop() == 0
    assert list(spools["b"].glob("*.hlog"))
    assert not list(spools["b"].glob("*.part"))


def test_a_spool_that_cannot_be_written_is_said_once(make: Make, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = str(tmp_path / "file" / "spool")
    live = make("a", spool__path=path, spool__interval="20ms").start().becomes("live")
    eventually(lambda: "spool is not written" in live.events())
    assert live.stop() == 0
    assert live.events().count("spool is not written") == 1


def test_a_queue_of_which_a_spool_reads_nothing_is_named_once(
    make: Make, vhost: str, tmp_path: Path
) -> None:
    live = make("a", spool__path=str(tmp_path / "spool"), spool__interval="20ms").start()
    live.becomes("live")
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders")
        queue.latency(True)
        [segment] = Path("/dev/shm").glob(f"shmbroker.{vhost}.latency-*")
        damaged = segment.with_name(f"{segment.name}.damaged")
        damaged.write_bytes(b"x" * 20_000)
        damaged.rename(segment)
        eventually(lambda: "spool lacks queues" in live.events())
        broker.delete_queue("orders", force=True)
        eventually(lambda: "spool lacks nothing" in live.events())
    assert live.stop() == 0
    [line] = [each for each in live.said() if each["event"] == "spool lacks queues"]
    assert line["why"].startswith("orders: ")
