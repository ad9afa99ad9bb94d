"""The leases of a store in a table: who holds its two places, and until when, in database time.

    node      the store's
    place     live or announced
    holder    who it is, or NULL: it was given back
    until     when that runs out, by the clock of the database: that of no host matters
    epoch     live: of the last one, and it only grows.
              announced: of the live that its holder asks for the role, or 0
    told      live: what the last one says of itself (record.py)

Replicated nodes have a row of another place, and use `in_sync` as well (netbridge/engine/sql.py).
Each change is one statement that says itself what it relies on: whoever is late changes nothing.
Who waits is notified of each change but a renewal, and looks when a lease would run out anyway.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from shmbroker.ipc.instance.lock.database import SETTINGS, Database
from shmbroker.ipc.instance.lock.record import Record, RecordDamaged, made

LIVE: Final = "live"
ANNOUNCED: Final = "announced"
PLACES: Final = (LIVE, ANNOUNCED)

TABLE: Final = """
CREATE TABLE IF NOT EXISTS {table} (
    node text, place text, holder text, until timestamptz NOT NULL DEFAULT to_timestamp(0),
    epoch bigint NOT NULL DEFAULT 0, told text NOT NULL DEFAULT '',
    in_sync text NOT NULL DEFAULT '', PRIMARY KEY (node, place))
"""
ROW: Final = "INSERT INTO {table} (node, place) VALUES ($1, $2) ON CONFLICT DO NOTHING"
RAISE: Final = """
UPDATE {table} SET epoch = $2, told = $3 WHERE node = $1 AND place = 'live' AND epoch < $2
"""
LOOK: Final = """
SELECT place, holder, greatest(extract(epoch FROM until - clock_timestamp()), 0), epoch, told
FROM {table} WHERE node = $1 ORDER BY place
"""
TAKE: Final = """
UPDATE {table} SET holder = $3, until = clock_timestamp() + $4::float8 * interval '1 s',
                   epoch = CASE place WHEN 'announced' THEN 0 ELSE epoch END
WHERE node = $1 AND place = $2
  AND (holder IS NULL OR holder = $3 OR holder = $5 OR until <= clock_timestamp())
RETURNING 1
"""
RENEW: Final = """
UPDATE {table} SET until = clock_timestamp() + $4::float8 * interval '1 s'
WHERE node = $1 AND place = $2 AND holder = $3 AND until > clock_timestamp()
RETURNING 1
"""
GIVE_BACK: Final = """
UPDATE {table} SET holder = NULL, until = to_timestamp(0)
WHERE node = $1 AND place = $2 AND holder = $3
RETURNING 1
"""
WRITE: Final = """
UPDATE {table} SET epoch = $4, told = $5
WHERE node = $1 AND place = $2 AND holder = $3 AND until > clock_timestamp() AND epoch <= $4
RETURNING 1
"""
ASK: Final = """
UPDATE {table} SET epoch = $4
WHERE node = $1 AND place = $2 AND holder = $3 AND until > clock_timestamp()
RETURNING 1
"""
TELLING: Final = "WITH done AS ({change}) SELECT pg_notify('{channel}', '') FROM done"


Ask = Callable[..., list[tuple[str | None, ...]]]
"""A statement, in which {table} stands for the table, and its values."""


def make_table(ask: Ask, table: str) -> None:
    """If it is not there."""
    if ask("SELECT to_regclass($1)", table)[0][0] is None:
        # two at once would both make it, and one of them would fail
        ask("SELECT pg_advisory_lock(hashtext($1))", table)
        ask(TABLE)
        ask("SELECT pg_advisory_unlock(hashtext($1))", table)


@dataclass(frozen=True, slots=True)
class Seen:
    """One place, as it was when we looked."""

    holder: str | None
    left: float
    """Seconds until it runs out."""
    epoch: int
    told: str

    @property
    def record(self) -> Record:
        """RecordDamaged if it is none."""
        try:
            return made(self.epoch, json.loads(self.told)) if self.told else Record(self.epoch)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RecordDamaged(f"the database tells {self.told[:80]!r} of who is live") from error


class LeaseTable:
    """As seen by one who may hold its places."""

    def __init__(
        self, database: Database, table: str, node: str, holder: str, expiration: float
    ) -> None:
        self.database = database
        self.table = table
        self.node = node
        self.holder = holder
        self.expiration = expiration
        self.patience = expiration / 3
        self.channel = f"shmbroker_{node}"

    def open(self) -> None:
        """See that the table is there, and be told of changes."""
        self._ask(SETTINGS)
        self._ask(f'LISTEN "{self.channel}"')
        make_table(self._ask, self.table)

    def make(self, known: Record) -> None:
        """The rows of this store, as of one whose live.lock knows this.  What is told of an earlier
        epoch is of other rings: the store was restored since, or the database was."""
        for place in PLACES:
            self._ask(ROW, self.node, place)
        self._ask(RAISE, self.node, known.epoch, known.told)

    def look(self) -> dict[str, Seen]:
        return {
            str(place): Seen(holder, float(left or 0), int(epoch or 0), told or "")
            for place, holder, left, epoch, told in self._ask(LOOK, self.node)
        }

    def take(self, place: str, dead: str | None) -> bool:
        """If nobody has it, or it has run out, or who has it is this one, who is dead."""
        return self._change(TAKE, place, self.expiration, dead)

    def renew(self, place: str) -> bool:
        """If it is ours, and has not run out."""
        return bool(self._ask(RENEW, self.node, place, self.holder, self.expiration))

    def give_back(self, place: str) -> bool:
        return self._change(GIVE_BACK, place)

    def write(self, record: Record) -> bool:
        """If we are live, by this epoch or about to be."""
        return self._change(WRITE, LIVE, record.epoch, record.told)

    def ask_failback(self, epoch: int) -> bool:
        return self._change(ASK, ANNOUNCED, epoch)

    def _change(self, change: str, place: str, *values: object) -> bool:
        telling = TELLING.format(change=change, channel=self.channel)
        return bool(self._ask(telling, self.node, place, self.holder, *values))

    def _ask(self, statement: str, *values: object) -> list[tuple[str | None, ...]]:
        return self.database.ask(
            statement.replace("{table}", self.table), *values, patience=self.patience
        )
