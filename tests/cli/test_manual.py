"""The manual pages: one a command, of its help text, and without a complaint of groff."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

from shmbroker.cli import manual
from shmbroker.cli.main import root
from tests.cli.test_usage import COMMANDS

INSTALLED = Path(sysconfig.get_path("data")) / "share/man/man1"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual")
    manual.main(folder, "0.1.0")
    return folder


def rendered(page: Path) -> str:
    command = ["man", "-l", "-E", "UTF-8", str(page)]
    done = subprocess.run(command, capture_output=True, check=True, env={"MANWIDTH": "100"})
    assert not done.stderr
    return done.stdout.decode()


def test_each_command_has_one_and_the_package_has_them(pages: Path) -> None:
    names = {"-".join(("shmbroker", *path)) + ".1" for path, _ in COMMANDS}
    assert {each.name for each in pages.iterdir()} == names
    assert names <= {each.name for each in INSTALLED.iterdir()}


def test_groff_takes_all_of_them_as_they_are(pages: Path) -> None:
    command = ["groff", "-man", "-ww", "-K", "utf8", "-T", "utf8", "-z"]
    for page in sorted(pages.iterdir()):
        done = subprocess.run([*command, str(page)], capture_output=True, text=True, check=True)
        assert not done.stderr, page.name


def test_a_page_has_what_the_help_has(pages: Path) -> None:
    text = rendered(pages / "shmbroker-queue-declare.1")
    example = "shmbroker queue declare ticks --slots 65536 --when-full drop-oldest"
    for word in ("SHMBROKER-QUEUE-DECLARE(1)", "--start-replica PEER", "EXAMPLES", example):
        assert word in text
    above = rendered(pages / "shmbroker-queue.1")
    assert "See shmbroker-queue-declare(1)" in above
    whole = rendered(pages / "shmbroker.1")
    assert "EXIT STATUS" in whole
    assert "130 Ctrl-C" in whole


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("a\n\nb", "a\n.PP\nb"),
        (".shmbroker is no request", r"\&.shmbroker is no request"),
        ("'quoted'\n\n\b\n.x\n  y", "\\&'quoted'\n.PP\n.nf\n\\&.x\n  y\n.fi"),
        (r"--all \n", r"\-\-all \en"),
    ],
)
def test_nothing_in_a_text_is_a_request_of_troff(text: str, page: str) -> None:
    assert manual.paragraphs(text) == page


def test_pages_are_made_anew_each_time() -> None:
    assert dict(manual.pages(root, "shmbroker", "1")) != dict(manual.pages(root, "shmbroker", "2"))
