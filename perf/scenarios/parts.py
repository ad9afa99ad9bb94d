"""Programs that measure one part each, and tell it as text; they end with 1 if one is too slow."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 900
QUICK: dict[str, tuple[str, ...]] = {
    "routing": (),
    "idle_queues": ("--queues=1000",),
    "selectors": (),
    "request": (),
    "pinned": ("--rounds=9", "--trips=1000"),
    "journal": ("--commits=100", "--seconds=0.2", "--backlog=16"),
    "schedule": ("--messages=10000", "--seconds=2"),
    "paging": ("--messages=200000",),
    "recording": ("--pairs=100",),
    "follower": ("--queues=200", "--times=50", "--seconds=1"),
}
"""What to ask each of them in a brief run."""


@dataclass(frozen=True)
class Part:
    name: str
    text: str
    code: int
    seconds: float

    @property
    def is_good(self) -> bool:
        return self.code == 0

    def __str__(self) -> str:
        ending = "" if self.is_good else f"MISSED  {self.name} ended with {self.code}\n"
        return f"{self.name}: {self.seconds:.0f} s\n{self.text}{ending}"

    def as_json(self) -> dict[str, object]:
        return {"text": self.text, "exit_code": self.code, "seconds": self.seconds}


def run(name: str, quick: bool, folder: Path) -> Part:
    command = [
        sys.executable,
        "-m",
        f"shmbroker.perf.micro.{name}",
        *(QUICK[name] if quick else ()),
    ]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=folder
        )
        text, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as expired:
        said = expired.stdout or b""
        text = said.decode() if isinstance(said, bytes) else said
        text, code = f"{text}it took longer than {PATIENCE_S} s\n", 1
    return Part(name, text, code, time.monotonic() - began)
