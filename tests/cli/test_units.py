"""Sizes, times and rates as people write and read them; tables; what is meant."""

from __future__ import annotations

import pytest

from shmbroker.cli.destination import Destination, parse_destination
from shmbroker.cli.output import excerpt, table_lines
from shmbroker.cli.properties import parse_value
from shmbroker.cli.suggestion import did_you_mean
from shmbroker.cli.units import (
    format_count,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0), ("512", 512), ("1b", 1), ("64KiB", 65536), ("64 kib", 65536), ("64k", 65536),
        ("1kB", 1000), ("1MB", 10**6), ("1.5MiB", 1572864), ("4GiB", 4 << 30), ("2T", 2 << 40),
    ],
)  # fmt: skip
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "-1", "1.5", "1 2", "1XB", "1e3", "0x10"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2", 2), ("50us", 5e-5), ("50µs", 5e-5), ("1.5ms", 1.5e-3), ("3s", 3), ("5m", 300),
     ("2 h", 7200), ("1d", 86400), ("10ns", 1e-8)],
)  # fmt: skip
def test_times_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1, "1 B"), (1023, "1,023 B"), (1024, "1 KiB"), (1536, "1.50 KiB"),
     (65536, "64 KiB"), (123 << 20, "123 MiB"), (5 << 50, "5,120 TiB")],
)  # fmt: skip
def test_sizes_are_written(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 ns"), (8.5e-7, "850 ns"), (1.234e-3, "1.23 ms"), (12.3, "12.3 s"), (600, "10 min"),
     (7200, "2 h"), (864000, "10 d")],
)  # fmt: skip
def test_times_are_written(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_counts_are_written() -> None:
    assert [format_count(n, "message") for n in (0, 1, 1000)] == [
        "0 messages",
        "1 message",
        "1,000 messages",
    ]


def test_destinations() -> None:
    assert parse_destination("orders") == Destination("queue", "orders")
    assert parse_destination("queue://a/b") == Destination("queue", "a/b")
    assert parse_destination("exchange://prices/eu.de") == Destination(
        "exchange", "prices", "eu.de"
    )
    assert str(parse_destination("exchange://prices/eu.de")) == "exchange://prices/eu.de"
    for wrong in ("", "queue://", "exchange:///key", "topic://x"):
        with pytest.raises(ValueError, match=f"^{wrong}$"):
            parse_destination(wrong)


def test_values_of_properties() -> None:
    assert parse_value("[1]") == "[1]"  # a property is one value
    assert parse_value("") == ""
    assert parse_value("007") == "007"  # JSON has no such number


def test_tables_are_aligned() -> None:
    rows = [["a", 5], ["long name", 1234]]
    assert table_lines(["NAME", "DEPTH"], rows) == [
        "NAME       DEPTH",
        "a              5",
        "long name  1,234",
    ]


def test_excerpts_are_short_and_harmless() -> None:
    assert excerpt(b"short", 10) == "short"
    assert excerpt(b"x" * 1000, 10) == "x" * 9 + "…"
    assert excerpt(b"\x1b[2J\n", 20) == "\\x1b[2J\\n"


def test_what_was_meant() -> None:
    assert did_you_mean("qeue", ["queue", "vhost"]) == "Did you mean 'queue'?"
    assert did_you_mean("zzz", ["queue"]) == ""
