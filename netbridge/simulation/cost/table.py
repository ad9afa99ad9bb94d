"""The figures of several sizes beside each other, and how they grow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from shmbroker.netbridge.simulation.cost.events import Size, Town
from shmbroker.netbridge.simulation.cost.tally import Tally

Found = Mapping[str, Mapping[int, Tally]]
"""By event and number of nodes."""


def found(sizes: Sequence[Size], *, is_chain: bool) -> dict[str, dict[int, Tally]]:
    told: dict[str, dict[int, Tally]] = {}
    for size in sizes:
        for event in Town(size, is_chain=is_chain).events():
            told.setdefault(event.what, {})[size.nodes] = event.told
    return told


def lines(told: Found, nodes: Sequence[int]) -> Iterator[str]:
    """A table of Markdown: messages and bytes in the whole cluster."""
    yield f"| | {' | '.join(f'{count} brokers' for count in nodes)} | grows with |"
    yield "|---" * (len(nodes) + 2) + "|"
    for what, by_nodes in told.items():
        cells = [_cell(by_nodes[each]) if each in by_nodes else "" for each in nodes]
        yield f"| {what} | {' | '.join(cells)} | {growth(by_nodes)} |"


def growth(told: Mapping[int, Tally]) -> str:
    """The power of the number of brokers, between the two largest."""
    some = [(nodes, each.messages) for nodes, each in sorted(told.items()) if each.messages]
    if len(some) < 2:
        return ""
    (fewer, less), (more, most) = some[-2:]
    return f"n^{math.log(most / less) / math.log(more / fewer):.1f}"


def _cell(told: Tally) -> str:
    return f"{told.messages:,} · {_bytes(told.bytes)}" if told.messages else "nothing"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
