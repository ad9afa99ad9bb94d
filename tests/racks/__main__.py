"""What agents and links do over a wire between two racks, against the bare carrier, and beside
other brokers.

python -m tests.racks
python -m tests.racks --peers
python -m tests.racks --delays 10 --rounds 5 --failovers 10
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from shmbroker.perf.machine.debian import NotInstalled
from tests.racks.load import Failover, Way, failover, rate
from tests.racks.ours import Ours
from tests.racks.peers import ActiveMqRacks, RabbitMqRacks
from tests.support.forwarder import Wire, forwarded
from tests.support.hosts import Host, has_hosts

HEARTBEAT, MISSES = 0.2, 3
"""As they are by default."""
LEAST, AT_DELAY = 0.7, 10.0
"""Of the carrier's rate, at this delay."""
MORE_SECONDS = 0.1
"""Than silence that ends a link, and the takeover."""
CARRIER = "carrier"


@dataclass(frozen=True, slots=True)
class Plan:
    loss: float = 0.001
    rounds: int = 3
    seconds: float = 5.0
    warm: float = 1.5
    failovers: int = 3
    heartbeat: float = HEARTBEAT


@dataclass
class Found:
    """Over one wire, by ways."""

    delay: float
    rates: dict[str, list[float]] = field(default_factory=dict)
    failovers: dict[str, list[Failover]] = field(default_factory=dict)

    def share(self, way: str) -> float:
        """Of the carrier's rate, in the same round."""
        pairs = zip(self.rates[way], self.rates[CARRIER], strict=True)
        return median(each / carrier for each, carrier in pairs)

    def misses(self, plan: Plan) -> list[str]:
        bound = plan.heartbeat * MISSES + MORE_SECONDS
        found = [
            f"{way} at {self.delay * 1000:g} ms: {self.share(way):.2f} x the carrier's rate"
            for way in ("agent", "link")
            if self.delay * 1000 == AT_DELAY and self.share(way) < LEAST
        ]
        for way, each in self.failovers.items():
            late = [one for one in each if one.first > bound + one.takeover]
            if late and way in ("agent", "link"):
                found.append(f"{way} at {self.delay * 1000:g} ms: {len(late)} of {len(each)} "
                             f"failovers take longer than {bound * 1000:.0f} ms more than the "
                             "takeover")  # fmt: skip
        return found


def ours(plan: Plan, delay: float, folder: Path) -> Found:
    found = Found(delay)
    with ExitStack() as opened:
        near, far = opened.enter_context(forwarded(Wire(delay, loss=plan.loss), folder))
        ways = Ours(opened, folder, near, far, plan.heartbeat).ways()
        for turn in range(plan.rounds):
            for each in ways if turn % 2 else reversed(ways):
                found.rates.setdefault(each.name, []).append(rate(each, plan.seconds, plan.warm))
        for each in ways[1:]:
            found.failovers[each.name] = [failover(each) for _ in range(plan.failovers)]
    return found


def of_peer(
    made: Callable[[ExitStack, Path, Host, Host], Way], plan: Plan, of_ours: Found, folder: Path
) -> Found:
    found = Found(of_ours.delay, {CARRIER: of_ours.rates[CARRIER]})
    with ExitStack() as opened:
        wire = Wire(found.delay, loss=plan.loss)
        near, far = opened.enter_context(forwarded(wire, folder))
        way = made(opened, folder, near, far)
        found.rates[way.name] = [rate(way, plan.seconds, plan.warm) for _ in range(plan.rounds)]
        if isinstance(way, ActiveMqRacks):
            found.failovers[way.name] = [failover(way)]
    return found


def lines(found: Found) -> list[str]:
    told = []
    wire = f"{found.delay * 1000:4g} ms"
    for way, rates in found.rates.items():
        shown = " ".join(f"{each:,.0f}" for each in rates)
        told.append(f"{wire}  {way:9} {median(rates):>9,.0f} messages/s "
                    f"{found.share(way):5.2f} x carrier   ({shown})")  # fmt: skip
    for way, failovers in found.failovers.items():
        shown = ", ".join(f"{each.first * 1000:.0f} (takeover {each.takeover * 1000:.0f})"
                          for each in failovers)  # fmt: skip
        repeated = sum(each.repeated for each in failovers)
        again = f"; {repeated} came twice" if repeated else ""
        told.append(f"{wire}  {way:9} first message after the kill, ms: {shown}{again}")
    return told


def _say(told: list[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in told)
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--delays", default="1,10,50", help="one way, in ms (1,10,50)")
    parser.add_argument("--loss", type=float, default=0.1, help="per cent of the packets (0.1)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement (5)")
    parser.add_argument("--failovers", type=int, default=3, help="of each way (3)")
    parser.add_argument("--peers", action="store_true", help="ActiveMQ and RabbitMQ, too")
    given = parser.parse_args(arguments)
    if not has_hosts():
        parser.error("network namespaces are for root, with ip and nft")
    plan = Plan(given.loss / 100, given.rounds, given.seconds, failovers=given.failovers)
    found = []
    for delay in (float(each) / 1000 for each in given.delays.split(",")):
        with TemporaryDirectory(prefix="racks-") as folder:
            found.append(ours(plan, delay, Path(folder)))
        _say(lines(found[-1]))
        for made in (ActiveMqRacks, RabbitMqRacks) if given.peers else ():
            with TemporaryDirectory(prefix="racks-") as folder:
                try:
                    _say(lines(of_peer(made, plan, found[-1], Path(folder))))
                except NotInstalled as error:
                    _say([f"{made.name} is left out: {error}"])
    missed = [line for each in found for line in each.misses(plan)]
    _say([f"misses its target: {line}" for line in missed])
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
