"""The verdict on a run: did what was sent arrive, where it should, once?"""

from collections.abc import Sequence

from shmbroker.perf.harness.role_result import Checksum, RoleResult
from shmbroker.perf.harness.topology import Topology


class SumsDiffer(Exception):
    """What arrived is not what was sent; the run counts for nothing."""


def check(topology: Topology, results: Sequence[RoleResult]) -> None:
    """Raise SumsDiffer unless the topology's delivery rule holds. Results are in seat order."""
    sent = sum((result.sent for result in results), Checksum())
    received = [
        result.received
        for seat, result in zip(topology.seats(), results, strict=True)
        if seat.role in ("initiator", "receiver")
    ]
    if topology.delivery == "each-once":
        received = [sum(received, Checksum())]
    for arrived in received:
        if arrived != sent:
            raise SumsDiffer(f"sent: {sent}; arrived: {arrived}")
    if not sent.count:
        raise SumsDiffer("nothing was sent")
