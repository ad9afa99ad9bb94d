"""`shmbroker bench`: run benchmarks and compare builds.

Each benchmark is a program of its own (`python -m shmbroker.perf...`) and defines its options; the
verbs here only load it.
"""

from __future__ import annotations

from importlib import import_module

import click

from shmbroker.cli.group import Group, Verb

VERBS = {
    "all": "__main__",
    "compare": "scenarios.compare",
    "durable": "scenarios.durable.__main__",
    "failover": "scenarios.failover.__main__",
    "open-loop": "scenarios.open_loop",
    "remote": "scenarios.remote.__main__",
    "scaling": "scenarios.scaling",
    "takeover": "scenarios.takeover.__main__",
    "topologies": "scenarios.topologies.__main__",
}


class Bench(Group):
    """Imports a benchmark on first use: benchmarks need more packages than the command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        try:
            command = import_module(f"shmbroker.perf.{VERBS[cmd_name]}").COMMAND
        except ModuleNotFoundError as error:
            return missing(cmd_name, error.name or "")
        made = command.of_click()
        return Verb(
            cmd_name, params=made.params, callback=made.callback, help=made.help,
            examples=command.examples,
        )  # fmt: skip


def missing(verb: str, module: str) -> click.Command:
    """A verb that names the missing package."""

    def run(words: tuple[str, ...]) -> None:
        raise click.ClickException(f"there is no {module}: pip install 'shmbroker[perf]'")

    return Verb(
        verb, callback=run, help="Needs the extra `perf`.", examples=f"shmbroker bench {verb}",
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
    )  # fmt: skip


@click.group(
    cls=Bench,
    examples="""
    shmbroker bench all --quick
    shmbroker bench open-loop
    shmbroker bench topologies --topology ping-pong --size 64
    shmbroker bench compare before.json after.json
    """,
)
def bench() -> None:
    """Measure latencies and rates, and compare builds."""
