"""The table of options of shmbroker.toml, for reading and writing the file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

from shmbroker.ipc.base.units import parse_duration, parse_size
from shmbroker.ipc.instance.config.secret import Secret, secret_of

Kind = Literal[
    "text",
    "folder",
    "group",
    "flag",
    "size",
    "segment",
    "duration",
    "role",
    "lock",
    "command",
    "secret",
    "table",
]

ROLES: Final = ("live", "backup")
LOCKS: Final = ("file", "sql")
STALL_LIMIT_MIN: Final = 0.25
"""Seconds.  A healthy journaler shows that it lives every 100 ms; a loaded machine is later."""
SEGMENT_UNIT: Final = 4096
SEGMENT_MIN: Final = 4 * SEGMENT_UNIT
SEGMENT_MAX: Final = 1 << 40
RENEW_MIN: Final = 0.01
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Option:
    table: str
    name: str
    kind: Kind
    default: str | bool | list[str]
    help: str

    @property
    def key(self) -> str:
        return f"{self.table}.{self.name}"

    def value_of(self, given: object) -> Any:
        """What it means; ValueError says what was expected."""
        return PARSERS[self.kind](given)


def _text(given: object) -> str:
    if not isinstance(given, str) or not given or "\0" in given:
        raise ValueError('text, as in "orders"')
    return given


def _folder(given: object) -> str:
    if not isinstance(given, str) or "\0" in given:
        raise ValueError('a folder, as in "latency", or "" for none')
    return given


def _group(given: object) -> str:
    if not isinstance(given, str) or "\0" in given:
        raise ValueError('a group, as in "orders", or "" for none')
    return given


def _flag(given: object) -> bool:
    if not isinstance(given, bool):
        raise ValueError("true or false")
    return given


def _size(given: object) -> int:
    try:
        return parse_size(given if isinstance(given, str) else "")
    except ValueError:
        raise ValueError('a size, as in "64MiB"') from None


def _segment(given: object) -> int:
    size = _size(given)
    if size % SEGMENT_UNIT or not SEGMENT_MIN <= size <= SEGMENT_MAX:
        raise ValueError('a size in whole pages of 4KiB, from 16KiB to 1TiB, as in "64MiB"')
    return size


def _duration(given: object) -> float:
    try:
        return parse_duration(given if isinstance(given, str) else "")
    except ValueError:
        raise ValueError('a time, as in "500ms"') from None


def _role(given: object) -> str:
    if given not in ROLES:
        raise ValueError('"live" or "backup"')
    return str(given)


def _lock(given: object) -> str:
    if given not in LOCKS:
        raise ValueError('"file" or "sql"')
    return str(given)


def _secret(given: object) -> Secret:
    return secret_of(given)


def _table(given: object) -> str:
    if not isinstance(given, str) or not re.fullmatch(r"([a-z_]\w*\.)?[a-z_]\w*", given, re.A):
        raise ValueError('the name of a table, as in "shmbroker_lease" or "broker.lease"')
    return given


def _command(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(
        isinstance(word, str) and "\0" not in word for word in given
    ):
        raise ValueError('words, as in ["/usr/local/bin/may-i", "orders"]')
    return tuple(given)


PARSERS: Final = {
    "text": _text,
    "folder": _folder,
    "group": _group,
    "flag": _flag,
    "size": _size,
    "segment": _segment,
    "duration": _duration,
    "role": _role,
    "lock": _lock,
    "command": _command,
    "secret": _secret,
    "table": _table,
}

OPTIONS: Final = (
    Option("instance", "name", "text", "shmbroker", "How people see it: in the log, in status."),
    Option("instance", "vhost", "text", "default", "Programs connect to shm://VHOST."),
    Option("instance", "arena", "size", "256MiB",
           "Room for messages of a vhost that it makes; memory is used as it fills."),
    Option("instance", "group", "group", "",
           "Users of this group may use a vhost that it makes; docs/sharing.md."),
    Option("store", "path", "text", "data",
           "The journal, the live lock.  Live and backup have the same."),
    Option("store", "segment", "segment", "64MiB", "Of the journal."),
    Option("store", "lock", "lock", "file",
           "Who is live: by a lock on a file of the store, or by a lease in a SQL database."),
    Option("sql", "url", "secret", "",
           "The database, as in postgresql://broker@db.example/broker"),
    Option("sql", "password", "secret", "", "Unless it stands elsewhere: see docs/durability.md."),
    Option("sql", "table", "table", "shmbroker_lease", "Made if it is not there."),
    Option("sql", "renew", "duration", "4s",
           "How often the lease is renewed; at most a third of its expiration."),
    Option("sql", "expiration", "duration", "20s",
           "Whoever has not renewed it for so long is live no more."),
    Option("log", "path", "text", "log/shmbroker.log", "A line of JSON for each change of state."),
    Option("spool", "path", "folder", "",
           "Where the live writes how long messages took (docs/latency.md); empty: nowhere."),
    Option("spool", "interval", "duration", "10s", "A histogram of each queue for so long."),
    Option("spool", "rotate", "duration", "1h", "A file is complete after so long,"),
    Option("spool", "size", "size", "64MiB", "or with so many bytes."),
    Option("spool", "keep", "size", "1GiB", "Of more than that the oldest files go."),
    Option("spool", "parquet", "flag", True, "Also as Parquet, if pyarrow is installed."),
    Option("ha", "role", "role", "live", "A backup waits until the live is no more."),
    Option("ha", "failover-on-shutdown", "flag", False,
           "Whether to hand over when stopped in good order; a crash always does."),
    Option("ha", "allow-failback", "flag", True,
           "A live that comes back asks for its role; a backup that acts gives it."),
    Option("ha", "restart-backup", "flag", True,
           "Who has given the role back is backup again; else it ends."),
    Option("ha", "wait-for-activation", "flag", True,
           "A live says that it has started (to systemd) when it is live, and not before."),
    Option("ha", "on-promote", "command", [],
           "Run before a backup becomes live; if it fails, the backup does not."),
    Option("ha", "on-promote-timeout", "duration", "10s", "Longer than that is failed."),
    Option("ha", "stall-limit", "duration", "0s",
           "A backup kills a live on its host that hangs for so long; at least 250ms, 0s: never."),
)  # fmt: skip
