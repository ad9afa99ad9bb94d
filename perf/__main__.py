"""python -m shmbroker.perf: everything that can be measured, one after the other.

A verdict that is missed, or something that fails, is told, and stops nothing that comes after it.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import click

from shmbroker.perf.machine.machine import machine
from shmbroker.perf.scenarios import compare, parts
from shmbroker.perf.scenarios.command import (
    CTRL_C,
    FILE,
    POSITIVE,
    STRICT,
    Command,
    option,
    several,
)
from shmbroker.perf.scenarios.findings import Told, as_json, headline, log_of, page_of
from shmbroker.perf.scenarios.parts import Part
from shmbroker.perf.scenarios.scenario import Scenario

MODULES = {
    "topologies": "topologies.__main__",
    "open-loop": "open_loop",
    "scaling": "scaling",
    "durable": "durable.__main__",
    "remote": "remote.__main__",
    "failover": "failover.__main__",
}
"""In the order in which they run."""
NAMES = [*MODULES, *(name.replace("_", "-") for name in parts.QUICK)]


def scenario(name: str) -> Scenario:
    found: Scenario = import_module(f"shmbroker.perf.scenarios.{MODULES[name]}").SCENARIO
    return found


def words(of: Scenario, quick: bool, rounds: int | None, folder: Path) -> list[str]:
    given = [*(of.quick if quick else of.full)]
    given += [f"--rounds={rounds}"] if rounds else []
    given += [f"--folder={folder}"] if any(each.name == "folder" for each in of.options) else []
    return given


def everything(
    names: Sequence[str], quick: bool, rounds: int | None, folder: Path
) -> Iterator[Told | Part | str]:
    """What each has found, or how it failed."""
    for name in names:
        try:
            if name in MODULES:
                of = scenario(name)
                yield of.tell(of.asked(words(of, quick, rounds, folder)))
            else:
                yield parts.run(name.replace("-", "_"), quick, folder)
        except Exception as failure:  # noqa: BLE001 - one that fails must not stop the others
            traceback.print_exc()
            yield f"FAILED  {name}: {type(failure).__name__}: {failure}"


def run(
    only: Sequence[str], without: Sequence[str], quick: bool, rounds: int | None, folder: Path,
    json_file: Path, hlog: Path, html: Path, old: Path | None, strict: bool,
) -> int:  # fmt: skip
    before = compare.read(old) if old else None
    folder = folder.absolute()
    described, told, measured, failed = machine(), list[Told](), list[Part](), list[str]()
    say(headline(described))
    names = [name for name in NAMES if name in (only or NAMES) and name not in without]
    is_whole = False
    try:
        for found in everything(names, quick, rounds, folder):
            say(f"\n{found}")
            if isinstance(found, Told):
                told.append(found)
            elif isinstance(found, Part):
                measured.append(found)
            else:
                failed.append(found)
        is_whole = True
    except KeyboardInterrupt:
        failed.append("FAILED  interrupted: the rest is missing")
    document = as_json(described, told)
    document["parts"] = {each.name: each.as_json() for each in measured}
    document["failures"] = failed
    json_file.write_text(json.dumps(document, indent=1) + "\n")
    hlog.write_text(log_of(described, told))
    html.write_text(page_of("shmbroker: everything", described, told, measured, failed))
    say(f"\nwritten: {json_file}, {hlog}, {html}")
    missed = [line for each in told for line in each.findings.judged() if line[:3] != "met"]
    missed += [f"MISSED  {each.name}: see above" for each in measured if not each.is_good]
    say("\n".join(missed + failed) if missed or failed else "all verdicts are met")
    slower = compare.tell(before, compare.figures_of(document)) if before else 0
    if not is_whole:
        return CTRL_C
    failed += [line for each in told for line in each.findings.failures]
    return 1 if failed or slower or (strict and missed) else 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


CHOICE = click.Choice(NAMES)
COMMAND = Command(
    "all",
    help="""Run all benchmarks and write one page.

    Takes about 30 minutes, or 3 with --quick.  A missed verdict is reported; it does not stop the
    other benchmarks, and is an error only with --strict.  Exits with 1 if a benchmark fails.
    """,
    examples="""
    shmbroker bench all
    shmbroker bench all --quick --html quick.html
    shmbroker bench all --only scaling --only failover --rounds 3
    shmbroker bench all --without topologies --compare before.json
    """,
    parameters=(
        several("--only", type=CHOICE, metavar="NAME", help="Run this benchmark."),
        several("--without", type=CHOICE, metavar="NAME", help="Skip this benchmark."),
        option("--quick", is_flag=True, help="Short runs and few peers."),
        option("--rounds", type=POSITIVE, metavar="N", help="Rounds of each scenario."),
        option("--folder", type=FILE, default=".", metavar="DIR",
               help="A folder on the disk to measure."),
        option("--json", "json_file", type=FILE, default="bench.json", show_default=True,
               metavar="FILE", help="Write all figures here."),
        option("--hlog", type=FILE, default="bench.hlog", show_default=True, metavar="FILE",
               help="Write the histograms here."),
        option("--html", type=FILE, default="bench.html", show_default=True, metavar="FILE",
               help="Write the page here."),
        option("--compare", "old", type=FILE, metavar="OLD",
               help="Compare with the JSON of an earlier run; exit with 1 if slower."),
        STRICT,
    ),
    run=run,
)  # fmt: skip
main = COMMAND.main

if __name__ == "__main__":
    sys.exit(main())
