"""A pair whose store is on a full disk: it waits and says so, and goes on when there is room."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import shmbroker
from shmbroker import Empty, NotFound, Queue, QueueFull, Unconfirmed
from shmbroker.ipc.base.errors import DiskFull
from shmbroker.ipc.instance import ordering, status
from shmbroker.ipc.instance.config.config import load
from shmbroker.ipc.instance.instance import Instance
from shmbroker.ipc.instance.whole import read_whole, write_text, write_whole
from tests.ipc.instance.conftest import Make
from tests.ipc.instance.test_pair import bodies, eventually, is_announced, put
from tests.support.compiler import compile_faults
from tests.support.runs import PATIENCE_SECONDS, Run, Settings
from tests.support.small_disk import empty, empty_names, fill, fill_names, small_disk

DISK = 7 << 20
BODY = bytes(8000)


@pytest.fixture
def locked() -> Settings:
    """What is tested here does not depend on the kind of lock."""
    return {}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """The store's; it has an end before those who write there are killed."""
    with small_disk(tmp_path / "store", DISK) as mounted:
        yield mounted


def is_full(run: Run) -> bool:
    return "disk full" in run.status.why


def has_no_room(queue: Queue, full: Callable[[], bool]) -> bool:
    """Why the last message is not confirmed; False: it was only late, and is confirmed by now."""
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends_at:
        with suppress(Unconfirmed):
            queue.confirm(timeout=0.02)
            return False
        if full():
            return True
    raise AssertionError("it is not confirmed, and the disk is not full")


def publish_until_full(vhost: str, full: Callable[[], bool]) -> int:
    """How many were confirmed; one more is in the ring."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("orders", durable=True)
        for number in range(1 << 14):
            try:
                queue.publish(b"%d" % number + BODY, timeout=0.5)
            except Unconfirmed:
                if has_no_room(queue, full):
                    return number
    raise AssertionError("it never became full")


def take_all(vhost: str) -> int:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue, count = broker.queue("orders"), 0
        while True:
            try:
                count += bool(queue.receive(timeout=1.0))
            except Empty:
                return count


def publish_numbers(queue: Queue, end: int) -> None:
    for number in range(end):
        queue.publish(number.to_bytes(4, "little"), timeout=PATIENCE_SECONDS)


def take_numbers(queue: Queue, first: int, end: int) -> None:
    for number in range(first, end):
        assert queue.receive(timeout=PATIENCE_SECONDS) == number.to_bytes(4, "little")


def test_a_start_waits_for_room(disk: Path, make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    live.kill()
    fill(disk)
    for spare in (disk / "journal").glob("*.spare"):
        spare.unlink()  # the room that was kept for this moment is gone as well
    fill(disk)
    live.start()
    eventually(lambda: is_full(live))
    assert "disk full" in live.events()
    assert "waits for room on the disk" in live.errors()
    with shmbroker.connect(f"shm://{vhost}") as broker, pytest.raises(Unconfirmed):
        broker.queue("orders").publish(b"2", timeout=0.2)
    empty(disk)
    put(vhost, b"3")
    eventually(lambda: not is_full(live))
    assert "disk has room" in live.events()
    assert bodies(vhost) == [b"1", b"2", b"3"]
    assert live.stop() == 0


def test_who_waits_for_room_can_be_stopped(disk: Path, make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    live.kill()
    fill(disk)
    for spare in (disk / "journal").glob("*.spare"):
        spare.unlink()
    fill(disk)
    live.start()
    eventually(lambda: is_full(live))
    assert live.stop() == 0


def test_whoever_starts_on_a_full_disk_has_the_room_that_was_kept(
    disk: Path, make: Make, vhost: str
) -> None:
    """The disk is full of the journal: a killed live starts again, and consuming makes room."""
    live = make("a").start().becomes("live")
    confirmed = publish_until_full(vhost, lambda: is_full(live))
    live.kill()
    live.start().becomes("live")
    assert take_all(vhost) >= confirmed
    put(vhost, b"on it goes")
    assert take_all(vhost) == 1
    assert live.stop() == 0


@pytest.mark.parametrize("starts", ["the same", "the backup"])
def test_what_is_in_pages_can_be_consumed_after_a_kill_on_a_full_disk(
    tmp_path: Path, make: Make, vhost: str, starts: str
) -> None:
    with small_disk(tmp_path / "store", 4 * DISK) as disk:
        live = make("a").start().becomes("live")
        if starts == "the backup":
            backup = is_announced(make("b", "backup").start())
        with shmbroker.connect(f"shm://{vhost}") as broker:
            queue = broker.declare_queue("orders", durable=True, slots=64, when_full="page")
            plain = broker.declare_queue("plain", durable=True)
            published = 0
            with pytest.raises((QueueFull, DiskFull, Unconfirmed)):
                while True:
                    queue.publish(published.to_bytes(4, "little") + BODY, timeout=0.5)
                    published += 1
            assert queue.statistics().paged > 0
            live.kill()
            fill(disk)
            if starts == "the same":
                live.start().becomes("live")
            else:
                backup.becomes("live")
            with suppress(Unconfirmed):
                plain.publish(b"later", timeout=0.5)
            for number in range(published):
                body = queue.receive(timeout=PATIENCE_SECONDS)
                assert int.from_bytes(body[:4], "little") == number
            plain.confirm(timeout=PATIENCE_SECONDS)
        survivor = live if starts == "the same" else backup
        eventually(lambda: not is_full(survivor))
        assert survivor.stop() == 0


def test_a_full_disk_ends_nobody(disk: Path, make: Make, vhost: str) -> None:
    """Nor while live and backup replace each other; when there is room all is as it should be."""
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    confirmed = publish_until_full(vhost, lambda: is_full(live))
    fill(disk)
    live.kill()
    backup.becomes("live")
    live.start()
    is_announced(live)
    eventually(lambda: is_full(live))
    assert "asked for the role back" not in live.events(), "it could not write as the live"
    assert backup.status.state == "live"
    assert take_all(vhost) >= confirmed
    empty(disk)
    live.becomes("live")
    backup.becomes("passive")
    put(vhost, b"again")
    assert take_all(vhost) == 1
    assert "failed" not in live.events() + backup.events()
    assert live.stop() == 0
    assert backup.stop() == 0


def test_a_start_waits_for_a_file_that_cannot_be_made(
    tmp_path: Path, make: Make, vhost: str
) -> None:
    """The disk has room, and no more names."""
    with small_disk(tmp_path / "store", DISK, names=40) as disk:
        live = make("a")
        fill_names(disk)
        live.start()
        eventually(lambda: is_full(live))
        assert live.status.state == "starting"
        assert "waits for room on the disk" in live.errors()
        for number in (signal.SIGHUP, ordering.SIGNAL):  # as of a reload, and of `metrics`
            assert not status.signalled(live.folder, number, 0)
        empty_names(disk)
        live.becomes("live")
        put(vhost, b"1")
        assert live.events()[:2] == ["disk full", "disk has room"]
        assert live.stop() == 0


def test_a_queue_that_pages_waits_for_a_file_that_cannot_be_made(
    tmp_path: Path, make: Make, vhost: str
) -> None:
    """The queue and all others are consumed meanwhile."""
    with small_disk(tmp_path / "store", 4 * DISK, names=40) as disk:
        live = make("a").start().becomes("live")
        with shmbroker.connect(f"shm://{vhost}") as broker:
            other = broker.declare_queue("other", slots=64, when_full="page")
            queue = broker.declare_queue("orders", slots=64, when_full="page")
            publish_numbers(other, 500)
            eventually(lambda: other.statistics().paged_bytes > 0)
            fill_names(disk)
            with pytest.raises(DiskFull):
                publish_numbers(queue, 10_000)
            eventually(lambda: is_full(live))
            take_numbers(other, 0, 500)
            seen = queue.statistics()
            take_numbers(queue, 0, seen.depth // 2)
            empty_names(disk)
            eventually(lambda: not is_full(live))
            take_numbers(queue, seen.depth // 2, seen.depth)
        assert live.stop() == 0


def test_a_limit_of_the_size_of_files_is_waited_for(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    assert live.process is not None
    _, most = before = resource.prlimit(live.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(live.process.pid, resource.RLIMIT_FSIZE, (500_000, most))
    confirmed = publish_until_full(vhost, lambda: "File too large" in live.status.why)
    resource.prlimit(live.process.pid, resource.RLIMIT_FSIZE, before)
    put(vhost, b"1")
    assert take_all(vhost) == confirmed + 2
    eventually(lambda: not is_full(live))
    assert live.stop() == 0


# --- other files ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_faults(tmp_path_factory.mktemp("faults"))


class Faulty:
    """An instance as a program of its own, under calls that fail as long as a list says so."""

    def __init__(self, run: Run, library: Path, error: int) -> None:
        self.run, self.error = run, error
        self.list = run.folder / "faults"
        self.library = library
        self.process: subprocess.Popen[bytes] | None = None

    def fail(self, *paths: Path | str) -> None:
        whole = self.list.with_suffix(".new")
        whole.write_text("".join(f"{path} {self.error}\n" for path in paths))
        whole.rename(self.list)

    def start(self) -> None:
        environment = os.environ | {"LD_PRELOAD": str(self.library), "FAULTS": str(self.list)}
        program = "import sys; from shmbroker.cli.main import main; sys.exit(main())"
        with (self.run.folder / "errors").open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program, "run", str(self.run.folder)],
                env=environment,
                stderr=errors,
            )

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def is_there(vhost: str) -> bool:
    """Whatever the broker says of itself."""
    try:
        shmbroker.connect(f"shm://{vhost}", observe=True).close()
    except NotFound:
        return False
    return True


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO], ids=errno.errorcode.get)
def test_what_is_only_said_ends_nobody(make: Make, vhost: str, faults: Path, error: int) -> None:
    """Status, log, beat, the note about the rings, the spool: written when that works again."""
    run = make("a", spool__path="spool", spool__interval="100ms")
    faulty = Faulty(run, faults, error)
    said = [run.folder / name for name in ("run/.status", "run/status", "run/.rings", "run/rings")]
    said += [run.folder / name for name in ("log", "spool", "errors")]
    faulty.fail(*said, f"shmbroker.{vhost}.beat")
    (run.folder / "log" / "shmbroker.log").touch()
    faulty.start()
    try:
        eventually(lambda: is_there(vhost))
        put(vhost, b"1")
        assert not (run.folder / "run" / "rings").exists()
        assert run.said() == []
        faulty.fail()
        assert status.wait_for(run.folder, "live", PATIENCE_SECONDS)
        eventually((run.folder / "run" / "rings").exists)
        eventually(lambda: list((run.folder / "spool").glob("*")))
        assert faulty.stop() == 0
    finally:
        faulty.kill()
    assert "stopped" in run.events()
    assert "lines left out" in run.events()
    assert bodies(vhost) == [b"1"]


@pytest.mark.parametrize("is_still_full", [False, True])
def test_what_is_retried_is_the_newest(make: Make, tmp_path: Path, is_still_full: bool) -> None:
    """Whether that was written meanwhile, or could not be either."""
    instance = Instance(load(make("a").folder))
    place = tmp_path / "small"
    place.mkdir()  # no file can be put there
    instance._written(place, partial(write_text, place, "older"))
    if not is_still_full:
        place.rmdir()
    instance._written(place, partial(write_text, place, "newer"))
    if is_still_full:
        place.rmdir()
    retry = instance.inbox.get(timeout=PATIENCE_SECONDS)
    retry()
    assert place.read_text() == "newer"
    assert not instance.unwritten
    instance.sign.close()


class Ordered:
    """The network of an instance that carries out what it is told."""

    def order(self, given: Mapping[str, object]) -> str:
        if given["verb"] == "fails":
            raise OSError(errno.EIO, "Input/output error")
        return ""


@pytest.mark.parametrize("verb", ["works", "fails"])
def test_an_order_is_answered_by_the_thread_that_writes_again(make: Make, verb: str) -> None:
    """So what is written there again later is not the answer of an order before."""
    instance = Instance(load(make("a").folder))
    folder = instance.config.folder
    instance.network = cast(Any, Ordered())
    write_whole(folder / "run" / ordering.ORDER, {"id": "1", "verb": verb})
    instance._asked_to()
    instance.inbox.get(timeout=PATIENCE_SECONDS)()
    event = instance.inbox.get(timeout=PATIENCE_SECONDS)
    assert not (folder / "run" / ordering.ANSWER).exists(), "nobody else writes it"
    event()
    answer = read_whole(folder / "run" / ordering.ANSWER)
    assert (answer["id"], "why" in answer) == ("1", verb == "fails")
    instance.sign.close()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT], ids=errno.errorcode.get)
def test_a_record_that_has_no_room_is_waited_for(
    make: Make, vhost: str, faults: Path, error: int, tmp_path: Path
) -> None:
    """On a file system that writes each change elsewhere, or has a quota."""
    run = make("a")
    faulty = Faulty(run, faults, error)
    faulty.fail(tmp_path / "store" / "live.lock", run.folder / "errors")
    faulty.start()
    try:
        eventually(lambda: is_full(run))
        assert run.status.state == "restoring"
        faulty.fail()
        run.becomes("live")
        put(vhost, b"1")
        faulty.fail(tmp_path / "store" / "live.lock")
        assert faulty.stop() == 0  # nobody is told that it was, and a backup would take over
        assert "nobody is told" in [line for line in run.said() if "why" in line][-1]["why"]
    finally:
        faulty.kill()
