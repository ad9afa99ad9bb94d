"""What the members of a cluster say, to bytes and back: the body of a frame `Talk`."""

from __future__ import annotations

from typing import Final

from shmbroker.core.layout import SELECTOR_BYTES_MAX
from shmbroker.netbridge.cluster.advert import SELECTORS_MAX, Binding, Queue
from shmbroker.netbridge.cluster.board import ROWS_MAX
from shmbroker.netbridge.cluster.machine import NEIGHBOURS_MAX
from shmbroker.netbridge.cluster.said import (
    Announcement,
    Answers,
    Arbitrates,
    Ask,
    BackupEnds,
    Counted,
    Counts,
    Decides,
    Ends,
    Forgotten,
    Granted,
    Grouped,
    Here,
    Holds,
    Known,
    Leaving,
    Left,
    Makes,
    OfBackups,
    Offers,
    Proposes,
    Releases,
    Replaces,
    Requests,
    Said,
    Told,
    WhoDecides,
)
from shmbroker.netbridge.election.codec import NODE
from shmbroker.netbridge.wire.field import NAME_BYTES_MAX, URI_BYTES_MAX, Flag, Number, Octets, Text
from shmbroker.netbridge.wire.frame import ID_BYTES, Body
from shmbroker.netbridge.wire.vocabulary import COUNT, Made, Many, Vocabulary

GROUP_MAX: Final = 16
ENTRY_BYTES: Final = 3 * 512
"""A key and arguments are in an entry of the catalog; what is no UTF-8 is up to three times as long
as text."""
LIVES_MAX: Final = 1 << 20
DIGEST_MAX: Final = (1 << 32) - 1
NAME: Final = Text(NAME_BYTES_MAX, 1)
OF: Final = Octets(0, ID_BYTES)
ANNOUNCEMENT: Final = Made(
    Announcement, NODE, Octets(ID_BYTES, ID_BYTES), COUNT, COUNT, NAME, Text(URI_BYTES_MAX, 1),
    Flag(), Many(NAME, GROUP_MAX), Text(URI_BYTES_MAX), Many(NODE, NEIGHBOURS_MAX), OF,
)  # fmt: skip
LISTED: Final = Text(3 * NAME_BYTES_MAX, 1)
"""A name in the catalog, for the same reason."""
MAKES_BYTES_MAX: Final = 28 << 10
WHY_BYTES_MAX: Final = 2048
PATH_BYTES_MAX: Final = 4096
BACKUP: Final = Text(NAME_BYTES_MAX)
"""Its name; empty: there is none."""
FOLDER: Final = Text(PATH_BYTES_MAX)
LIFE: Final = Octets(ID_BYTES, ID_BYTES)
SELECTOR: Final = Text(SELECTOR_BYTES_MAX, 1)
QUEUE: Final = Made(Queue, LISTED, Flag(), Flag(), Flag(), Many(SELECTOR, SELECTORS_MAX))
BINDING: Final = Made(
    Binding, LISTED, NAME, LISTED, Flag(), Text(ENTRY_BYTES), Octets(0, ENTRY_BYTES), Flag(), Flag()
)
WORDS: Final = Vocabulary(
    "a word of a cluster",
    (Here, Made(Here, ANNOUNCEMENT, Number(1, LIVES_MAX), Number(0, DIGEST_MAX))),
    (Known, Made(Known, ANNOUNCEMENT)),
    (Forgotten, Made(Forgotten, NODE, COUNT)),
    (Ask, Made(Ask, LIFE, COUNT, OF)),
    (Told, Made(
        Told, LIFE, Flag(), COUNT, COUNT, Many(QUEUE, ROWS_MAX), Many(BINDING, ROWS_MAX),
        Many(LISTED, ROWS_MAX), Many(BINDING, ROWS_MAX), OF,
    )),
    (Offers, Made(Offers, COUNT, Text(NAME_BYTES_MAX))),
    (Makes, Made(Makes, COUNT, Octets(0, MAKES_BYTES_MAX))),
    (Answers, Made(Answers, COUNT, Text(WHY_BYTES_MAX), Text(URI_BYTES_MAX))),
    (Arbitrates, Made(Arbitrates, NAME, COUNT, COUNT)),
    (Proposes, Made(Proposes, LISTED, NAME, NODE, Flag())),
    (Decides, Made(Decides, LISTED, NAME, NODE, Flag())),
    (Ends, Made(Ends, LISTED, NAME, NODE)),
    (WhoDecides, Made(WhoDecides)),
    (Counts, Made(Counts, COUNT)),
    (Counted, Made(Counted, COUNT, COUNT, Flag(), BACKUP, Text(WHY_BYTES_MAX))),
    (Requests, Made(
        Requests, COUNT, COUNT, NAME, Text(NAME_BYTES_MAX), NAME, NAME, Text(NAME_BYTES_MAX),
        FOLDER, FOLDER, FOLDER, Text(URI_BYTES_MAX),
    )),
    (Granted, Made(Granted, COUNT, BACKUP, Text(WHY_BYTES_MAX), Flag())),
    (BackupEnds, Made(BackupEnds, BACKUP, Text(WHY_BYTES_MAX))),
    (Releases, Made(Releases)),
    (Holds, Made(Holds, COUNT, Flag())),
    (Left, Made(Left, NODE, COUNT, NODE)),
    (Replaces, Made(Replaces, COUNT, NODE, COUNT)),
    array_max=ROWS_MAX,
)  # fmt: skip


def encode(said: Said | Leaving | Grouped | OfBackups) -> bytes:
    return WORDS.encode(said)


def decode(body: Body) -> Said | Leaving | Grouped | OfBackups:
    """Malformed, and no other error, says what is wrong."""
    said: Said | Leaving | Grouped | OfBackups = WORDS.decode(body)
    return said
