"""The pager with one guard removed: after some power loss a message must be lost, or be doubled."""

from __future__ import annotations

from typing import Final

from shmbroker.ipc.paging.page_folder import PageFolder
from shmbroker.ipc.paging.page_writer import PageWriter
from shmbroker.ipc.paging.paged import Paged
from tests.netbridge.simulation.mutants import Mutant

MUTANTS: Final = (
    Mutant("no-sync", PageWriter, "_sync", "os.fdatasync(self._file)", "pass"),
    Mutant("no-sync-of-the-folder", PageWriter, "_sync", "if self._is_new:", "if False:"),
    Mutant("no-sync-of-a-new-folder", PageFolder, "_exist", "if self.syncs:", "if False:"),
    Mutant(
        "files-go-before-the-journal-has-it", Paged, "_look_what_is_safe",
        "journaled(self._safe)", "journaled(self._next)",
    ),
    Mutant(
        "files-begin-before-the-journal-has-what-is-in-the-ring", Paged, "_take_up",
        "self._durable and self._safe < self._direct", "False",
    ),
)  # fmt: skip
