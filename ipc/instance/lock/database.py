"""A connection to PostgreSQL that never waits for longer than it was told to.

psycopg connects; what is asked then goes through libpq's calls that do not wait, because a server
that is stopped, or a network that swallows everything, would else keep us for minutes.
Whatever goes wrong is DatabaseFailed, and its text has no secret in it; the connection is of no use
any more.  Not for two threads at once.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.instance.config.config import FILE, Config
from shmbroker.ipc.instance.config.secret import PLAIN, check_kept

PATIENCE_SECONDS_MIN: Final = 2
"""libpq takes no shorter one for connecting."""

Row = tuple[str | None, ...]

SETTINGS: Final = """
SELECT set_config('default_transaction_isolation', 'read committed', false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                  WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)
"""
"""A lease that is forgotten when the database restarts is none."""


class DatabaseFailed(Error):
    """The database of a lease cannot be used; the message says where it is, and why."""


def psycopg() -> Any:
    """Imported by who needs it."""
    try:
        import psycopg
    except ImportError:
        raise DatabaseFailed(
            'a lease in a SQL database needs psycopg: pip install "shmbroker[sql]"'
        ) from None
    return psycopg


@dataclass(frozen=True)
class Address:
    """Where a database is, and how to get in."""

    parameters: dict[str, Any] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    @property
    def place(self) -> str:
        """For people."""
        known = self.parameters.get
        host = known("host") or known("hostaddr") or "the host that PGHOST or libpq says"
        port = f":{known('port')}" if known("port") else ""
        return f"database {self.name + ' on ' if self.name else ''}{host}{port}"

    @property
    def name(self) -> str:
        """Empty: libpq says it."""
        return str(self.parameters.get("dbname") or self.parameters.get("user") or "")

    def failed(self, why: str) -> DatabaseFailed:
        for secret in self.secrets:
            why = why.replace(secret, "***")
        return DatabaseFailed(f"{self.place}: {' '.join(why.split())}")


def address_of(config: Config) -> Address:
    """As configured; SecretRefused or DatabaseFailed if that is not right."""
    library, folder, sql = psycopg(), config.folder, config.sql
    url = sql.url.revealed("sql.url", folder)
    password = sql.password.revealed("sql.password", folder)
    try:
        parameters: dict[str, Any] = library.conninfo.conninfo_to_dict(url)
    except library.Error:  # its text may quote what is in there
        raise DatabaseFailed(
            f"{folder / FILE}: sql.url is no address of a database, as in "
            '"postgresql://broker@db.example/broker"'
        ) from None
    is_plain = sql.url.kind == PLAIN and "password" in parameters
    if is_plain or (sql.password.kind == PLAIN and password):
        check_kept(folder / FILE)
    parameters |= {"password": password} if password else {}
    defaults = {
        "application_name": f"shmbroker {config.name}",
        "connect_timeout": max(PATIENCE_SECONDS_MIN, int(sql.renew)),
        "target_session_attrs": "read-write",
    }
    secrets = (
        (url, parameters.get("password")) if is_plain or sql.url.kind != PLAIN else (password,)
    )
    return Address({**defaults, **parameters}, tuple(each for each in secrets if each))


class Database:
    def __init__(self, address: Address) -> None:
        self.address = address
        library = psycopg()
        try:
            self._connection = library.connect(**address.parameters, autocommit=True)
        except (library.Error, OSError, UnicodeError) as error:
            raise address.failed(str(error)) from None
        self._libpq = self._connection.pgconn
        self._library = library
        self._poll = select.poll()
        self._poll.register(self.file, select.POLLIN)

    @property
    def file(self) -> int:
        """Readable when there is word, or an answer."""
        return int(self._libpq.socket)

    def ask(self, statement: str, *values: object, patience: float) -> list[Row]:
        """What it answers, as text; `patience` in seconds."""
        given = [None if value is None else str(value).encode() for value in values]
        with self._guarded():
            return self._asked(statement, given, patience)

    def was_told(self) -> bool:
        """Whether somebody has notified us."""
        with self._guarded():
            return self._told()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (self._library.Error, OSError) as error:
            raise self.address.failed(str(error)) from None

    def _asked(self, statement: str, values: list[bytes | None], patience: float) -> list[Row]:
        ends_at = time.monotonic() + patience
        self._libpq.send_query_params(statement.encode(), values)
        rows: list[Row] = []
        while (result := self._result(ends_at, patience)) is not None:
            if result.status not in (self._library.pq.ExecStatus.TUPLES_OK,
                                     self._library.pq.ExecStatus.COMMAND_OK):  # fmt: skip
                raise self.address.failed(result.get_error_message())
            rows += [
                tuple(_text(result.get_value(row, column)) for column in range(result.nfields))
                for row in range(result.ntuples)
            ]
        return rows

    def _result(self, ends_at: float, patience: float) -> Any:
        while self._libpq.is_busy():
            left = ends_at - time.monotonic()
            if left <= 0 or not self._poll.poll(left * 1000):
                raise self.address.failed(f"it has not answered within {patience:g} s")
            self._libpq.consume_input()
        return self._libpq.get_result()

    def _told(self) -> bool:
        was_told = False
        self._libpq.consume_input()
        while self._libpq.notifies() is not None:
            was_told = True
        return was_told

    def close(self) -> None:
        """Says goodbye, and does not wait."""
        self._connection.close()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
