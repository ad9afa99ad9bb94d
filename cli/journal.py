"""`shmbroker journal`: verify, print, export, import and compact a journal."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import IO, Any

import click

from shmbroker.cli.context.instance import InstanceFolder
from shmbroker.cli.diverged import diverged
from shmbroker.cli.group import Group
from shmbroker.cli.output import (
    columns_left,
    confirm,
    excerpt,
    json_option,
    print_json,
    print_pairs,
    print_table,
    say,
    yes_option,
)  # fmt: skip
from shmbroker.cli.units import COUNT, SIZE, format_count, format_size

COLUMNS_TAKEN = 70
RECORDS = 1000
PLACE = "shmbroker.journal"
"""In a context: the JournalPlace that was named."""


class JournalFolder(InstanceFolder):
    """The folder of a journal; or of an instance or a store, in which it is."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from shmbroker.ipc.instance import journal_place

        place = journal_place.of_existing(super().convert(value, param, ctx))
        if ctx is not None:
            ctx.meta[PLACE] = place
        folder = place.journal
        if folder.is_dir() and not any(folder.glob("*.journal")):
            self.fail(f"there is no journal in {folder}: no file *.journal", param, ctx)
        return folder


folder_argument = click.argument("folder", type=JournalFolder())
segment_option = click.option(
    "--segment", metavar="SIZE", type=SIZE,
    help="Size of new segments.  [store.segment of the instance, if its folder is named; "
    "else that of the journal, or 64MiB]",
)  # fmt: skip


@click.group(
    cls=Group,
    examples="""
    shmbroker journal verify /var/lib/orders/journal
    shmbroker journal print /var/lib/shmbroker/orders --count 10
    shmbroker journal export damaged > records.jsonl
    shmbroker journal import mended < records.jsonl
    """,
)
def journal() -> None:
    """The journal, which holds durable messages.

    FOLDER is its own, or that of an instance or a store.
    """


journal.add_command(diverged)


@journal.command(
    examples="""
    shmbroker journal verify /var/lib/orders/journal
    shmbroker journal verify /var/lib/orders/journal --json | jq .messages
    """
)
@folder_argument
@json_option
@click.pass_context
def verify(ctx: click.Context, folder: Path, as_json: bool) -> None:
    """Read a whole journal and report damage.

    Exits with 1 if something is damaged.  A last frame that a crash left incomplete is not damage:
    none of its messages was confirmed.
    """
    from shmbroker.ipc.journal.export import verified
    from shmbroker.ipc.journal.replay import frame_text

    notes: list[str] = []
    report = verified(folder, notes.append)
    fields = {name: getattr(report, name) for name in report.__slots__}
    fields["frame"] = frame_text(report.frame) if report.frame else None
    for note in notes:
        say(note)
    if as_json:
        print_json(fields | {"notes": notes})
    else:
        print_pairs(fields | {"bytes": format_size(report.bytes)})
    ctx.exit(int(report.damages > 0))


@journal.command(
    "print",
    examples="""
    shmbroker journal print /var/lib/orders/journal
    shmbroker journal print /var/lib/orders/journal --queue 3 --count 10 --json
    """,
)
@folder_argument
@click.option(
    "--queue", metavar="N", type=int, help="Print only records of the queue with this number."
)
@click.option(
    "--count", metavar="N", type=COUNT, default=RECORDS, show_default=True,
    help="Print at most this many.",
)  # fmt: skip
@json_option
def print_(folder: Path, queue: int | None, count: int, as_json: bool) -> None:
    """Print the records of a journal, oldest first, with segment and offset."""
    from shmbroker.ipc.base.errors import JournalDamaged
    from shmbroker.ipc.journal.replay import Record, Replay, frame_text

    def first(*, salvage: bool) -> list[Record]:
        with Replay(folder, salvage=salvage, noted=say) as replay:
            wanted = (each for each in replay if queue is None or each.queue == queue)
            return list(islice(wanted, count))

    try:
        found = first(salvage=False)
    except JournalDamaged:
        found = first(salvage=True)
    if as_json:
        print_json(
            [
                {"segment": r.segment, "offset": r.offset, "frame": frame_text(r.frame),
                 "kind": r.kind_name, "queue": r.queue, "position": r.position,
                 "size": len(r.body)}
                for r in found
            ]
        )  # fmt: skip
        return
    columns = columns_left(COLUMNS_TAKEN)
    print_table(
        ["FRAME", "OFFSET", "KIND", "QUEUE", "POSITION", "SIZE", "BODY"],
        [
            [frame_text(r.frame), r.offset, r.kind_name, str(r.queue), r.position,
             format_size(len(r.body)), excerpt(r.body, columns)]
            for r in found
        ],
    )  # fmt: skip


@journal.command(
    examples="""
    shmbroker journal export /var/lib/orders/journal > records.jsonl
    shmbroker journal export damaged | jq -r 'select(.kind == "message") | .position'
    """
)
@folder_argument
def export(folder: Path) -> None:
    """Write every valid record as a line of JSON; report invalid ones on stderr.

    Reads as much as possible of a damaged journal.
    """
    from shmbroker.ipc.journal.export import exported

    for line in exported(folder, say):
        click.echo(line)


@journal.command(
    "import",
    examples="""
    shmbroker journal import /var/lib/shmbroker/orders < records.jsonl
    mkdir mended && shmbroker journal import mended < records.jsonl
    """,
)
@click.argument("named", metavar="FOLDER", type=InstanceFolder())
@click.argument("file", type=click.File("rb"), default="-")
@segment_option
def import_(named: Path, file: IO[bytes], segment: int | None) -> None:
    """Write a journal from the output of `export`, where there is none.

    FOLDER is that of an instance or a store, which has lost its journal, or of which you have moved
    it away; or an empty one.  Refused while a broker uses the journal, and where no broker would
    read it.
    """
    from shmbroker.ipc.instance import journal_place
    from shmbroker.ipc.instance.importing import imported_at
    from shmbroker.ipc.instance.unattended import unattended

    place = journal_place.of_new(named)
    with unattended(place.journal, place.store):
        count = imported_at(place, file, segment or place.segment)
    say(f"{format_count(count, 'record')} to {place.journal}")


@journal.command(examples="shmbroker journal compact /var/lib/orders/journal --yes")
@folder_argument
@segment_option
@yes_option
@click.pass_context
def compact(context: click.Context, folder: Path, segment: int | None, yes: bool) -> None:
    """Rewrite the journal with only the records that are still needed.

    Refused while a broker uses the journal.  No broker becomes live until it is done: name the
    instance or the store, if the journal has a folder outside of the store.
    """
    from shmbroker.ipc.instance.unattended import unattended
    from shmbroker.ipc.journal.export import compacted
    from shmbroker.ipc.journal.segment import bytes_of_segments

    confirm(yes, f"rewrite the journal in {folder}")
    place = context.meta[PLACE]
    with unattended(folder, place.store):
        size = segment or place.segment or bytes_of_segments(folder)
        before, after = compacted(folder, say, size)
    say(f"{folder}: {format_size(before)}, now {format_size(after)}")
