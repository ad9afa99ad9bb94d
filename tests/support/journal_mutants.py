"""The journal with one guard removed, each with the test that must object.

A snippet is the text of the real source and must occur in it exactly once; when the source changes
so that it does not, the test says so, and the mutant is to be written anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

CRASH, DAMAGE, SYNC, TAKEOVER, COMPACTING = "crash", "damage", "sync", "takeover", "compacting"
AHEAD, INHERITING, NAMING = "ahead", "inheriting", "naming"
ORDER = "order"


@dataclass(frozen=True, slots=True)
class InKernel:
    """A snippet of a kernel."""

    kernel: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard removed; what must notice."""

    name: str
    noticed_by: str
    file: str
    """Of C; empty: only the kernel is changed."""
    old: str
    new: str
    kernel: InKernel | None = None


def _kernel(name: str, noticed_by: str, kernel: str, old: str, new: str) -> Mutant:
    return Mutant(name, noticed_by, "", "", "", InKernel(kernel, old, new))


MUTANTS: Final = (
    # --- what is read
    _kernel(
        "body-crc-not-looked-at", DAMAGE, "stored_check",
        "OK if (load(at) >> BODY_SHIFT) & CHECKSUM_MASK == body else DAMAGED", "OK",
    ),
    _kernel(
        "body-crc-not-looked-at-after-a-crash", CRASH, "stored_check",
        "OK if (load(at) >> BODY_SHIFT) & CHECKSUM_MASK == body else DAMAGED", "OK",
    ),
    _kernel(
        "head-crc-not-looked-at", DAMAGE, "head_checks",
        "load(at) & CHECKSUM_MASK == found and ", "",
    ),
    Mutant(
        "crc-without-the-segment", CRASH, "journal/record.c",
        "return crc32c(seed, &covered", "(void)seed; return crc32c(0, &covered",
        InKernel("head_checksum", "system_checksum(seed, covered", "system_checksum(0, covered"),
    ),
    Mutant(
        "crc-without-the-offset", DAMAGE, "journal/record.c",
        "covered = {offset, *head};", "covered = {0, *head}; (void)offset;",
        InKernel("head_checksum", "store(covered, offset)", "store(covered, 0)"),
    ),
    _kernel(
        "half-a-frame-is-told", CRASH, "frame_check",
        "        if code != OK:\n            return code\n",
        "        if code != OK:\n"
        "            store(checking + CHECKING_WHOLE, int(at > load(checking + CHECKING_AT)))\n"
        "            return OK if at > load(checking + CHECKING_AT) else code\n",
    ),
    # --- what is taken over
    Mutant(
        "ends-are-forgotten", INHERITING, "journal/needed.c",
        "needed->end = list->entries[each].end;", "needed->end = UNKNOWN_END;",
    ),
    Mutant(
        "missing-segments-are-forgotten", INHERITING, "journal/list.c",
        "        code = inherit_from(", "        code = 1 ? SB_EMPTY : inherit_from(",
    ),
    Mutant(
        "noted-before-it-is-synced", CRASH, "journal/journal.c",
        "    const frame_place place = place_of(journal);\n    frame_seal(out, &place);\n",
        "    const frame_place place = place_of(journal);\n    frame_seal(out, &place);\n"
        "    reached_write(&journal->in, &(listed){to->serial, journal->end + out->filled -\n"
        "                                          out->start});\n",
    ),
    # --- what is written
    Mutant(
        "frame-not-synced", CRASH, "journal/sync.c",
        "if (fdatasync(journal->current.file) != 0)", "if (0)",
    ),
    Mutant(
        "folder-not-synced", CRASH, "journal/folder.c",
        "if (fsync(in->file) == 0)", "if (1)",
    ),
    Mutant(
        "header-not-synced", CRASH, "journal/spare.c",
        "if (code == SB_OK && fdatasync(from->file) != 0)", "if (0)",
    ),
    Mutant(
        "named-before-its-header", CRASH, "journal/spare.c",
        "    int64_t code = write_all(from->file, (unsigned char *)&pages, sizeof pages, 0);\n",
        "    linkat(of->in.file, from->name, of->in.file, name, 0);\n"
        "    folder_sync(&of->in);\n"
        "    int64_t code = write_all(from->file, (unsigned char *)&pages, sizeof pages, 0);\n"
        "    unlinkat(of->in.file, name, 0);\n",
    ),
    Mutant(
        "recycled-before-its-name-is-gone", ORDER, "journal/spare.c",
        "if (folder_sync(&of->in) != SB_OK) {", "if (0) {",
    ),
    Mutant(
        "recycled-before-the-list-is-synced", CRASH, "journal/journal.c",
        "        code = make_fit(journal, &journal->frame);\n",
        "        code = (segments_recycle(journal), store_wait(journal->store, SB_FOREVER),\n"
        "                make_fit(journal, &journal->frame));\n",
    ),
    Mutant(
        "compacted-before-it-is-committed", COMPACTING, "journal/compaction.c",
        "of->moved = journal->frame.records ? journal->commits : journal->commits - 1;",
        "of->moved = journal->commits - 1;",
    ),
    Mutant(
        "used-before-what-is-ready", CRASH, "journal/store.c",
        "    if (from->ready_code == SB_OK) {\n        close(from->ready.file);",
        "    if (0) {\n        close(from->ready.file);",
    ),
    # --- what is written ahead
    Mutant(
        "a-frame-is-whole-ahead-of-its-end", CRASH, "journal/frame.c",
        "seal_below(begun, begun->last, place);", "seal_below(begun, begun->filled, place);",
    ),
    Mutant(
        "ahead-of-what-is-complete", CRASH, "journal/frame.c",
        "return begun->sealed & -JOURNAL_PAGE;", "return begun->filled & -JOURNAL_PAGE;",
    ),
    Mutant(
        "ahead-of-another-frame", CRASH, "journal/frame.c",
        "emptied->records = emptied->ahead = 0;", "emptied->records = 0;",
    ),
    Mutant(
        "what-was-written-ahead-stays", AHEAD, "journal/relist.c",
        "at < staged->ahead && code == SB_OK;", "at < 0 * staged->ahead && code == SB_OK;",
    ),
    Mutant(
        "written-ahead-without-an-error", AHEAD, "journal/journal.c",
        "    if (code != SB_OK)\n        return journal_fatal(journal, code);\n    sync_file_range",
        "    sync_file_range",
    ),
    # --- errors
    Mutant(
        "failed-sync-tried-again", SYNC, "journal/sync.c",
        "return journal_fatal(journal, sync_failed(journal->current.serial, errno));",
        "return sync_failed(journal->current.serial, errno);",
    ),
    Mutant(
        "stale-live-begins", TAKEOVER, "journal/journal.c",
        "    if (theirs <= epoch || is_foreign)\n", "    if (1)\n",
    ),
    Mutant(
        "a-segment-is-taken-for-room", NAMING, "journal/folder.c",
        "status.st_nlink == 1 &&", "status.st_nlink > 0 &&",
    ),
    Mutant(
        "over-another-s-segment", TAKEOVER, "journal/spare.c",
        "    if (linkat(of->in.file, from->name, of->in.file, name, 0) != 0)\n",
        "    unlinkat(of->in.file, name, 0);\n"
        "    if (linkat(of->in.file, from->name, of->in.file, name, 0) != 0)\n",
    ),
)  # fmt: skip


@contextmanager
def without_guard() -> Iterator[None]:
    """Of those in Python, the one that JOURNAL_MUTANT names, if it names one."""
    name = os.environ.get("JOURNAL_MUTANT")
    if name is None:
        yield
        return
    from tests.support.journal_reading_mutants import IN_PYTHON  # all of a link's machine

    [mutant] = [each for each in IN_PYTHON if each.name == name]
    with mutant.applied():
        yield
