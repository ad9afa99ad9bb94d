"""What an acceptor tells the programs that come there of the other nodes of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shmbroker.ipc.base.pattern import matches


class Untold(ValueError):
    """Options that do not go together; the message says which."""


@dataclass(frozen=True, slots=True)
class Telling:
    is_told: bool
    """`update-cluster-clients`."""
    also_gone: bool
    """`update-cluster-clients-on-remove`: a node that has left is no longer in the list."""
    names: tuple[str, ...]
    """`update-cluster-filter`; none: all nodes."""
    rebalances: bool = False
    """`rebalance-cluster-clients`: a share of those that are here is invited to a new node."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Telling:
        """Untold."""
        if values["rebalance-cluster-clients"] and not values["update-cluster-clients"]:
            raise Untold(
                "rebalance-cluster-clients is for programs that are told of the nodes: set "
                "update-cluster-clients = true as well"
            )
        return cls(
            values["update-cluster-clients"],
            values["update-cluster-clients-on-remove"],
            tuple(values["update-cluster-filter"]),
            values["rebalance-cluster-clients"],
        )

    def includes(self, name: str, *, is_there: bool) -> bool:
        """A node whose live has this name."""
        return (
            self.is_told
            and (is_there or not self.also_gone)
            and (not self.names or any(matches(each, name) for each in self.names))
        )
