"""Who reads a journal, with one guard in Python removed, and what must notice."""

from __future__ import annotations

from typing import Final

from shmbroker.ipc.journal import segment_list
from shmbroker.ipc.journal.replay import Replay
from shmbroker.ipc.journal.segment import Segment
from tests.netbridge.simulation.mutants import Mutant
from tests.support.journal_mutants import CRASH, DAMAGE, INHERITING

IN_PYTHON: Final = {
    Mutant(name, owner, function, old, new): noticed_by
    for name, noticed_by, owner, function, old, new in (
        (
            "header-crc-not-looked-at", DAMAGE, Segment, "_check_header",
            "if self._checking.seed != crc:", "if False:",
        ),
        (
            "torn-tail-not-cut", CRASH, Replay, "_look_at_end",
            "self._torn += 1", "self._damaged_at(segment, bad, 'torn')",
        ),
        (
            "torn-tail-not-told", DAMAGE, Replay, "_look_at_end",
            "self._noted(", "str(",
        ),
        (
            "later-frames-not-looked-for", DAMAGE, Replay, "_look_at_end",
            " or segment.was_synced():", ":",
        ),
        (
            "known-end-not-looked-at", DAMAGE, Replay, "_look_at_end",
            "entry.is_known or offset < entry.reached or segment", "segment",
        ),
        (
            "missing-segment-not-told", DAMAGE, Replay, "_begin",
            "elif entry.end != UNKNOWN_END:", "elif False:",
        ),
        (
            "what-was-reached-is-not-looked-at", INHERITING, Replay, "_look_at_end",
            "offset < entry.reached or ", "",
        ),
        (
            "newest-segment-is-not-missed", INHERITING, segment_list, "_note_reached",
            "if serial > newest:", "if False:",
        ),
        (
            "foreign-segment-is-read", INHERITING, Replay, "_meet",
            "if not node_fits(segment.node, self._node):", "if False:",
        ),
    )
}  # fmt: skip

