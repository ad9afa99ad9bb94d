"""The spool: what was recorded is in its files, once, whoever is killed while writing them."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given
from hypothesis import strategies as st

import shmbroker
from shmbroker import Spool
from shmbroker.ipc._native import ffi
from shmbroker.ipc.latency.latency import Counts, Histogram, Range
from shmbroker.ipc.spool import hlog
from shmbroker.ipc.spool import parquet as parquets
from shmbroker.ipc.spool.spool import counted
from tests.support.killed import KILLS, victims

BETWEEN_CLOCKS = 100_000_000
"""Nanoseconds: another process may run between two readings."""


@pytest.fixture
def queue(vhost: str) -> Iterator[shmbroker.Queue]:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        made = broker.declare_queue("orders")
        made.latency(True)
        yield made


def use(queue: shmbroker.Queue, times: int) -> None:
    for _ in range(times):
        queue.publish(b"x")
        queue.get().ack()


def rows(folder: Path) -> list[hlog.Interval]:
    found: list[hlog.Interval] = []
    for path in sorted(folder.glob("*.hlog")):
        with path.open() as lines:
            found += [each for each in hlog.read(lines) if isinstance(each, hlog.Interval)]
    return found


@contextmanager
def without_files() -> Iterator[None]:
    """No file can be opened: histograms are not read."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def total(folder: Path, kind: str = "publish-take") -> int:
    return sum(each.histogram.total for each in rows(folder) if each.kind == kind)


# --- the format -----------------------------------------------------------------------------------


@given(
    st.sampled_from((Range(1, 3_600_000_000_000, 2), Range(1, 10**10, 3), Range(1000, 10**8, 2))),
    st.lists(st.tuples(st.integers(0, 10**8), st.integers(1, 1 << 40)), max_size=60),
)
def test_hdrhistogram_reads_ours_and_we_read_its(
    range_: Range, recorded: list[tuple[int, int]]
) -> None:
    theirs = HdrHistogram(range_.lowest, range_.highest, range_.digits)
    for value, count in recorded:
        theirs.record_value(value, count)
    ours = hlog.decode(theirs.encode().decode())
    assert ours.range == range_
    assert ours.total == theirs.total_count
    for index, count in zip(ours.indexes, ours.counts, strict=True):
        assert theirs.get_count_at_index(index) == count
    back = HdrHistogram.decode(hlog.encode(ours))
    assert back.get_total_count() == theirs.get_total_count()
    for index in range(theirs.counts_len):
        assert back.get_count_at_index(index) == theirs.get_count_at_index(index)
    for percent in (0, 25, 50, 90, 99, 99.9, 99.99, 100):
        if percent and recorded:
            assert ours.percentile(percent) == theirs.get_value_at_percentile(percent)


@given(st.binary(max_size=200))
def test_no_bytes_are_taken_for_a_histogram_by_mistake(noise: bytes) -> None:
    import base64
    import zlib

    for content in (noise, zlib.compress(noise), hlog.ENVELOPE.pack(hlog.COMPRESSED_COOKIE, 3)):
        with pytest.raises(shmbroker.Damaged):
            hlog.decode(base64.b64encode(content).decode())
    header = hlog.HEADER.pack(hlog.COOKIE, len(noise), 0, 2, 1, 10**6, 1.0)
    packed = zlib.compress(header + noise)
    text = base64.b64encode(hlog.ENVELOPE.pack(hlog.COMPRESSED_COOKIE, len(packed)) + packed)
    with suppress(shmbroker.Damaged):
        decoded = hlog.decode(text.decode())
        assert decoded.total >= 0


def test_a_bomb_is_not_unpacked() -> None:
    import base64
    import zlib

    packed = zlib.compress(bytes(1 << 26))
    text = base64.b64encode(hlog.ENVELOPE.pack(hlog.COMPRESSED_COOKIE, len(packed)) + packed)
    with pytest.raises(shmbroker.Damaged):
        hlog.decode(text.decode())


@given(st.text(max_size=30))
def test_any_name_of_a_queue_comes_back(name: str) -> None:
    from array import array

    with suppress(UnicodeEncodeError):
        name.encode()
        histogram = Histogram(Range(1, 1000, 2), array("q", [5]), array("q", [2]), 3)
        interval = hlog.Interval(name, "take-ack", 5, 10**18, histogram)
        text = hlog.head(1, name, "v", "b") + hlog.line(interval)
        found = list(hlog.read(text.splitlines(keepends=True)))
        assert found == [hlog.Origin(name, "v", "b"), interval]


def test_the_log_is_one_that_hdrhistogram_reads(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    with Spool(url, tmp_path, host="here") as spool:
        for times in (3, 4):
            use(queue, times)
            assert spool.write().intervals == 2
    (log,) = tmp_path.glob("*.hlog")
    reader = HistogramLogReader(str(log), HdrHistogram(1, 1 << 40, 2))
    found = list(iter(reader.get_next_interval_histogram, None))
    assert [each.get_tag() for each in found] == ["orders;publish-take", "orders;take-ack"] * 2
    assert [each.get_total_count() for each in found] == [3, 3, 4, 4]
    ends = [each.get_end_time_stamp() / 1000 for each in found]
    assert all(abs(end - time.time()) < 60 for end in ends)
    for theirs, ours in zip(found, rows(tmp_path), strict=True):
        assert theirs.get_max_value() == ours.histogram.maximum


def test_parquet_has_the_same_rows(queue: shmbroker.Queue, url: str, tmp_path: Path) -> None:
    queue.latency(True, highest=1e-3, digits=3)
    with Spool(url, tmp_path, host="here", parquet=True) as spool:
        use(queue, 3)
        queue.publish(b"x")
        message = queue.get()
        time.sleep(0.002)
        message.ack()
        spool.write()
        use(queue, 2)
    (log,) = tmp_path.glob("*.hlog")
    (table,) = tmp_path.glob("*.parquet")
    assert table.stem == log.stem
    file = pq.ParquetFile(table)
    assert file.schema_arrow.metadata[b"shmbroker.spool.version"] == b"1"
    assert file.schema_arrow.remove_metadata().equals(parquets.SCHEMA.remove_metadata())
    intervals = rows(tmp_path)
    origin = hlog.Origin("here", spool.origin.vhost, spool.origin.build)
    assert file.read().to_pylist() == [parquets.row(origin, each) for each in intervals]
    assert intervals[1].histogram.overflow >= 1
    sizes = [each.histogram.total + each.histogram.overflow for each in intervals]
    assert sizes == [4, 4, 2, 2]


# --- intervals ------------------------------------------------------------------------------------


def test_an_interval_has_what_was_counted_in_it(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    use(queue, 5)  # before there was a spool
    with Spool(url, tmp_path, parquet=False) as spool:
        assert spool.write().intervals == 0
        use(queue, 3)
        spool.write()
        queue.latency(True, digits=3)  # begins anew
        use(queue, 2)
        spool.write()
    found = [each for each in rows(tmp_path) if each.kind == "take-ack"]
    assert [each.histogram.total for each in found] == [3, 2]
    assert [each.histogram.range.digits for each in found] == [2, 3]
    for before, after in pairwise(found):
        assert before.start < before.end
        assert abs(after.start - before.end) < BETWEEN_CLOCKS


def test_queues_come_and_go(queue: shmbroker.Queue, url: str, tmp_path: Path) -> None:
    broker = queue._broker
    with Spool(url, tmp_path, parquet=False) as spool:
        for number in range(3):
            made = broker.declare_queue("later")
            made.latency(True)
            use(made, number + 1)
            spool.write()
            broker.delete_queue("later")
        spool.write()
    found = [each for each in rows(tmp_path) if each.kind == "take-ack"]
    assert [(each.queue, each.histogram.total) for each in found] == [
        ("later", 1), ("later", 2), ("later", 3),
    ]  # fmt: skip


def test_a_queue_that_could_not_be_read_once_is_in_the_next_interval(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    with Spool(url, tmp_path, parquet=False) as spool:
        use(queue, 1)
        spool.write()
        use(queue, 2)
        with without_files():
            spooled = spool.write()
        assert spooled.intervals == 0
        assert [each.partition(": ")[0] for each in spooled.unread] == ["orders"]
        use(queue, 4)
    found = [each for each in rows(tmp_path) if each.kind == "take-ack"]
    assert [each.histogram.total for each in found] == [1, 6]


def test_what_was_counted_before_is_in_no_interval_if_it_could_not_be_read_then(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    use(queue, 1)
    with without_files():
        since = counted(queue._broker)
    with Spool(url, tmp_path, parquet=False, since=since) as spool:
        use(queue, 2)
        assert spool.write().intervals == 0
        use(queue, 4)
    assert total(tmp_path) == 4


@pytest.mark.parametrize(("failing", "found"), [(1, [3, 4, 5]), (2, [5, 4, 5])])
def test_links_that_could_not_be_read_once_are_in_the_next_interval(
    url: str, tmp_path: Path, failing: int, found: list[int]
) -> None:
    """In no interval, if that was when the spool began."""
    range_ = Range(1, 1000, 2)
    values = ffi.new("int64_t[]", range_.length + 1)
    looks = 0

    def more() -> dict[str, dict[str, Counts]]:
        nonlocal looks
        looks += 1
        values[5] += looks
        if looks == failing:
            raise shmbroker.SystemRefused("too many open files")
        now = ffi.new("int64_t[]", list(values))
        return {"link": {"append-confirm": Counts(range_, 1, now)}}

    with Spool(url, tmp_path, parquet=False, more=more) as spool:
        for _ in range(3):
            spool.write()
    assert [each.histogram.total for each in rows(tmp_path)] == found


def test_tick_writes_when_an_interval_is_over(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    with Spool(url, tmp_path, interval=0.05, parquet=False) as spool:
        use(queue, 1)
        left = spool.tick()
        assert 0 <= left <= 0.05
        while total(tmp_path) == 0 and not list(tmp_path.glob("*.part")):
            time.sleep(spool.tick())
    assert total(tmp_path) == 1


def test_the_clock_may_be_set_back(
    queue: shmbroker.Queue, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Spool(url, tmp_path, parquet=False) as spool:
        for now in (10**18, 10**18 - 10**15):
            use(queue, 1)
            monkeypatch.setattr("shmbroker.ipc.spool.spool.time_ns", lambda now=now: now)
            spool.write()
    for each in rows(tmp_path):
        assert 0 <= each.end - each.start < 60e9


# --- files ----------------------------------------------------------------------------------------


def test_files_rotate_by_size_and_time_and_the_oldest_go(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    keep = 4000
    with Spool(url, tmp_path, rotate_bytes=500, keep_bytes=keep, parquet=False) as spool:
        for _ in range(40):
            use(queue, 1)
            spool.write()
            files = list(tmp_path.glob("*.hlog"))
            assert sum(path.stat().st_size for path in files) <= keep
    assert 2 < len(files) < 20
    found = [each.start for each in rows(tmp_path)]
    assert found == sorted(found)  # what is left is the newest
    with Spool(url, tmp_path, rotate=1e-9, parquet=False) as spool:
        use(queue, 1)
        spool.write()
        assert not list(tmp_path.glob("*.part"))


def test_one_spool_writes_at_a_time(queue: shmbroker.Queue, url: str, tmp_path: Path) -> None:
    with Spool(url, tmp_path, parquet=False):
        with pytest.raises(shmbroker.InUse, match="one is enough"):
            Spool(url, tmp_path, parquet=False)
        with Spool(url, tmp_path, parquet=False, host="elsewhere"):
            pass
    Spool(url, tmp_path, parquet=False).close()


def test_what_was_cut_off_goes_and_what_is_whole_stays(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    with Spool(url, tmp_path, parquet=False) as spool:
        for _ in range(2):
            use(queue, 1)
            spool.write()
    (log,) = tmp_path.glob("*.hlog")
    content = log.read_bytes()
    log.unlink()
    last = content.rstrip(b"\n").rfind(b"\n") + 1
    for cut in (0, 10, last - 200, last + 1, len(content) - 1):
        part = tmp_path / f"{log.name}.part"
        part.write_bytes(content[:cut])
        Spool(url, tmp_path, parquet=True).close()
        assert not part.exists()
        whole = content[: content.rfind(b"\n", 0, cut) + 1]
        assert len(rows(tmp_path)) == whole.count(b"\nTag=")
        assert len(list(tmp_path.glob("*.parquet"))) == len(list(tmp_path.glob("*.hlog")))
        for path in (*tmp_path.glob("*.hlog"), *tmp_path.glob("*.parquet")):
            path.unlink()


def test_a_log_that_somebody_changed_is_put_aside(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    with Spool(url, tmp_path, parquet=False):
        use(queue, 1)
    (log,) = tmp_path.glob("*.hlog")
    log.write_bytes(log.read_bytes().replace(b"Tag=", b"Tug="))
    Spool(url, tmp_path, parquet=True).close()
    assert not list(tmp_path.glob("*.hlog"))
    (reason,) = tmp_path.glob("*.reason")
    assert "line 5" in reason.read_text()
    assert (tmp_path / f"{log.name}.bad").exists()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small one."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(tmp_path)], check=True)
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def fill(disk: Path, left: int = 0) -> None:
    """But for so many pages."""
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        with suppress(OSError):
            while True:
                ballast.write(bytes(4096))
        ballast.truncate(ballast.tell() - left * 4096)


def test_a_disk_without_room_for_parquet_is_an_error_of_ours(
    queue: shmbroker.Queue, url: str, disk: Path
) -> None:
    spool = Spool(url, disk, interval=3600, parquet=True)
    use(queue, 10)
    spool.write()
    fill(disk)
    with pytest.raises(shmbroker.SystemRefused, match=r"cannot be written.*No space left"):
        spool.close()
    assert not list(disk.glob("*.part"))
    Spool(url, disk, interval=3600, parquet=True).close()
    assert not list(disk.glob("*.parquet*"))
    (disk / "ballast").unlink()
    Spool(url, disk, interval=3600, parquet=True).close()
    assert len(list(disk.glob("*.parquet"))) == 1


def test_the_oldest_go_also_if_there_is_no_room_for_parquet(
    queue: shmbroker.Queue, url: str, disk: Path
) -> None:
    with Spool(url, disk, parquet=False) as spool:
        for _ in range(3):
            use(queue, 1)
            spool.write()
            spool.rotate()
    *_, newest = logs = sorted(disk.glob("*.hlog"))
    keep = newest.stat().st_size * 3 // 2
    fill(disk)
    Spool(url, disk, parquet=True, keep_bytes=keep).close()
    assert not [path for path in logs[:-1] if path.exists()]
    fill(disk, left=2)  # for a log and one more; a table is larger than a page
    spool = Spool(url, disk, rotate_bytes=1, keep_bytes=keep, parquet=True)
    for _ in range(3):
        use(queue, 1)
        with pytest.raises(shmbroker.SystemRefused, match="No space left"):
            spool.write()
        (log,) = disk.glob("*.hlog")
        assert log > newest
        newest = log
    spool.close()


def test_a_full_disk_delays_an_interval(
    queue: shmbroker.Queue, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    with Spool(url, tmp_path, parquet=False) as spool:
        for broken in (False, True, True, False):
            use(queue, 1)
            with monkeypatch.context() as patched:
                if broken:
                    patched.setattr(os, "fdatasync", full)
                    with pytest.raises(shmbroker.SystemRefused, match="No space"):
                        spool.write()
                else:
                    spool.write()
    found = [each for each in rows(tmp_path) if each.kind == "take-ack"]
    assert [each.histogram.total for each in found] == [1, 3]
    assert found[1].start <= found[0].end + 1000


def test_a_folder_that_is_removed_is_made_again_and_no_interval_is_missed(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "spool"
    with Spool(url, folder, parquet=False) as spool:
        use(queue, 1)
        spool.write()
        shutil.rmtree(folder)
        use(queue, 2)
        with pytest.raises(shmbroker.SystemRefused, match="cannot be written"):
            spool.write()
        use(queue, 4)
        spool.write()
        with pytest.raises(shmbroker.InUse):
            Spool(url, folder, parquet=False)
    assert total(folder) == 6


def test_a_lock_that_another_one_has_made_again_is_its_own(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    with Spool(url, tmp_path, parquet=False) as spool:
        (lock,) = tmp_path.iterdir()
        lock.unlink()
        use(queue, 1)
        with Spool(url, tmp_path, parquet=False), pytest.raises(shmbroker.InUse):
            spool.write()
        use(queue, 2)
    assert total(tmp_path) == 3


def test_a_folder_that_cannot_be_written(url: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(shmbroker.SystemRefused, match="cannot be written"):
        Spool(url, file / "spool")


@pytest.mark.parametrize(
    "asked", [{"interval": 0}, {"rotate": -1}, {"rotate_bytes": 0}, {"keep_bytes": 0}]
)
def test_bad_settings(url: str, tmp_path: Path, asked: dict[str, int]) -> None:
    with pytest.raises(shmbroker.InvalidArgument):
        Spool(url, tmp_path, **asked)  # type: ignore[arg-type]


def test_histograms_that_are_damaged_are_named_and_do_not_stop_the_others(
    queue: shmbroker.Queue, url: str, vhost: str, tmp_path: Path
) -> None:
    bad = queue._broker.declare_queue("bad")
    bad.latency(True)
    segment = max(Path("/dev/shm").glob(f"shmbroker.{vhost}.latency-1-*"))
    with Spool(url, tmp_path, parquet=False) as spool:
        segment.write_bytes(b"x" * 20_000)
        use(queue, 1)
        spooled = spool.write()
        assert spooled.intervals == 2
        (unread,) = spooled.unread
        assert unread.startswith("bad: ")


# --- killed ---------------------------------------------------------------------------------------


def test_killed_while_writing(queue: shmbroker.Queue, url: str, tmp_path: Path) -> None:
    """All files are whole, and nothing is in two of them; what the dead had not written is lost."""
    folder = tmp_path / "spool"
    spools: list[Spool] = []  # of the victim that we are, after the fork

    def work(broker: shmbroker.Broker) -> None:
        if not spools:
            spools.append(Spool(url, folder, rotate_bytes=2000, parquet=False))
        use(broker.queue("orders"), 1)
        spools[0].write()

    seed = random.randrange(1 << 30)
    for number, _ in victims(url, tmp_path, work, seed):
        if number % 10 == 0:  # else the next victim does
            Spool(url, folder, parquet=False).close()
            assert not list(folder.glob("*.part"))
    Spool(url, folder, parquet=False).close()
    assert not list(folder.glob("*.part"))
    used = queue.statistics().acked
    assert used - 2 * KILLS <= total(folder) <= used, seed
    starts = [(each.start, each.kind) for each in rows(folder)]
    assert len(set(starts)) == len(starts), seed
