"""How lives reach each other that have no link: by way of those that have.

Each live says which others it has links to.  So all know the same graph, and take the shortest
path; of two that are as short, that through the smaller node id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shmbroker.netbridge.election.question import Node


@dataclass(frozen=True, slots=True)
class Path:
    first: Node
    """To which there is a link."""
    hops: int


def paths(near: Iterable[Node], neighbours: Mapping[Node, Iterable[Node]]) -> dict[Node, Path]:
    """To all that can be reached; `near` in one hop.  Who asks may be among them."""
    found: dict[Node, Path] = {}
    waiting = deque((node, Path(node, 1)) for node in sorted(near))
    while waiting:
        node, path = waiting.popleft()
        if node not in found:
            found[node] = path
            further = Path(path.first, path.hops + 1)
            waiting.extend((each, further) for each in sorted(neighbours.get(node, ())))
    return found
