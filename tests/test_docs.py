"""The sessions of README and docs/ run as printed; paths and links in all pages lead somewhere."""

from __future__ import annotations

import doctest
import errno
import os
import re
import signal
import socket
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.vhost import vhost as vhosts
from tools.site.pages import MADE

ROOT = Path(__file__).parents[1]
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

PATH = re.compile(r"`((?:core|ipc|cli|perf|src|tests|examples|docs|tools)/[\w./-]*)`")
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


ELSEWHERE = {"remote"}
"""Its sessions want a broker at an address: tests/netbridge/client/test_page.py."""


@contextmanager
def alone_with(page: str) -> Iterator[None]:
    """Its vhosts and ports have the names that are printed: another run of the tests on this host
    waits.  The name of a socket is nobody's any more once its process has ended."""
    with socket.socket(socket.AF_UNIX) as ours:
        while True:
            try:
                ours.bind(f"\0shmbroker-docs-{page}")
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            time.sleep(0.1)
        yield


def test_two_runs_are_not_at_the_same_page(monkeypatch: pytest.MonkeyPatch) -> None:
    page, looked, done = f"none-{os.getpid()}", threading.Event(), []

    def look(_: float) -> None:
        looked.set()
        threading.Event().wait(0.001)

    monkeypatch.setattr(time, "sleep", look)

    def other() -> None:
        with alone_with(page):
            done.append("other")

    waiting = threading.Thread(target=other)
    with alone_with(page):
        waiting.start()
        assert looked.wait(60)
        done.append("first")
    waiting.join(60)
    assert done == ["first", "other"]


@pytest.mark.parametrize(
    "page", [each for each in PAGES if each.stem not in ELSEWHERE], ids=lambda page: page.stem
)
def test_the_sessions_of(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their temporary folders go with that of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with alone_with(page.stem):
        failed, _ = doctest.testfile(
            str(page), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL
        )
    assert failed == 0


@pytest.mark.parametrize("page", [ARCHITECTURE, *PAGES], ids=lambda page: page.stem)
def test_paths_and_links_exist_in(page: Path) -> None:
    text = page.read_text()
    assert not [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    for path, anchor in LINK.findall(text):
        target = page.parent / path if path else page
        if target.name in MADE:  # the site has it: tests/tools/test_site.py
            continue
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


TOURS = {
    "getting-started": ("tour", "tour-safe"),
    "runbooks": ("tour-runbooks",),
    "install": ("tour-install",),
    "remote": ("remote-tour",),
    "start-asyncio": ("tour-asyncio",),
    "start-c": ("tour-c",),
    "start-numba": ("tour-numba",),
    "start-operators": ("tour-operators",),
    "start-python": ("tour-python",),
}
"""Pages whose programs and commands are run as printed, and their vhosts."""


INSTALLED = f"-o .venv/installed BIN={sysconfig.get_path('scripts')}"
MAKE = f'make() {{ command make -sC {ROOT} {INSTALLED} "$@"; }}'
"""As in a clone where all is built."""

ENDS = "kill $(jobs -p) 2> /dev/null"
"""Jobs of a tour that fails, which write to where the test reads."""


def left_in(folder: Path) -> list[int]:
    """Processes that are at work in this folder, or below it."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # it has ended
            if each.readlink().is_relative_to(folder):
                found.append(int(each.parent.name))
    return found


def end_in(folder: Path) -> None:
    """What a tour leaves that fails: a broker, and its console, which goes on without it."""
    while left := left_in(folder):
        for each in left:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        time.sleep(0.01)
    disk = folder / "disk"
    if disk.is_mount():
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.fixture
def tour(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a page; its vhosts are gone before and after."""
    page: str = request.param

    def remove() -> None:
        for name in TOURS[page]:
            with suppress(shmbroker.NotFound):
                vhosts.delete(name, force=True)

    with alone_with(page):
        remove()
        yield page
        remove()


@pytest.mark.parametrize("tour", TOURS, indirect=True)
def test_a_tour_works_as_printed(tour: str, tmp_path: Path) -> None:
    try:
        walk((ROOT / "docs" / f"{tour}.md").read_text(), tmp_path)
    finally:
        end_in(tmp_path)


def test_a_tour_that_fails_leaves_no_process(tmp_path: Path) -> None:
    page = "```console\n$ setsid --fork sleep 1000 > sleep.txt 2>&1\n$ echo one\ntwo\n```\n"
    try:
        with pytest.raises(AssertionError, match="echo one"):
            walk(page, tmp_path)
        assert left_in(tmp_path)
    finally:
        end_in(tmp_path)
    assert left_in(tmp_path) == []


def walk(text: str, tmp_path: Path) -> None:
    """Its programs are written to files, its commands run in one shell, one after the other."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for language, block in blocks:
        if language in ("python", "c") and not block.startswith(">>>"):
            named = re.match(r"(?:# |/\* )(\S+)", block)
            assert named is not None
            (tmp_path / named[1]).write_text(block)
    lines = "".join(block for language, block in blocks if language == "console").splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    script = "".join(f"echo '$' {number}\n{each}\n" for number, each in enumerate(commands))
    scripts = sysconfig.get_path("scripts")
    done = subprocess.run(
        ["bash"],
        input=f"set -o pipefail\n{MAKE}\ntrap '{ENDS}' EXIT\n{script}",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
        env=os.environ
        | {"PATH": f"{scripts}:{os.environ['PATH']}", "XDG_CONFIG_HOME": f"{tmp_path}/config"},
        text=True,
        timeout=300,
        check=False,
    )
    shown = re.split(r"^\$ .*\n", "\n".join(lines) + "\n", flags=re.MULTILINE)[1:]
    printed = re.split(r"^\$ \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(printed) == len(commands), done.stdout
    for command, wanted, got in zip(commands, shown, printed, strict=True):
        # a shell that no terminal has says who was killed, and where in the script
        without = re.sub(r"^.*\bKilled\b.*$", "Killed", got, flags=re.MULTILINE)
        if wanted != "...\n" and not command.startswith("shmbroker kill"):
            assert without == wanted, f"{command}\n{done.stdout}"


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_the_architecture_names_each_room() -> None:
    text = ARCHITECTURE.read_text()
    rooms = {
        f"{path.parent.relative_to(ROOT)}"
        for floor in ("ipc", "perf")
        for path in (ROOT / floor).glob("*/*")
        if path.suffix in {".py", ".c"}
    }
    assert rooms
    assert not [room for room in sorted(rooms) if f"`{room}/`" not in text]


def test_the_map_answers_ten_questions() -> None:
    map_of = ARCHITECTURE.read_text().partition("### Map")[2].partition("\n### ")[0]
    answers = re.findall(r"^\| .*\? \| `([\w./]+)` \|$", map_of, re.MULTILINE)
    assert len(answers) == len(set(answers)) == 10
