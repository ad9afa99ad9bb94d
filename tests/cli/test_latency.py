"""`shmbroker latency`: what it says; Spark itself is started once."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from shmbroker.cli.latency import header, short
from shmbroker.perf.spark.fleet import Fleet, write_parquet
from tests.cli.command import Shell
from tests.perf.spark.conftest import QUICK


@pytest.fixture
def person() -> Shell:
    """Nobody needs a vhost for that."""
    return Shell("none", patience_seconds=600)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("percentiles", "x", "--by", "qeue"), "no key 'qeue': there are host"),
        (("percentiles", "x", "--at", "101"), "is no percentile"),
        (("merge", "x"), "--into"),
        (("burn", "x", "--bound", "soon"), "is no time"),
        (("report", "x", "--before", "1"), "go together"),
        (("percentile", "x"), "percentiles"),
    ],
)
def test_what_is_misspelt_is_told_before_spark_starts(
    person: Shell, arguments: tuple[str, ...], what: str
) -> None:
    answer = person("latency", *arguments)
    assert answer.code == 2
    assert what in answer.said


def test_without_java_it_says_how_to_get_it(person: Shell, tmp_path: Path) -> None:
    person.environment |= {"PATH": str(tmp_path)}
    person.environment.pop("JAVA_HOME", None)
    answer = person("latency", "problems", "x")
    assert answer.code == 1
    assert "apt-get install default-jre-headless" in answer.said
    person.environment |= {"JAVA_HOME": str(tmp_path)}
    assert "has no bin/java" in person("latency", "problems", "x").said


def test_an_old_java_is_told(person: Shell, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    person.environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    person.environment.pop("JAVA_HOME", None)
    answer = person("latency", "problems", "x")
    assert answer.code == 1
    assert "17 or newer" in answer.said
    assert "is 11" in answer.said


def test_a_spool_is_merged(person: Shell, tmp_path: Path) -> None:
    fleet = Fleet(hosts=1, queues=1, intervals=6, messages=10, variants=2)
    write_parquet(fleet, tmp_path / "spool", 1)
    (tmp_path / "spool" / "bad-v-1.hlog").touch()
    settings = "\n".join(f"{name} {value}" for name, value in QUICK.items())
    (tmp_path / "spark-defaults.conf").write_text(settings)
    person.environment |= {"SPARK_CONF_DIR": str(tmp_path)}
    answer = person.does("latency", "merge", str(tmp_path / "spool"), "--into", str(tmp_path / "t"))
    assert answer.out == "60 messages of 6 intervals in 2 files\n"
    assert f"1 problem: shmbroker latency problems {tmp_path / 't'}" in answer.said
    assert set(answer.said.splitlines()) == {
        "starting Spark; --verbose shows what it says",
        f"1 problem: shmbroker latency problems {tmp_path / 't'}",
    }
    shown = person.does("latency", "percentiles", str(tmp_path / "t"), "--verbose")
    assert "P99.9" in shown.lines[0]
    assert re.search(r"\d (ns|us)  ", shown.lines[1])
    assert "log4j" in shown.said


def test_percentiles_are_shown_as_people_read_them() -> None:
    assert [header(name) for name in ("p99_9", "max", "change_per_hour", "before_ns")] == [
        "P99.9", "MAX", "CHANGE PER HOUR", "BEFORE",
    ]  # fmt: skip
    assert short("p50", 115_343_359) == "115 ms"
    assert short("before_ns", 850.0) == "850 ns"
    assert short("total", 16_000) == 16_000
    assert short("change_per_hour", 0.021) == "+2.1 %"
    assert short("p99", None) is None
