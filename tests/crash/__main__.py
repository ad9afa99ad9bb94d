"""Kill producers and consumers at random instants, and account for every message.

python -m tests.crash --kills 2000
python -m tests.crash --kills 100 --seed 4711
python -m tests.crash repair
python -m tests.crash failover --times 100
python -m tests.crash failover --times 20 --backlog 1073741824
python -m tests.crash growth --lives 1000000 --connects 100000
python -m tests.crash scarce --times 10
python -m tests.crash stream --kills 500
python -m tests.crash links --kills 500
python -m tests.crash frames --frames 1000000
python -m tests.crash replicas --kills 150
python -m tests.crash queue_replicas --kills 200
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from shmbroker.perf.machine.process import Process
from shmbroker.perf.scenarios.failover.trial import failover
from tests.conftest import vhost_for_a_while
from tests.crash.frames import play as play_frames
from tests.crash.growth import grow
from tests.crash.links import KINDS
from tests.crash.links import play as play_link
from tests.crash.queue_replicas import play as play_queue_replicas
from tests.crash.repair import measure
from tests.crash.replicas import play as play_replicas
from tests.crash.round import Fault, crash
from tests.crash.scarce import on_a_small_disk, with_few_descriptors
from tests.crash.stream import TARGETS
from tests.crash.stream import play as play_stream
from tests.support.forwarder import limit
from tests.support.hosts import has_hosts

VERBS = (
    "kill", "repair", "failover", "growth", "scarce", "stream", "links", "frames", "replicas",
    "queue_replicas",
)  # fmt: skip
SCARCE_STEPS = 30
FEW = 100
AT_REST_SECONDS = 0.3
"""Between two failovers: in the tests the next one is hit while everything still starts."""


def failovers(times: int, seed: int | None) -> int:
    """Kills of the live, then a tenth as many that are only stopped, until the limit."""
    lost = False
    for hit, count, settings in (
        (Process.kill, times, {}),
        (Process.stop, times // 10, {"ha.stall-limit": "250ms"}),
    ):
        with vhost_for_a_while() as vhost, TemporaryDirectory(prefix="failover-") as folder:
            outcome = failover(
                Path(folder), vhost, count, seed or 0, hit, at_rest=AT_REST_SECONDS, **settings
            )
        sys.stdout.write(f"{hit.__name__}: {outcome}\n")
        lost |= outcome.consumed != outcome.confirmed
    return int(lost)


def beside_a_backlog(times: int, seed: int | None, backlog: int) -> int:
    """The same kills without and with so many bytes in another queue."""
    lost = False
    medians = []
    for each in (0, backlog):
        with vhost_for_a_while() as vhost, TemporaryDirectory(prefix="failover-") as folder:
            outcome = failover(
                Path(folder), vhost, times, seed or 0, at_rest=AT_REST_SECONDS, backlog=each
            )
        sys.stdout.write(f"backlog of {each >> 20} MiB: {outcome}\n")
        lost |= outcome.consumed != outcome.confirmed
        medians.append(median(outcome.pauses))
    without, with_it = medians
    sys.stdout.write(
        f"median {without * 1e3:.1f} ms, with the backlog {with_it * 1e3:.1f} ms: "
        f"{with_it / without:.2f} times\n"
    )
    return int(lost)


def growth(lives: int, connects: int) -> int:
    """Ten rounds, and a cold start; what there is after each is said.

    How many rows are in use at once depends on when the broker looks, so a few may come to it.
    """
    with vhost_for_a_while() as vhost, TemporaryDirectory(prefix="growth-") as folder:
        first, *_, last, _ = grow(
            vhost, Path(folder), lives, connects, 10, lambda text: sys.stdout.write(f"{text}\n")
        )
    more = max(after - before for before, after in zip(first.counts(), last.counts(), strict=True))
    return int(more > max(FEW, lives // 1000))


def scarce(rounds: int, seed: int | None) -> int:
    """Rounds on a disk that fills and empties, and with few descriptors."""
    first, failed = seed or int.from_bytes(os.urandom(3)), False
    for number in range(rounds):
        for play in (on_a_small_disk, with_few_descriptors):
            with vhost_for_a_while() as vhost, TemporaryDirectory(prefix="scarce-") as folder:
                outcome = play(Path(folder), vhost, SCARCE_STEPS, first + number)
            sys.stdout.write(f"{play.__name__}, seed {first + number}: {outcome}\n")
            failed |= bool(outcome.faults)
    return int(failed)


def streams(kills: int, seed: int | None) -> int:
    """So many kills on the way to a plain queue, and two fifths of it to each of the others."""
    first, failed = seed or int.from_bytes(os.urandom(3)), False
    for kind in TARGETS:
        with TemporaryDirectory(prefix="stream-") as folder:
            many = kills if kind == "plain" else kills * 2 // 5
            outcome = play_stream(Path(folder), kind, many, first)
        sys.stdout.write(f"{outcome}\n")
        failed |= bool(outcome.faults)
    return int(failed)


def links(strikes: int, seed: int | None) -> int:
    """So many kills, stops, cuts and losses in all, with queues in memory and durable ones."""
    first, failed = seed or int.from_bytes(os.urandom(3)), False
    cases = [(kind, durable) for kind in KINDS for durable in (False, True)]
    for number, (kind, durable) in enumerate(cases):
        with TemporaryDirectory(prefix="links-") as folder:
            outcome = play_link(Path(folder), kind, durable, strikes // len(cases), first + number)
        sys.stdout.write(f"{outcome}\n")
        failed |= bool(outcome.faults)
    if has_hosts():
        with TemporaryDirectory(prefix="links-") as folder:
            packets, delay = limit(Path(folder))
        told = f"{packets:,.0f} packets/s, {delay * 1e6:.0f} us one way"
        sys.stdout.write(f"the forwarder itself: {told}\n")
    return int(failed)


def frames(many: int, seed: int | None) -> int:
    """So many, some of them damaged, to a listener with the address sanitizer."""
    with TemporaryDirectory(prefix="frames-") as folder:
        outcome = play_frames(
            Path(folder), many, seed or int.from_bytes(os.urandom(3)), sanitizes=True
        )
    sys.stdout.write(f"{outcome}\n")
    return int(bool(outcome.faults))


def replicas(kills: int, seed: int | None) -> int:
    """So many kills of a live, each followed by a takeover of its replica."""
    with TemporaryDirectory(prefix="replicas-") as folder:
        outcome = play_replicas(Path(folder), kills, seed or int.from_bytes(os.urandom(3)))
    sys.stdout.write(f"{outcome}\n")
    return int(bool(outcome.faults))


def queue_replicas(kills: int, seed: int | None) -> int:
    """So many kills of either broker, cuts of the link and takeovers of either group."""
    with TemporaryDirectory(prefix="queue-replicas-") as folder:
        outcome = play_queue_replicas(Path(folder), kills, seed or int.from_bytes(os.urandom(3)))
    sys.stdout.write(f"{outcome}\n")
    return int(bool(outcome.faults))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", nargs="?", choices=VERBS, default="kill")
    parser.add_argument("--kills", type=int, default=2000, help="how many kill -9 (2000)")
    parser.add_argument("--seed", type=int, help="of the first round; random if left out")
    parser.add_argument("--times", type=int, default=50, help="of what is measured (50)")
    parser.add_argument("--backlog", type=int, default=0, help="failover: and with so many bytes")
    parser.add_argument("--lives", type=int, default=1000000, help="growth: of queues")
    parser.add_argument("--connects", type=int, default=100000, help="growth: of programs")
    parser.add_argument("--frames", type=int, default=1000000, help="frames: how many")
    given = parser.parse_args()
    if given.verb == "growth":
        return growth(given.lives, given.connects)
    if given.verb == "repair":
        for each in measure(given.times):
            sys.stdout.write(f"{each}\n")
        return 0
    if given.verb == "scarce":
        return scarce(given.times, given.seed)
    if given.verb == "stream":
        return streams(given.kills, given.seed)
    if given.verb == "frames":
        return frames(given.frames, given.seed)
    if given.verb == "replicas":
        return replicas(given.kills, given.seed)
    if given.verb == "queue_replicas":
        return queue_replicas(given.kills, given.seed)
    if given.verb == "links":
        return links(given.kills, given.seed)
    if given.verb == "failover" and given.backlog:
        return beside_a_backlog(given.times, given.seed, given.backlog)
    if given.verb == "failover":
        return failovers(given.times, given.seed)
    try:
        outcome = crash(given.kills, given.seed)
    except Fault as fault:
        sys.stdout.write(f"{fault}\n")
        return 1
    sys.stdout.write(f"{outcome}\n")
    return 0


sys.exit(main())
