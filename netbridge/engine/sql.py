"""PostgreSQL as a lock manager: a row for each node, in the table that shared stores have as well.

    node      its id
    place     'granted'
    told      the ledger and the lease, as JSON: a change counts only if it is what we have seen
    epoch, holder, in_sync, until
              the newest epoch, who has the lease, the members in sync, about when the lease ends:
              for people only

Each change is one statement.  The clock of the database decides nothing: a member that wants to be
live sees for a whole lease, by its own clock, that nobody renews it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from shmbroker.ipc.instance.lock.database import SETTINGS, Address, Database, DatabaseFailed
from shmbroker.ipc.instance.lock.lease_table import make_table
from shmbroker.netbridge.election.codec import ledger_of, text_of
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.engine.engine import EngineFailed, Lease, LeaseStep, Seen
from shmbroker.netbridge.wire.malformed import Malformed

COLUMN: Final = """
SELECT 1 FROM pg_attribute
WHERE attrelid = to_regclass($1) AND attname = 'in_sync' AND NOT attisdropped
"""
ADD: Final = "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS in_sync text NOT NULL DEFAULT ''"
LOOK: Final = "SELECT told FROM {table} WHERE node = $1 AND place = 'granted'"
NODES: Final = "SELECT node FROM {table} WHERE place = 'granted' ORDER BY node"
UNTIL: Final = "clock_timestamp() + $6::float8 * interval '1 s'"
MAKE: Final = f"""
INSERT INTO {{table}} (node, place, told, epoch, holder, in_sync, until)
SELECT $1::text, 'granted', $2::text, $3::bigint, $4::text, $5::text, {UNTIL} WHERE $7::text IS NULL
ON CONFLICT DO NOTHING RETURNING 1
"""
CHANGE: Final = f"""
UPDATE {{table}} SET told = $2, epoch = $3, holder = $4, in_sync = $5, until = {UNTIL}
WHERE node = $1 AND place = 'granted' AND told = $7 RETURNING 1
"""
TELLING: Final = "WITH done AS ({change}) SELECT pg_notify('shmbroker_granted', '') FROM done"


class Sql:
    """`engine.Engine`."""

    ends_leases = False

    def __init__(self, address: Address, table: str, me: str, patience: float) -> None:
        """`patience`: for an answer, in seconds."""
        self.place = f"{address.place}, table {table}"
        name = address.parameters.get("dbname")
        self.shared = f"database {name}, table {table}" if name else ""  # else libpq says which
        self._address, self._table, self._me = address, table, me
        self._patience = patience
        self._database: Database | None = None

    def open(self, wake: Callable[[], None]) -> None:
        self.close()
        try:
            self._database = Database(self._address)
            self._ask(SETTINGS)
            self._ask("LISTEN shmbroker_granted")
            make_table(self._ask, self._table)
            if not self._ask(COLUMN, self._table):
                self._ask(ADD)
        except DatabaseFailed as error:
            self.close()
            raise EngineFailed(str(error)) from None

    @property
    def file(self) -> int | None:
        return self._database.file if self._database is not None else None

    def take_word(self) -> bool:
        try:
            return self._reached.was_told()
        except DatabaseFailed as error:
            raise EngineFailed(str(error)) from None

    def look(self, node: Node) -> Seen:
        rows = self._ask(LOOK, node.hex())
        if not rows:
            return Seen(None)
        told = str(rows[0][0])
        try:
            found = json.loads(told)
            lease = found["lease"] and Lease(str(found["lease"]["holder"]),
                                             int(found["lease"]["renewals"]))  # fmt: skip
            return Seen(ledger_of(json.dumps(found["ledger"])), lease, told)
        except (ValueError, TypeError, KeyError, Malformed) as error:
            raise EngineFailed(f"{self.place} has {told[:80]!r} of a node: {error}") from None

    def change(self, node: Node, seen: Seen, ledger: Ledger, lease: LeaseStep) -> bool:
        has = self._leased(seen, lease)
        told = json.dumps({
            "ledger": json.loads(text_of(ledger)),
            "lease": has and {"holder": has.holder, "renewals": has.renewals},
        })  # fmt: skip
        newest = ledger.newest
        change = TELLING.format(change=MAKE if seen.tag is None else CHANGE)
        return bool(self._ask(
            change, node.hex(), told, newest.epoch if newest else 0, has.holder if has else None,
            " ".join(sorted(ledger.known.members)) if ledger.known else "",
            ledger.lease_ms / 1000 if has else 0, seen.tag,
        ))  # fmt: skip

    def _leased(self, seen: Seen, lease: LeaseStep) -> Lease | None:
        """Also what is free is compared: it is in the text."""
        if lease is LeaseStep.TAKEN:
            return Lease(self._me, (seen.lease.renewals if seen.lease else 0) + 1)
        return None if lease is LeaseStep.FREED else seen.lease

    def nodes(self) -> list[Node]:
        return [bytes.fromhex(str(node)) for [node] in self._ask(NODES)]

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    @property
    def _reached(self) -> Database:
        if self._database is None:
            raise EngineFailed(f"{self.place} is not connected")
        return self._database

    def _ask(self, statement: str, *values: object) -> list[tuple[str | None, ...]]:
        try:
            return self._reached.ask(
                statement.replace("{table}", self._table), *values, patience=self._patience
            )
        except DatabaseFailed as error:
            raise EngineFailed(str(error)) from None
