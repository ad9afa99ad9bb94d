"""The events of the log of an instance: what each says, and what to do about it.

`python -m shmbroker.cli.log_events` writes the tables of docs/log-events.md anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from shmbroker.cli.generated import put

BEGIN: Final = "<!-- events: made by python -m shmbroker.cli.log_events -->"
END: Final = "<!-- end of events -->"
NOTHING: Final = ""


class Event(NamedTuple):
    name: str
    when: str
    what_to_do: str = NOTHING


STATES: Final = (
    Event("starting", "It has read its configuration, and looks for its store."),
    Event("passive", "It waits; `shmbroker check standby` says whether it could take over."),
    Event("promoting", "It becomes live: the command of `ha.on-promote` runs."),
    Event("restoring", "It makes the queues anew from the journal; the vhost is not there yet."),
    Event("live", "Programs may use its queues."),
    Event("handing over", "It writes what is in the rings, and lets another one be live."),
    Event("stopped", "It ended in good order."),
    Event("failed", "It ended, or could not start: `why` has reason and file.", "what `why` says"),
)
INSTANCE: Final = (
    Event("restored", "So many messages came back from the journal."),
    Event("repaired what a participant left", "A program died: its messages went back."),
    Event("queue made", "A queue of `instance.queues` was not there."),
    Event("settings", "Of a pattern of `[queues]`: the vhost has what the file says now."),
    Event("reloaded", "The configuration was read again: what is applied, what needs a restart."),
    Event("reload refused", "The new configuration has an error; nothing changed.", "correct it"),
    Event("warning", "Something may go wrong later: `why`.", "what `why` says"),
    Event("lines left out", "The log could not be written for a while: so many lines are missing.",
          "make room on its disk"),
    Event("disk full", "The disk of the journal, or of pages, is full; nothing is lost.",
          "make room; it goes on by itself"),
    Event("disk has room", "It goes on."),
    Event("spool is not written", "Latencies are not kept: `why`.", "make room, or see the mode"),
    Event("spool is written", "Latencies are kept again."),
    Event("spool lacks queues", "Latencies of these could not be read, and are in a later "
          "interval: `why`.", "if it stays: what `why` says"),
    Event("spool lacks nothing", "All could be read again."),
)  # fmt: skip
ROLES: Final = (
    Event("asked for the role back", "It was live before, and asks the backup for its role."),
    Event("on-promote refused", "The command failed: it does not become live.",
          "run the command of `ha.on-promote` by hand"),
    Event("on-promote failed", "The command failed, and it becomes live all the same.",
          "run the command by hand"),
    Event("killed a live that hangs", "Its journal had made no progress for `ha.stall-limit`.",
          "find out what it waited for: disk, memory"),
    Event("live.lock was made anew", "The record of who is live was damaged.",
          "find out what has written there"),
    Event("lost the lease", "The database did not renew it in time: it is live no more.",
          "the database; `sql.expiration`"),
    Event("database unreachable", "The database of the lease does not answer.", "the database"),
    Event("database reachable", "It answers again."),
    Event("not scaled down", "Its messages went to no other node: `why`.", "what `why` says"),
)  # fmt: skip
MEMBERS: Final = (
    Event("replication", "The line `replication` of `shmbroker status` changed: `state`."),
    Event("in sync", "This replica has all that the live has."),
    Event("replica lost", "A replica ended, or does not answer.", "its log"),
    Event("level fell", "From now on a confirm means less: `detail`.", "start the backup"),
    Event("level restored", "A confirm means so much again: `detail`."),
    Event("vote won", "It may be live, of this epoch."),
    Event("vote lost", "It may not be live: `detail`.", "who is: `shmbroker ha status DIR --all`"),
    Event("took over", "It is live, of this epoch."),
    Event("drained", "All that it had is at another node of the cluster: `detail`.",
          "start the member that `detail` names"),
    Event("handed over", "Another member is live; nobody: the group is parked.",
          "if it is parked: `shmbroker ha activate`"),
    Event("failback asked", "A member that was live asks for its role."),
    Event("failback agreed", "The live gives it."),
    Event("failback refused", "The live keeps it: `detail`."),
    Event("held", "It does not become live, because it may lack what was confirmed.",
          "start the member that `detail` names, or `shmbroker ha activate --force`"),
    Event("fenced", "Another member has a higher epoch: it confirms nothing, joins as a backup."),
    Event("suspended", "It confirms nothing, and delivers no durable message.",
          "start its backup or the witness, or `shmbroker ha continue`"),
    Event("conflict", "Two members serve one epoch, or two nodes.",
          "`shmbroker ha yield` on one; of two nodes stop the one that lacks your messages"),
    Event("stale", "It may not start as live: another one is, or was later.",
          "start the other one first"),
    Event("not in sync", "It was not in sync with its live, and does not take over.",
          "start that live"),
    Event("forced", "A person has made it live: `shmbroker ha activate --force`."),
    Event("isolated", "It reaches none of `network-check`.", "its network"),
    Event("not isolated", "It reaches one again."),
    Event("diverged", "A journal was set aside that has messages which no other member has.",
          "`shmbroker journal diverged list`"),
    Event("replica", "A copy of the journal: `state`, and what `confirms` means now."),
    Event("witness", "A witness listens, ends, or has granted an epoch: `state`."),
    Event("lock manager", "ZooKeeper, PostgreSQL or the voters: `state`, `reason`.",
          "if it is unreachable: the engine at `place`"),
)  # fmt: skip
NETWORK: Final = (
    Event("acceptor", "It listens, or cannot: `state`, `detail`.",
          "if it cannot: who else has the port"),
    Event("link", "A link changed its state: `state`, `reason`, the other end.",
          "if it is refused: the credentials; [troubleshooting](troubleshooting.md)"),
    Event("bridge", "A bridge cannot take or send: `what`, `detail`.", "queue and transformer"),
    Event("network", "A network link could not fetch from a queue, or something failed: `what`.",
          "what `detail` says"),
    Event("mta", "An agent drops the oldest that waits, or cannot bind: `state`, `detail`.",
          "`shmbroker mta list`"),
    Event("pair", "A broker of a pair changed its state, or refused somebody: `why`, `what`."),
    Event("queue replica", "A queue that follows another one changed its `state`, or is not "
          "waited for any more.", "`shmbroker ha replicas`"),
    Event("cluster", "A node came, went, gives messages away, and so on: `state`, `detail`."),
    Event("grouping", "Where a group goes could not be decided, or has changed: `state`."),
    Event("broadcast", "It announces itself, or cannot: `state`, `detail`."),
    Event("discovery", "It listens for others, or cannot: `state`, `detail`."),
)  # fmt: skip
CONSOLE: Final = (
    Event("console", "The console listens at `url`."),
    Event("console ended", "It does so no more."),
    Event("console failed", "It could not start, or has failed: `why`; the broker goes on.",
          "what `why` says"),
    Event("console reloaded", "It has read its part of the configuration again."),
    Event("console reload refused", "That has an error; nothing changed.", "correct it"),
    Event("console warning", "A warning of its web server."),
    Event("console login", "Somebody has logged in: `user`, `role`, `address`."),
    Event("console refused", "A login or a request was refused: `why`.",
          "if there are many: who tries it"),
    Event("audit", "Somebody has changed something: `verb`, `user`. With `why`, it failed, and a "
          "part of it may be done."),
)  # fmt: skip
PARTS: Final = {
    "States": STATES,
    "The instance": INSTANCE,
    "Who is live": ROLES,
    "Members of a replicated node": MEMBERS,
    "Other hosts": NETWORK,
    "Console": CONSOLE,
}


def tables() -> str:
    lines = []
    for part, events in PARTS.items():
        lines += [f"## {part}", "", "| event | when | what to do |", "|---|---|---|"]
        lines += [f"| `{each.name}` | {each.when} | {each.what_to_do} |" for each in events]
        lines.append("")
    return "\n".join(lines)


def renewed(page: str) -> str:
    return put(page, BEGIN, tables(), END)


def main() -> None:
    path = Path("docs/log-events.md")
    path.write_text(renewed(path.read_text()))


if __name__ == "__main__":
    main()
