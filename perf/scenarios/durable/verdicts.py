"""The verdicts: what a durable publish must be worth, said of figures of the same run."""

from collections.abc import Sequence

from shmbroker.core.layout import CHUNK_HEADER_BYTES
from shmbroker.perf.machine.size import format_size
from shmbroker.perf.scenarios.durable.contender import Contender, Slice
from shmbroker.perf.scenarios.findings import Verdict

WAIT_RATIO_MAX = 1.5
DISK_RATIO_MIN = 0.5
PEER_RATIO_MIN = 5.0
HEAD_BYTES, ALIGNMENT = 32, 8
"""Of a record of the journal."""


def record_bytes(size: int) -> int:
    """Of a message in our journal: the record's head, the message's own, its body, and zeros."""
    return HEAD_BYTES + CHUNK_HEADER_BYTES + -(-size // ALIGNMENT) * ALIGNMENT


def verdicts(
    bare: Contender, ours: Contender, peers: Sequence[Contender], size: int
) -> list[Verdict]:
    """Nobody is compared with a peer that does not keep its promise."""
    shown = format_size(size)
    wait = ours.ratio(bare, size, lambda each: each.median_ns)
    rate = ours.ratio(bare, size, _per_s)
    log, payload = rate * record_bytes(size), rate * size
    given = [
        Verdict(
            f"{shown}, one outstanding: {wait:.2f} x the bare pwrite + fdatasync "
            f"(at most {WAIT_RATIO_MAX})",
            wait,
            WAIT_RATIO_MAX,
            wait <= WAIT_RATIO_MAX,
        ),
        Verdict(
            f"{shown}, many: the journal takes {log:.0%} of the bare 256 KiB writes "
            f"(at least {DISK_RATIO_MIN:.0%}); the payload alone is {payload:.0%}",
            log,
            DISK_RATIO_MIN,
            log >= DISK_RATIO_MIN,
        ),
    ]
    that_sync = [peer for peer in peers if peer.syncs and peer.slices.get(size)]
    if that_sync:
        best = max(that_sync, key=lambda peer: peer.per_s(size))
        ratio = ours.ratio(best, size, _per_s)
        given.append(
            Verdict(
                f"{shown}, many: {ratio:.1f} x {best.name}, the best that syncs "
                f"(at least {PEER_RATIO_MIN:.0f})",
                ratio,
                PEER_RATIO_MIN,
                ratio >= PEER_RATIO_MIN,
            )
        )
    return given


def _per_s(each: Slice) -> float:
    return each.per_s
