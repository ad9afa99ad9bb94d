"""Which process runs which tests, and in which order."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SPARK: Final = "tests/perf/spark/"
BEFORE: Final = "tests/ipc/instance/"


class Scheduling(LoadFileScheduling):
    """A file goes to one process; the files of Spark all go to the same: Java starts once."""

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith(SPARK) else super()._split_scope(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        """A process begins a test only when it knows the next one, so it gets files until it has
        two tests; xdist gives it one file, and with a rest of one test it would wait for ever."""
        if node not in self.registered_collections:
            return  # it took another's place a moment ago, and does not know the tests yet
        super()._reschedule(node)
        while self._may_have_more(node):
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """A process that has ended takes nothing, and xdist hears of its end a moment later: then
        `remove_node` gives what it was assigned to others."""
        with suppress(OSError):
            super()._assign_work_unit(node)

    def _may_have_more(self, node: WorkerController) -> bool:
        is_open = bool(self.workqueue) and not node.shutting_down
        return is_open and self._pending_of(self.assigned_work[node]) < 2

    def remove_node(self, node: WorkerController) -> str | None:
        """The test during which a process ended.  It has failed, and others get the rest of its
        file; xdist gives it to one process after the other, and each of them hangs in it."""
        files = self.assigned_work[node].values()
        for file in files:
            for nodeid, is_done in file.items():
                if not is_done:
                    file[nodeid] = True
                    super().remove_node(node)
                    return nodeid
        return super().remove_node(node)


def sort_tests(items: list[pytest.Item]) -> None:
    """Spark's come after many that fork, because Spark makes a process large; but not last: they
    take minutes, and the other processes would have nothing to do."""
    spark = [each for each in items if each.nodeid.startswith(SPARK)]
    others = [each for each in items if not each.nodeid.startswith(SPARK)]
    before = [at for at, each in enumerate(others, 1) if each.nodeid.startswith(BEFORE)]
    at = before[-1] if before else 0
    items[:] = [*others[:at], *spark, *others[at:]]
