"""Installed versions: that of a commit, or this one under another number."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "upgrade"
MAIN = "import sys; from shmbroker.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class Installation:
    name: str
    folder: Path | None
    """Before all others on the path; None: what is installed."""

    def words(self, *arguments: str) -> list[str]:
        return [sys.executable, "-c", MAIN, *arguments]

    @property
    def environment(self) -> dict[str, str]:
        path = {} if self.folder is None else {"PYTHONPATH": str(self.folder)}
        return {**os.environ, **path}

    def does(self, *arguments: str, **options: Any) -> str:
        done = subprocess.run(
            self.words(*arguments), env=self.environment, capture_output=True, text=True,
            timeout=300, check=False, **options,
        )  # fmt: skip
        assert done.returncode == 0, f"{self.name}: {arguments}: {done.stderr}"
        return str(done.stdout)

    def starts(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.words(*arguments), env=self.environment, **options)

    def python(self, program: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", program, *arguments]
        return subprocess.Popen(words, env=self.environment, **options)

    @property
    def version(self) -> str:
        return self.does("--version").strip()


HERE = Installation("this one", None)


def renumbered(folder: Path, number: str) -> Installation:
    """This version, which says that it has another number."""
    site = Path(sysconfig.get_path("purelib"))
    (folder / "shmbroker").symlink_to(site / "shmbroker")
    (known,) = site.glob("shmbroker-*.dist-info")
    made = folder / f"shmbroker-{number}.dist-info"
    shutil.copytree(known, made)
    text = (made / "METADATA").read_text()
    of_now = known.name.removeprefix("shmbroker-").removesuffix(".dist-info")
    (made / "METADATA").write_text(text.replace(f"Version: {of_now}", f"Version: {number}", 1))
    return Installation(number, folder)


def of_commit(commit: str) -> Installation:
    """Built once, in build/upgrade/; that takes minutes."""
    found = subprocess.run(
        ["git", "rev-parse", "--short=8", commit], cwd=ROOT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    name = found.stdout.strip()
    source, installed = BUILT / name, BUILT / f"{name}.installed"
    if not (installed / "shmbroker").exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        archive = subprocess.run(
            ["git", "archive", name], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x"], cwd=source, input=archive.stdout, check=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation"]
        made = BUILT / f"{name}.making"
        shutil.rmtree(made, ignore_errors=True)
        subprocess.run([*pip, "--no-deps", "--target", str(made), "."], cwd=source, check=True)
        made.rename(installed)
    return Installation(name, installed)
