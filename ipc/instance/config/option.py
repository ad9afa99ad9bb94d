"""The table of options of shmbroker.toml that concern one host, for reading and writing the file.

Options that concern other hosts stand in the rooms of netbridge that need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from shmbroker.ipc.instance.config.kind import (
    COMMANDS,
    DURATION,
    FLAG,
    FOLDER,
    GROUP,
    MEMBERS,
    NAME,
    NETWORK_VHOST,
    QUEUES,
    SECRET,
    SEGMENT,
    SIZE,
    TABLE,
    TEXT,
    VHOST_NAME,
    Kind,
    choice,
)

Default = str | bool | int | float | list[str]

NAMED_TABLES: Final = (
    "connectors", "acceptors", "credentials", "bridges", "cluster", "broadcast", "discovery",
    "grouping", "links", "mta", "queues",
)  # fmt: skip
"""Any number of each, with names: [connectors.NAME]; of [[mta]] those without one are numbered."""
LISTED_TABLE: Final = "mta"
"""May stand there as [[mta]]."""
NETBRIDGE_TABLES: Final = (*NAMED_TABLES, "link-defaults", "security", "console")
"""Read by netbridge/config/; here it is only known that they are there."""
PARTS_OF_HA: Final = ("replication", "zookeeper", "pair", "scale-down", "colocated")
"""Tables inside of [ha], read by netbridge/config/, too: [ha.replication]."""


def is_of_netbridge(key: str) -> bool:
    table, _, rest = key.partition(".")
    return table in NETBRIDGE_TABLES or (table == "ha" and rest.partition(".")[0] in PARTS_OF_HA)


STALL_LIMIT_MIN: Final = 0.25
"""Seconds.  A healthy journaler shows that it lives every 100 ms; a loaded machine is later."""
RENEW_MIN: Final = 0.01
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Option:
    table: str
    """`connectors.NAME`: any number of such tables, each with a name of its own."""
    name: str
    kind: Kind
    default: Default | None
    """None: there is none, and it is not needed."""
    help: str
    is_required: bool = False
    is_reloaded: bool = False
    """A running broker takes a new value."""

    @property
    def key(self) -> str:
        return f"{self.table}.{self.name}"

    def value_of(self, given: object) -> Any:
        """What it means; ValueError says what was expected."""
        return self.kind.parse(given)


OPTIONS: Final = (
    Option("instance", "name", NAME, "shmbroker", "How people see it: in the log, in status."),
    Option("instance", "vhost", VHOST_NAME, "default", "Programs connect to shm://VHOST."),
    Option("instance", "network-vhost", NETWORK_VHOST, "",
           "What programs and links of other hosts ask for; empty: / and the name in vhost."),
    Option("instance", "arena", SIZE, "256MiB",
           "Room for messages of a vhost that it makes; memory is used as it fills."),
    Option("instance", "group", GROUP, "",
           "Users of this group may use a vhost that it makes; docs/sharing.md."),
    Option("instance", "queues", QUEUES, [],
           "Queues that a live makes if they are not there, durable if it has a journal."),
    Option("store", "path", TEXT, "data",
           "The journal, the live lock.  Live and backup have the same."),
    Option("store", "journal", FOLDER, "",
           "The journal, if it has a folder of its own.  Live and backup have the same."),
    Option("store", "pages", FOLDER, "",
           "The page files, if they have a folder of their own.  Live and backup have the same."),
    Option("store", "segment", SEGMENT, "64MiB", "Of the journal."),
    Option("store", "lock", choice("file", "sql"), "file",
           "Who is live: by a lock on a file of the store, or by a lease in a SQL database."),
    Option("sql", "url", SECRET, "",
           "The database, as in postgresql://broker@db.example/broker"),
    Option("sql", "password", SECRET, "", "Unless it stands elsewhere: see docs/durability.md."),
    Option("sql", "table", TABLE, "shmbroker_lease", "Made if it is not there."),
    Option("sql", "renew", DURATION, "4s",
           "How often the lease is renewed; at most a third of its expiration."),
    Option("sql", "expiration", DURATION, "20s",
           "Whoever has not renewed it for so long is live no more."),
    Option("log", "path", TEXT, "log/shmbroker.log", "A line of JSON for each change of state."),
    Option("spool", "path", FOLDER, "",
           "Where the live writes how long messages took (docs/latency.md); empty: nowhere."),
    Option("spool", "interval", DURATION, "10s", "A histogram of each queue for so long."),
    Option("spool", "rotate", DURATION, "1h", "A file is complete after so long,"),
    Option("spool", "size", SIZE, "64MiB", "or with so many bytes."),
    Option("spool", "keep", SIZE, "1GiB", "Of more than that the oldest files go."),
    Option("spool", "parquet", FLAG, True, "Also as Parquet, if pyarrow is installed."),
    Option("ha", "policy", choice("shared-store", "replication", "live-only", "pair"),
           "shared-store",
           "What a backup has of its live: the same store, a copy, or (pair) nothing."),
    Option("ha", "role", choice("live", "backup", "auto"), "live",
           "A backup waits until the live is no more."),
    Option("ha", "members", MEMBERS, [],
           "Names and uris of all members (replication); of role auto the first is preferred."),
    Option("ha", "failover-on-shutdown", FLAG, False,
           "Whether to hand over when stopped in good order; a crash always does."),
    Option("ha", "allow-failback", FLAG, True,
           "A live that comes back asks for its role; a backup that acts gives it."),
    Option("ha", "restart-backup", FLAG, True,
           "Who has given the role back is backup again; else it ends."),
    Option("ha", "wait-for-activation", FLAG, True,
           "A live says that it has started (to systemd) when it is live, and not before."),
    Option("ha", "on-promote", COMMANDS, [],
           "A command, or a list of them, run before a backup becomes live.", is_reloaded=True),
    Option("ha", "on-promote-failure", choice("refuse", "continue"), "refuse",
           "Whether a command that fails keeps the backup from becoming live.", is_reloaded=True),
    Option("ha", "on-promote-timeout", DURATION, "10s", "Longer than that is failed.",
           is_reloaded=True),
    Option("ha", "queue-replication", FLAG, False,
           "Single queues may follow queues of another broker, and others those of this one; of a "
           "replicated node they always may be followed."),
    Option("ha", "replicate", choice("none", "configuration", "all"), "all",
           "What a member that takes over has of durable queues, and of exchanges, that do not "
           "say it (replication)."),
    Option("ha", "replica-timeout", DURATION, "1s",
           "Confirms wait no longer for a queue elsewhere that follows, and has said nothing.",
           is_reloaded=True),
    Option("ha", "stall-limit", DURATION, "0s",
           "A backup kills a live on its host that hangs for so long; at least 250ms, 0s: never."),
)  # fmt: skip
