"""Files and rings of another version: a broker says so, and changes nothing."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

from shmbroker.core.layout import CATALOG_VERSION_AT, LAYOUT_VERSION
from shmbroker.ipc.instance import formats
from shmbroker.ipc.instance.backup import FORMAT
from shmbroker.netbridge.wire.version import HIGHEST
from tests.ipc.instance.conftest import Make
from tests.ipc.instance.test_pair import bodies, eventually, is_announced, put
from tests.support.runs import Settings

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "upgrade.md"
VERSION_AT = 8


@pytest.fixture
def locked() -> Settings:
    """What is tested here does not depend on the kind of lock."""
    return {}


@contextmanager
def of_version(number: int, *paths: Path, at: int = VERSION_AT) -> Iterator[None]:
    """Files whose header says that; as they were afterwards."""
    before = {path: path.read_bytes()[at : at + 4] for path in paths}

    def write(path: Path, content: bytes) -> None:
        with path.open("r+b") as file:
            file.seek(at)
            file.write(content)

    for path in paths:
        write(path, struct.pack("=I", number))
    yield
    for path, content in before.items():
        write(path, content)


def with_the_next(journal: Path) -> list[Path]:
    """Its segments, once the one is there that comes after the first: it is made ready in time."""
    eventually(lambda: len(list(journal.glob("*.journal"))) == 2)
    return sorted(journal.glob("*.journal"))


def test_what_is_checked_is_what_is_written() -> None:
    text = (ROOT / "ipc/journal/format.h").read_text()
    magic = re.search(r"#define JOURNAL_MAGIC UINT64_C\((\w+)\)", text)
    version = re.search(r"#define JOURNAL_VERSION (\d+)", text)
    assert magic is not None
    assert version is not None
    known = formats.JOURNAL
    assert (int(magic[1], 16), int(version[1])) == (known.magic, known.version)


def test_the_page_names_the_formats_of_this_version() -> None:
    *_, row = re.findall(r"^\| \d+\.\d+\.\d+ \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    here = (LAYOUT_VERSION, formats.JOURNAL.version, formats.PAGES.version, HIGHEST, FORMAT)
    assert row.split(" | ") == [str(each) for each in here]
    assert f"| {version('shmbroker')} |" in PAGE.read_text()


def test_a_journal_of_another_version_is_left_alone(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    backup = is_announced(make("b", "backup").start())
    late = make("c", "backup")
    put(vhost, b"1")
    segments = with_the_next(live.folder.parent / "store" / "journal")
    with of_version(3, *segments):
        assert late.start().ends() == 1
        assert "has format 3 of a journal" in late.errors()
        assert "docs/upgrade.md" in late.errors()
        put(vhost, b"2")
        live.kill()
        assert backup.ends() == 1, "it does not write behind what it cannot read"
        assert "has format 3 of a journal" in backup.errors()
        assert live.start().ends() == 1
    live.start().becomes("live")
    assert bodies(vhost) == [b"1", b"2"]
    assert live.stop() == 0


def test_rings_of_another_version_are_left_alone(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    live.kill()
    with of_version(9, Path(f"/dev/shm/shmbroker.{vhost}.catalog"), at=CATALOG_VERSION_AT):
        assert live.start().ends() == 1
        assert "has layout version 9, this shmbroker speaks" in live.errors()
    live.start().becomes("live")
    assert bodies(vhost) == [b"1"]
    assert live.stop() == 0


def test_pages_of_another_version_are_left_alone(make: Make, vhost: str) -> None:
    live = make("a").start().becomes("live")
    put(vhost, b"1")
    assert live.stop() == 0
    pages = live.folder.parent / "store" / "pages" / "1-1"
    pages.mkdir(parents=True)
    page = pages / "0000000000000001.page"
    page.write_bytes(struct.pack("=QI", formats.PAGES.magic, 7))
    assert live.start().ends() == 1
    assert "has format 7 of a page file" in live.errors()
    assert page.exists()
