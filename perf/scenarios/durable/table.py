"""The table of the durable benchmark: medians over the rounds, and how many confirms had a sync."""

from collections.abc import Sequence

from shmbroker.perf.harness.report import aligned
from shmbroker.perf.machine.size import format_size
from shmbroker.perf.scenarios.durable.contender import Contender, Promise

PROMISES = ("syncs", "DOES NOT SYNC", "not counted")
HEADER = (
    "",
    "version",
    "before it confirms",
    "median us",
    "p99 us",
    "x bare",
    "messages/s",
    "MB/s",
    "confirms/sync: one",
    "many",
)


def table(bare: Contender, contenders: Sequence[Contender], size: int) -> str:
    rows = [HEADER, _row(bare, bare, size)]
    rows += [_row(each, bare, size) for each in contenders if each.slices.get(size)]
    return "\n".join([f"{format_size(size)}: one outstanding, and many", *aligned(rows)])


def _row(each: Contender, bare: Contender, size: int) -> tuple[str, ...]:
    rate = each.per_s(size)
    is_bare = each is bare
    return (
        each.name,
        each.version,
        "" if is_bare else promise(each),
        f"{each.wait_ns(size, 50) / 1e3:,.0f}",
        f"{each.wait_ns(size, 99) / 1e3:,.0f}",
        f"{each.ratio(bare, size, lambda one: one.median_ns):.2f}",
        "" if is_bare else f"{rate:,.0f}",
        f"{rate / 1e6 if is_bare else rate * size / 1e6:,.1f}",
        _per_sync(each.singly),
        _per_sync(each.in_batches),
    )


def promise(each: Contender) -> str:
    kept, broken, unknown = PROMISES
    if each.singly is None:
        return unknown
    return kept if each.syncs else broken


def _per_sync(promise: Promise | None) -> str:
    if promise is None:
        return ""
    return "none" if not promise.syncs else f"{promise.per_sync:,.2f}"
