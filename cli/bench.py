"""`shmbroker bench`: how fast this machine's broker is, and whether it was faster before.

The benchmarks are programs of their own (`python -m shmbroker.perf...`); these are their verbs.
"""

from __future__ import annotations

from pathlib import Path

import click

from shmbroker.cli.group import Group
from shmbroker.cli.units import DURATION

file = click.Path(path_type=Path)


@click.group(
    cls=Group,
    examples="""
    shmbroker bench open-loop
    shmbroker bench topologies --topology ping-pong --size 64
    shmbroker bench compare before.json after.json
    """,
)
def bench() -> None:
    """Measure latency and rates; compare builds."""


@bench.command(
    "open-loop",
    examples="""
    shmbroker bench open-loop --html open-loop.html
    shmbroker bench open-loop --rate 100000 --rate 1000000 --seconds 5s --json after.json
    shmbroker bench open-loop --client python --rate 1000 --burst 100
    shmbroker bench open-loop --rate 100000 --rounds 8 --compare before.json
    """,
)
@click.option("--rate", "rates", type=click.IntRange(min=1), multiple=True, metavar="N",
    help="Messages a second; may be repeated.  [10,000 to 4,000,000]")  # fmt: skip
@click.option("--client", type=click.Choice(["c", "python"]), default="c", show_default=True,
    help="Whose loops.")  # fmt: skip
@click.option("--burst", type=click.IntRange(min=1), default=1, help="So many are due at once.")
@click.option("--seconds", type=DURATION, default=1.0, help="How long each run takes.  [1s]")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True,
    help="Runs of each rate, the others in between.")  # fmt: skip
@click.option("--stall", type=DURATION, default=0.0,
    help="Let the consumer stop for so long, half way through.")  # fmt: skip
@click.option("--json", "json_file", type=file, metavar="FILE", help="Write every figure.")
@click.option("--hlog", type=file, metavar="FILE", help="Write the histograms.")
@click.option("--html", type=file, metavar="FILE", help="Write a page with pictures.")
@click.option("--compare", type=file, metavar="OLD", help="End with 1 if something is slower.")
@click.pass_context
def open_loop(
    ctx: click.Context, rates: tuple[int, ...], client: str, burst: int, seconds: float,
    rounds: int, stall: float, json_file: Path | None, hlog: Path | None, html: Path | None,
    compare: Path | None,
) -> None:  # fmt: skip
    """Latency at fixed rates, and the rate that is too much.

    Each message counts from when it was due, not from when it was sent.
    """
    from shmbroker.perf import open_loop

    words = [f"--rate={rate}" for rate in rates]
    words += [f"--client={client}", f"--burst={burst}", f"--seconds={seconds}"]
    words += [f"--rounds={rounds}", f"--stall={stall}"]
    files = {"json": json_file, "hlog": hlog, "html": html, "compare": compare}
    words += [f"--{name}={path}" for name, path in files.items() if path]
    ctx.exit(open_loop.main(words))


@bench.command(
    examples="""
    shmbroker bench topologies --quick
    shmbroker bench topologies --topology one-to-one --peer shmbroker-c --json before.json
    """
)
@click.option("--topology", "topologies", multiple=True, metavar="NAME", help="May be repeated.")
@click.option("--peer", "peers", multiple=True, metavar="NAME", help="May be repeated.")
@click.option("--size", "sizes", multiple=True, metavar="SIZE", help="May be repeated.")
@click.option("--rounds", type=click.IntRange(min=1), help="Of each peer.  [5]")
@click.option("--quick", is_flag=True, help="Two short rounds.")
@click.option("--json", "json_file", type=file, metavar="FILE", help="Write every figure.")
@click.pass_context
def topologies(
    ctx: click.Context, topologies: tuple[str, ...], peers: tuple[str, ...],
    sizes: tuple[str, ...], rounds: int | None, quick: bool, json_file: Path | None,
) -> None:  # fmt: skip
    """Ping-pong, streams and broadcasts, against peers.

    Needs the extra `perf`.
    """
    from shmbroker.perf import __main__ as perf

    words = [f"--topology={name}" for name in topologies]
    words += [f"--peer={name}" for name in peers]
    words += [f"--size={size}" for size in sizes]
    words += [f"--rounds={rounds}"] if rounds else []
    words += ["--quick"] if quick else []
    words += [f"--json={json_file}"] if json_file else []
    ctx.exit(perf.main(words))


@bench.command(
    examples="""
    shmbroker bench durable --folder /var/lib
    shmbroker bench durable --peer redis --size 64 --json before.json
    """
)
@click.option("--peer", "peers", multiple=True, metavar="NAME", help="Only these, and ours.")
@click.option("--size", "sizes", multiple=True, metavar="SIZE", help="May be repeated.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True,
    help="Of each peer, the others in between.")  # fmt: skip
@click.option("--folder", type=file, default=".", metavar="DIR", help="On the disk to measure.")
@click.option("--json", "json_file", type=file, metavar="FILE", help="Write every figure.")
@click.pass_context
def durable(
    ctx: click.Context, peers: tuple[str, ...], sizes: tuple[str, ...], rounds: int, folder: Path,
    json_file: Path | None,
) -> None:  # fmt: skip
    """What a confirm from the disk costs, against peers that sync.

    Ends with 1 if a verdict is missed.  Needs the extra `perf`.
    """
    from shmbroker.perf.durable import __main__ as perf

    words = [f"--peer={name}" for name in peers] + [f"--size={size}" for size in sizes]
    words += [f"--rounds={rounds}", f"--folder={folder}"]
    words += [f"--json={json_file}"] if json_file else []
    ctx.exit(perf.main(words))


@bench.command(examples="shmbroker bench compare before.json after.json")
@click.argument("old", type=file)
@click.argument("new", type=file)
@click.pass_context
def compare(ctx: click.Context, old: Path, new: Path) -> None:
    """What got slower, beyond the noise.

    Ends with 1 if something did: by the exact test of Mann and Whitney over the rounds, with one
    false alarm in a hundred comparisons, and by more than 3 %.
    """
    from shmbroker.perf import compare

    ctx.exit(compare.main([str(old), str(new)]))
