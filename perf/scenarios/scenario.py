"""A scenario of the harness: what it may be asked, and how it is measured.

All are started in the same way, by `shmbroker bench NAME` or `python -m` their module, and together
by perf.__main__; each tells a table, and writes the same kinds of files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from shmbroker.perf.machine.machine import machine
from shmbroker.perf.scenarios import compare
from shmbroker.perf.scenarios.command import FILE, STRICT, Command, option
from shmbroker.perf.scenarios.conditions import conditions_now
from shmbroker.perf.scenarios.findings import Findings, Told, as_json, headline, log_of, page_of
from shmbroker.perf.scenarios.steps import Steps

FILES = (
    option("--json", "json_file", type=FILE, metavar="FILE", help="Write all figures as JSON."),
    option("--hlog", type=FILE, metavar="FILE", help="Write the histograms."),
    option("--html", type=FILE, metavar="FILE", help="Write a page with pictures."),
    option("--compare", "old", type=FILE, metavar="OLD",
           help="Compare with the JSON of an earlier run; exit with 1 if slower."),
    STRICT,
)  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    name: str
    help: str
    examples: str
    options: Sequence[click.Option]
    measure: Callable[..., Findings]
    """Gets Steps, and what was asked by the name of its option."""
    pinning: str
    full: Sequence[str] = ()
    quick: Sequence[str] = ()
    """What to ask it in a run of everything."""

    @property
    def command(self) -> Command:
        """The scenario alone, as a program."""
        return Command(self.name, self.help, self.examples, [*self.options, *FILES], self.run)

    def asked(self, words: Sequence[str]) -> dict[str, Any]:
        """What these words ask."""
        command = click.Command(self.name, params=list(self.options))
        return command.make_context(self.name, list(words)).params

    def tell(self, asked: dict[str, Any]) -> Told:
        steps = Steps(self.name)
        folder = asked.get("folder") or Path.cwd()
        try:
            steps.next("raw limits of the machine")
            conditions = conditions_now(folder)
            return Told(self.name, self.pinning, conditions, self.measure(steps, **asked))
        finally:
            steps.end()

    def run(
        self, *, json_file: Path | None, hlog: Path | None, html: Path | None, old: Path | None,
        strict: bool, **asked: Any,
    ) -> int:  # fmt: skip
        before = compare.read(old) if old else None
        described = machine()
        told = self.tell(asked)
        sys.stdout.write(f"{headline(described)}\n{told}\n")
        title = f"shmbroker: {self.name}"
        return write([told], described, title, json_file, hlog, html, before, strict)


def write(
    told: Sequence[Told], described: dict[str, object], title: str,
    json_file: Path | None, hlog: Path | None, html: Path | None, before: compare.Figures | None,
    strict: bool,
) -> int:  # fmt: skip
    """The files that are wanted; the exit code."""
    document = as_json(described, told)
    if json_file:
        json_file.write_text(json.dumps(document, indent=1) + "\n")
    if hlog:
        hlog.write_text(log_of(described, told))
    if html:
        html.write_text(page_of(title, described, told))
    slower = compare.tell(before, compare.figures_of(document)) if before else 0
    failed = any(each.findings.failures for each in told)
    missed = not all(each.findings.is_good for each in told)
    return 1 if failed or slower or (strict and missed) else 0
