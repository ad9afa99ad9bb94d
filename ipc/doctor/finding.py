"""One problem of a host."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """With what, in which way, and what to do."""

    severity: str
    """"error": it does not work; "warning": one day it will not; "note": good to know."""
    subject: str
    problem: str
    remedy: str
    stale: tuple[Path, ...] = ()
    """Files that nobody uses any more, in the order in which they may be removed."""


def remove_stale(findings: Iterable[Finding], asked: Collection[Path]) -> list[Path]:
    """Remove what may be removed, of what was asked for; which files those were."""
    removed = []
    for finding in findings:
        for path in finding.stale:
            if path not in asked:
                continue
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
            removed.append(path)
    return removed
