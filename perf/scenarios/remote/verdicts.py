"""The verdicts and the table: ours beside each peer, of figures of the same run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from shmbroker.perf.harness.report import aligned
from shmbroker.perf.machine.size import format_size
from shmbroker.perf.scenarios.durable.contender import Contender
from shmbroker.perf.scenarios.findings import Verdict
from shmbroker.perf.scenarios.remote.kind import Kind

RATE_RATIO_MIN: Final = 5.0
PERCENTS: Final = (50, 99)
HEADER: Final = ("", "version", "p50 us", "p99 us", "one/s", "many/s", "MB/s", "ours / it")


def verdicts(kind: Kind, ours: Contender, peers: Sequence[Contender], size: int) -> list[Verdict]:
    """The best of those who confirm in rate, and each in latency."""
    there = [peer for peer in peers if peer.slices.get(size)]
    if not there or not ours.slices.get(size):
        return []
    shown = f"{kind.name}, {format_size(size)}"
    best = max(there, key=lambda peer: peer.per_s(size))
    ratio = ours.ratio(best, size, lambda each: each.per_s)
    given = [
        Verdict(
            f"{shown}, many: {ratio:.1f} x {best.name}, the best (at least {RATE_RATIO_MIN:.0f})",
            ratio,
            RATE_RATIO_MIN,
            ratio >= RATE_RATIO_MIN,
        )
    ]
    for percent in PERCENTS:
        wait = _waited(size, percent)
        fastest = min(there, key=wait)
        share = wait(ours) / wait(fastest)
        given.append(
            Verdict(
                f"{shown}, p{percent}: {share:.2f} x {fastest.name}, the fastest (less than 1)",
                share,
                1.0,
                share < 1,
            )
        )
    return given


def _waited(size: int, percent: int) -> Callable[[Contender], float]:
    return lambda each: each.wait_ns(size, percent)


def table(kind: Kind, ours: Contender | None, contenders: Sequence[Contender], size: int) -> str:
    rows = [HEADER, *(_row(each, ours, size) for each in contenders if each.slices.get(size))]
    title = f"{kind.name}, {format_size(size)}: {kind.title}"
    return "\n".join([title, *aligned(rows, names=2)])


def _row(each: Contender, ours: Contender | None, size: int) -> tuple[str, ...]:
    rate = each.per_s(size)
    is_compared = ours is not None and ours is not each and bool(ours.slices.get(size))
    return (
        each.name,
        each.version,
        *(f"{each.wait_ns(size, percent) / 1e3:,.0f}" for percent in PERCENTS),
        f"{1e9 / each.wait_ns(size, 50):,.0f}",
        f"{rate:,.0f}",
        f"{rate * size / 1e6:,.1f}",
        f"{ours.ratio(each, size, lambda one: one.per_s):.1f}" if is_compared and ours else "",
    )
