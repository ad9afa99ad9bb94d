"""Logs: theirs are read by us, ours by them; damage costs what is damaged, and is told."""

from __future__ import annotations

import random
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader, HistogramLogWriter
from hypothesis import given, settings
from hypothesis import strategies as st

from shmbroker.perf.spark import hlog, lines
from shmbroker.perf.spark._native import lib
from shmbroker.perf.spark.counts import FOREIGN, unpacked
from shmbroker.perf.spark.encoding import encoded, varint
from shmbroker.perf.spark.fleet import Fleet, write_hlog
from shmbroker.perf.spark.geometry import Geometry
from shmbroker.perf.spark.hlog import INNER, OUTER, V2, V2_COMPRESSED
from shmbroker.perf.spark.interval import MESSAGES_MAX, PROBLEMS_MAX
from shmbroker.perf.spark.journal import Journal
from shmbroker.perf.spark.lines import Lines
from tests.perf.spark.histograms import Recorded, recorded, sparse_of
from tests.perf.spark.reading import rows_of, sparse

SMALL = Geometry(1, 10**9, 2)
OURS = (
    "#[shmbroker spool 1 host=a%20b vhost=v build=1.2]\n"
    "#[StartTime: 1000.000 (seconds since epoch)]\n"
)


def payload(values: dict[int, int], geometry: Geometry = SMALL) -> str:
    found = Recorded(geometry, values).sparse
    return encoded(geometry, np.array([*found]), np.array([*found.values()]))


def told(raw: bytes) -> str:
    """A line with that as its histogram."""
    return "Tag=q;k,1000.0,1.0,0," + b64encode(raw).decode()


def of(geometry: Geometry, index: int) -> str:
    return "Tag=q;k,1000.0,1.0,0," + encoded(geometry, np.array([index]), np.array([1]))


def line(tag: str, start: float, length: float, values: dict[int, int]) -> str:
    return f"Tag={tag},{start:.3f},{length:.3f},0.0,{payload(values)}\n"


def written(folder: Path, text: str | bytes, name: str = "some-host.hlog") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@given(st.lists(recorded(), min_size=1, max_size=5))
def test_what_hdrhistogram_encodes_is_decoded(histograms: list[Recorded]) -> None:
    payloads = [hlog.inflated(hlog.deflated(one.theirs.encode())) for one in histograms]
    found = unpacked(payloads)
    assert not found.faults.any()
    for row, one in enumerate(histograms):
        geometry = Geometry(*(int(of[row]) for of in (found.lowest, found.highest, found.digits)))
        assert geometry == one.geometry
        mine = slice(found.ends[row], found.ends[row + 1])
        buckets = dict(zip(found.indexes[mine], found.counts[mine], strict=True))
        assert buckets == sparse_of(one.theirs)


@given(recorded())
def test_what_we_encode_is_decoded_by_hdrhistogram(one: Recorded) -> None:
    theirs = HdrHistogram.decode(payload(one.values, one.geometry))
    assert sparse_of(theirs) == one.sparse


@pytest.mark.parametrize("start", [0.5, 1_700_000_000.25])
def test_their_log_is_read(tmp_path: Path, start: float) -> None:
    path = tmp_path / "server-7.hlog"
    with path.open("w") as stream:
        writer = HistogramLogWriter(stream)
        writer.output_log_format_version()
        stream.write("#[StartTime: 1700000000.000 (seconds since epoch), 2023-11-14]\n")
        writer.output_legend()
        histogram = HdrHistogram(1, 10**9, 3)
        histogram.record_value(1234, 5)
        writer.output_interval_histogram(histogram, start, start + 2.0)
    found = rows_of(path)
    assert not found["problem"]
    [row] = found["interval"]
    assert row["start"] == 1_700_000_000_000_000_000 + (
        500_000_000 if start == 0.5 else 250_000_000
    )
    assert row["end"] - row["start"] == 2 * 10**9
    assert (row["host"], row["queue"], row["kind"], row["total"]) == ("server-7", "", "", 5)
    assert sparse(row) == sparse_of(histogram)


def test_our_log_is_read_by_them(tmp_path: Path) -> None:
    fleet = Fleet(hosts=1, queues=2, intervals=3)
    write_hlog(fleet, tmp_path)
    [path] = tmp_path.iterdir()
    reader = HistogramLogReader(str(path), HdrHistogram(1, 10**9, 2))
    mine = rows_of(path)["interval"]
    for row in mine:
        theirs = reader.get_next_interval_histogram()
        assert sparse_of(theirs) == sparse(row)
        assert theirs.get_tag() == f"{row['queue']};{row['kind']}"
        assert theirs.get_start_time_stamp() * 1e6 == row["start"]
    assert reader.get_next_interval_histogram() is None
    assert len(mine) == fleet.rows


def test_names_are_as_they_were(tmp_path: Path) -> None:
    text = OURS + line("a%2Cb%3B%20%25;take-ack", 1000, 10, {5: 1})
    [row] = rows_of(written(tmp_path, text))["interval"]
    names = [row[name] for name in ("host", "vhost", "queue", "kind", "build")]
    assert names == ["a b", "v", "a,b; %", "take-ack", "1.2"]


def test_values_above_the_highest_belong_to_the_next_interval_of_the_tag(tmp_path: Path) -> None:
    text = OURS + "#[overflow Tag=b;k count=7]\n"
    text += (
        line("a;k", 1000, 10, {5: 1})
        + line("b;k", 1000, 10, {5: 1})
        + line("b;k", 1010, 10, {5: 1})
    )
    found = rows_of(written(tmp_path, text + "#[overflow Tag=c;k count=9]\n"))
    assert [row["overflow"] for row in found["interval"]] == [0, 7, 0]
    assert [row["total"] for row in found["problem"]] == [9]
    assert found["file"][0]["overflow"] == 7


@pytest.mark.parametrize(
    ("comment", "what"),
    [
        ("#[StartTime: 123456789012 (seconds since epoch)]", "no time in seconds"),
        (f"#[overflow Tag=q;k count={'9' * 5000}]", "more values above the highest"),
        (f"#[overflow Tag=q count={'9' * 19}]", "of no interval: q"),
    ],
)
def test_a_comment_that_cannot_be_is_told_of(tmp_path: Path, comment: str, what: str) -> None:
    found = rows_of(written(tmp_path, f"{OURS}{comment}\n{line('q;k', 1000, 10, {5: 1})}"))
    assert [row["total"] for row in found["interval"]] == [1]
    [problem] = found["problem"]
    assert what in problem["problem"]


MANY = {n: n + 1 for n in range(500)}
BAD_LINES = {
    "no comma": ("what is this", "neither a comment nor"),
    "no time": (f"Tag=q;k,x,10.000,0,{payload({1: 1})}", "no time in seconds"),
    "before 1970": (f"Tag=q;k,-5.0,10.000,0,{payload({1: 1})}", "no time in seconds"),
    "after 2262": (f"Tag=q;k,99999999999,1,0,{payload({1: 1})}", "after the year 2262"),
    "no base64": ("Tag=q;k,1000.0,1.0,0,H?STFAAA", "no interval"),
    "truncated": (f"Tag=q;k,1000.0,1.0,0,{payload(MANY)[:-40]}", "truncated"),
    "nothing": ("Tag=q;k,1000.0,1.0,0,", "truncated"),
    "other order": (told(b"\x14\x93\x84\x1c" + bytes(8)), "wrong order"),
    "V1": (told(b"\x1c\x84\x93\x02" + bytes(8)), "V1"),
    "no histogram": (told(bytes(12)), "no histogram"),
    "too many": (f"Tag=q;k,1000.0,1.0,0,{payload({1: MESSAGES_MAX + 1})}", "overflows"),
    "far too many": (f"Tag=q;k,1000.0,1.0,0,{payload({1: 1 << 62})}", "overflows"),
    "a geometry": (of(Geometry(1, 100, 9), 1), "9 significant"),
    "a bucket": (of(Geometry(1, 1000, 1), 900), "outside"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_costs_itself_only(tmp_path: Path, name: str) -> None:
    text, what = BAD_LINES[name]
    good = line("q;k", 1000, 10, {5: 1})
    found = rows_of(written(tmp_path, f"{OURS}{good}{text}\n{line('q;k', 1010, 10, {6: 2})}"))
    assert [row["total"] for row in found["interval"]] == [1, 2]
    [problem] = found["problem"]
    assert what in problem["problem"]
    assert problem["offset"] == len(OURS + good)
    assert problem["file"].endswith("some-host.hlog")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"", "empty"),
        (b"PAR1" + bytes(100), "no text"),
        (b"#[shmbroker spool 2 host=a]\n", "version 2"),
        (b"#[shmbroker spoo", "damaged"),
        (b"#[Histogram log format version 2.0]\n", "version 2.0"),
    ],
)
def test_a_file_that_is_no_log_of_ours_is_told_of(tmp_path: Path, text: bytes, what: str) -> None:
    found = rows_of(
        written(tmp_path, text + (line("q;k", 1000, 1, {1: 1}).encode() if text else b""))
    )
    assert not found["interval"]
    assert what in found["problem"][0]["problem"]


def test_a_line_without_end_is_skipped_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hlog, "READ_BYTES", 1000)
    monkeypatch.setattr(hlog, "LINE_BYTES_MAX", 5000)
    found = rows_of(written(tmp_path, OURS + "x" * 20_000 + "\n" + line("q;k", 1000, 1, {1: 1})))
    assert [row["total"] for row in found["interval"]] == [1]
    assert found["problem"][0]["offset"] == len(OURS)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hlog, "PAYLOAD_BYTES_MAX", 1000)
    many = payload({n * 7: 1 << 30 for n in range(1000)}, Geometry(1, 10**9, 3))
    found = rows_of(written(tmp_path, f"{OURS}Tag=q;k,1000.0,1.0,0,{many}\n"))
    assert "too large" in found["problem"][0]["problem"]


def test_clocks_that_go_back_and_overlaps_are_told_and_counted(tmp_path: Path) -> None:
    text = OURS + line("q;k", 1000, 10, {1: 1}) + line("q;k", 1005, 10, {1: 1})
    text += line("q;k", 900, 10, {1: 1}) + line("other;k", 900, 10, {1: 1})
    found = rows_of(written(tmp_path, text))
    assert len(found["interval"]) == 4
    overlap, back = (row["problem"] for row in found["problem"])
    assert "overlaps the one before it by 5.000 s" in overlap
    assert "105.000 s before" in back


def test_many_problems_are_counted(tmp_path: Path) -> None:
    found = rows_of(written(tmp_path, OURS + "nonsense\n" * 1000))
    assert len(found["problem"]) == PROBLEMS_MAX + 1
    assert f"{1000 - PROBLEMS_MAX} more" in found["problem"][-1]["problem"]


def test_any_damage_is_survived_and_never_makes_messages(tmp_path: Path) -> None:
    """Whatever is changed: what is not told of is what was written."""
    text = OURS + "".join(line(f"q{n};k", 1000 + n, 1, {n * 31: n + 1}) for n in range(6))
    good = {tuple(sparse(row).items()) for row in rows_of(written(tmp_path, text))["interval"]}
    dice = random.Random(7)
    for _ in range(300):
        damaged = bytearray(text.encode())
        at = dice.randrange(len(OURS), len(damaged))
        if dice.random() < 0.3:
            del damaged[at:]
        else:
            damaged[at] ^= 1 << dice.randrange(8)
        found = rows_of(written(tmp_path, bytes(damaged)))
        assert {tuple(sparse(row).items()) for row in found["interval"]} <= good
        if len(found["interval"]) < 6 and not found["problem"]:
            assert (
                bytes(damaged).count(b"\n") < 8 or b'"' in damaged or b"\n#" in damaged[len(OURS) :]
            )


def payload_of(body: bytes) -> bytes:
    return INNER.pack(V2, len(body), 0, 2, 1, 10**9, 1.0) + body


def by_bytes(body: bytes) -> tuple[int, dict[int, int]]:
    """What `counts.c` does, as one would write it down first: the fault, or the buckets."""
    found: dict[int, int] = {}
    at = index = 0
    while at < len(body):
        number = [body[at]]
        while number[-1] >= 0x80:
            if len(number) == 8:
                return lib.SB_OVERFLOWS, {}
            if at + len(number) == len(body):
                return lib.SB_TRUNCATED, {}
            number.append(body[at + len(number)])
        at += len(number)
        value = sum((octet & 0x7F) << 7 * place for place, octet in enumerate(number))
        if value & 1:
            index += (value >> 1) + 1
        else:
            if value:
                found[index] = value >> 1
            index += 1
        if index >= 1 << 31:
            return lib.SB_TOO_LONG, {}
    return lib.SB_GOOD, found


NUMBERS = st.one_of(
    st.integers(0, 63), st.integers(-300, 1 << 20), st.integers(-(1 << 56), 1 << 56)
)
BODIES = st.one_of(
    st.binary(max_size=100),
    st.lists(NUMBERS, max_size=40).map(lambda of: b"".join(map(varint, of))),
)


@given(st.lists(BODIES, max_size=6))
def test_any_payload_is_unpacked_or_told_of(bodies: list[bytes]) -> None:
    found = unpacked([payload_of(body) for body in bodies])
    assert len(found.indexes) == len(found.counts) == found.ends[-1]
    for row, body in enumerate(bodies):
        mine = slice(found.ends[row], found.ends[row + 1])
        buckets = dict(zip(found.indexes[mine], found.counts[mine], strict=True))
        assert (found.faults[row], buckets) == by_bytes(body)


@given(st.binary(max_size=80), st.integers(0, 60), st.integers(0, 255))
def test_a_header_is_refused_by_c_if_by_python(body: bytes, at: int, octet: int) -> None:
    damaged = bytearray(payload_of(body))
    if at < len(damaged):
        damaged[at] = octet
    for whole in (bytes(damaged), bytes(damaged[:at])):
        [fault] = unpacked([whole]).faults
        if fault == FOREIGN:
            assert hlog.header_fault(whole)
        else:
            hlog.check_header(whole)


TAGS = st.one_of(
    st.sampled_from([b"", b"Tag=q;k,", b"Tag=a%20b;take-ack,", b"Tag=,", b"Tag", b"Tag=q;\xff,"]),
    st.text("ab;=%\u00e9\r\0 ", max_size=6).map(lambda tag: f"Tag={tag},".encode()),
)
TIMES = st.one_of(
    st.integers(0, 2000).map(lambda n: b"%d.000" % n),
    st.from_regex(rb"\A[0-9]{0,12}(\.[0-9]{0,11})?\Z"),
    st.sampled_from(
        [b"9223372035.999999999", b"9223372036", b"9999999999", b"-1", b"1 ", b"1e3", b"1.5.2", b""]
    ),
)
HISTOGRAMS = st.one_of(
    recorded(SMALL).map(lambda one: payload(one.values).encode()),
    st.binary(max_size=12).map(b64encode),
    st.binary(max_size=12).map(lambda data: b64encode(OUTER.pack(V2_COMPRESSED, len(data)) + data)),
    st.text("HISTFAA=+/-_ \r", max_size=20).map(str.encode),
)
GOOD = (b"Tag=q;k,", b"1000.5", b"1.0", b"1.5", payload({5: 1}).encode())
SHORTER = b64encode(b64decode(GOOD[4])[:-1])


@st.composite
def intervals(draw: Any) -> bytes:
    """A good line of which one field is another one, or all are."""
    odd = [TAGS, TIMES, TIMES, st.sampled_from([b"", b"x"]), HISTOGRAMS | st.just(SHORTER)]
    which = draw(st.integers(0, 9))
    fields = [draw(one) if which in (n, 9) else GOOD[n] for n, one in enumerate(odd)]
    return fields[0] + b",".join(fields[1:])


COMMENTS = st.sampled_from(
    [
        b"",
        b"\r",
        b"#",
        b'"StartTimestamp"',
        b"#[overflow Tag=q;k count=3]",
        b"#[overflow Tag= count=9223372036854775807]",
        b"#[overflow Tag= count=" + b"9" * 5000 + b"]",
        b"#[StartTime: 1500.000 s",
        b"#[StartTime: 123456789012 s",
        b"#[BaseTime: 1000.5 s",
        b"#[BaseTime: 9223372036 s",
        b"#[BaseTime: 99999999999 s",
        b"#[shmbroker spool 1 host=b vhost=v build=2]",
        b"Tag=q;k,1,1,1",
    ]
)


@st.composite
def logs(draw: Any) -> bytes:
    """Mostly good lines; damage is a byte that is another one, or one that is missing."""
    lines = [line(f"q{n % 3};k", 1000 + n, 1, {n * 31: n + 1}).encode().strip() for n in range(3)]
    lines += draw(st.lists(st.one_of(intervals(), st.sampled_from(lines), COMMENTS), max_size=12))
    text = bytearray(OURS.encode() if draw(st.booleans()) else b"")
    text += draw(st.sampled_from([b"\n", b"\r\n"])).join(lines) + draw(
        st.sampled_from([b"\n", b""])
    )
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text) - 1))
        if draw(st.booleans()):
            text[at] = draw(st.integers(0, 255))
        else:
            del text[at]
    return bytes(text)


def read_as_rows(text: bytes, window: int = 0) -> list[dict[str, Any]]:
    journal = Journal("some-host.hlog", window)
    batches = [*hlog.read("some-host.hlog", BytesIO(text), journal), *journal.end()]
    found = [row for batch in batches for row in batch.to_pylist()]
    return sorted(found, key=lambda row: (row["sort"], row["offset"], row["problem"] or ""))


def both_ways(text: bytes) -> None:
    fast = read_as_rows(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lines, "scan", lambda lines, at, base: at)
        assert read_as_rows(text) == fast


@settings(max_examples=300)
@given(logs())
def test_the_fast_way_is_the_slow_way(text: bytes) -> None:
    """Whatever a log is: as much is read, and the same is told, at the same places."""
    both_ways(text)


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize(
    "time",
    [b"7", b"7.", b"7.123456789", b"7.1234567891", b"0000000007", b"00000000007", b"000000000007",
     b"9223372035.999999999", b"9223372036.854775807", b"9223372037", b"9999999999", b"99999999999",
     b"", b".5", b"1.5.2", b"1e3", b"-1", b"+1", b" 1"],
)  # fmt: skip
def test_a_time_is_the_same_both_ways(at: int, time: bytes) -> None:
    fields = list(GOOD)
    fields[at] = time
    odd = fields[0] + b",".join(fields[1:])
    good = GOOD[0] + b",".join(GOOD[1:])
    both_ways(OURS.encode() + good + b"\n" + odd + b"\n" + good)


def test_irregular_lines_are_copied_once() -> None:
    copied = 0

    class Text(bytes):
        def __getitem__(self, part: Any) -> Any:
            nonlocal copied
            found = super().__getitem__(part)
            copied += len(found) if isinstance(found, bytes) else 0
            return found

    text = Text(b"what is this\n" * 1000)
    assert [*hlog.Log("some-host.hlog", Journal("some-host.hlog")).add(0, text)] == []
    assert copied < len(text)


def test_regular_lines_go_the_fast_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the first, which says whether times are relative."""
    slow = []
    one_by_one = hlog.Log._interval
    monkeypatch.setattr(
        hlog.Log, "_interval", lambda log, *of: (slow.append(of), one_by_one(log, *of))
    )
    fleet = Fleet(hosts=1, queues=3, intervals=1000)
    write_hlog(fleet, tmp_path)
    [path] = tmp_path.iterdir()
    assert len(rows_of(path)["interval"]) == fleet.rows
    assert len(slow) == 1


@pytest.mark.parametrize("room", [1, 7])
def test_what_is_read_does_not_depend_on_how_much_at_once(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    text = OURS
    for n in range(30):
        if n % 4 == 0:
            text += f"#[overflow Tag=q{n % 3};k count={n + 1}]\n"
        text += line(f"q{n % 5};k", 1000 + n, 1, {n * 31: n + 1}) + (
            "nonsense\n" if n % 7 == 0 else ""
        )
    whole = read_as_rows(text.encode())
    monkeypatch.setattr(lines, "ROOM", room)
    monkeypatch.setattr(hlog, "READ_BYTES", 1000)
    monkeypatch.setattr(hlog, "UNPACK_BYTES", 100)
    assert read_as_rows(text.encode()) == whole


def test_counts_of_a_read_only_log(tmp_path: Path) -> None:
    """What stands in the row of the file is what was counted."""
    text = (
        OURS + line("q;k", 1000, 10, {1: 3, 1000: 4}) + "nonsense\n" + line("q;k", 1010, 10, {2: 1})
    )
    found: Any = rows_of(written(tmp_path, text))["file"][0]
    assert (found["offset"], found["total"], found["host"], found["vhost"]) == (2, 8, "a b", "v")
    assert (found["start"], found["end"]) == (1000 * 10**9, 1020 * 10**9)
