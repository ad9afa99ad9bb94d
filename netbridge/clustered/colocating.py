"""Backups that lives of a cluster run for each other: asked for, granted, started and ended.

What is decided is in `asking.py` and `hosting.py` of netbridge/cluster/.  All but what is said
otherwise is of the network thread; starting a process is of the worker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count
from typing import Any, Final

from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.base.refusal import told
from shmbroker.netbridge.broker import hosted
from shmbroker.netbridge.broker.hosted import Child
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.cluster.asking import Action, Asking, Count, Release, Request
from shmbroker.netbridge.cluster.codec import WHY_BYTES_MAX, encode
from shmbroker.netbridge.cluster.hosting import Begin, Hosting, Terms, name_of
from shmbroker.netbridge.cluster.machine import NEVER, Membership
from shmbroker.netbridge.cluster.said import (
    Announcement,
    BackupEnds,
    Counted,
    Counts,
    Granted,
    OfBackups,
    Releases,
    Requests,
)
from shmbroker.netbridge.clustered.setup import Setup
from shmbroker.netbridge.config.hosted import Host, given_of
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.wire.frame import Talk

FILE: Final = "colocated"
"""In run/: which backups run here, and where ours does."""
Log = Callable[[str, str, str, Node], None]


class Colocating:
    def __init__(
        self,
        thread: NetworkThread,
        worker: Worker,
        setup: Setup,
        log: Log,
        shows: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self._thread, self._worker, self._setup = thread, worker, setup
        self._log, self._shows = log, shows
        config, found = setup.config, setup.colocated
        self._asking: Asking | None = None
        if found is not None and found.requests:
            self._asking = Asking(found.retries, found.interval)
        most = 0 if found is None else found.max_backups
        terms = Terms(most, config.policy, setup.group_name, config.vhost)
        self._hosting = Hosting(terms, hosted.numbers(config.folder) if most else {})
        self._children: dict[Node, Child] = {}
        self._for: dict[Node, Begin] = {}
        """What was wanted of those that run here, or did."""
        self._refused: dict[Node, str] = {}
        """Why, as the log has it: there is no line for each attempt."""
        self._lives: Mapping[Node, End] = {}
        self._names: dict[Node, str] = {}
        self._node: Node = bytes(16)
        """Our own."""
        self._numbers = count(1)
        self._shown: dict[str, Any] = {}

    @property
    def deadline(self) -> float:
        return NEVER if self._asking is None else self._asking.due

    # --- what happens -------------------------------------------------------------------------

    def becomes(self, *, is_live: bool) -> None:
        if self._asking is not None:
            self._does(self._asking.becomes(time.monotonic(), is_live=is_live))

    def reaches(self, lives: Mapping[Node, End], machine: Membership) -> None:
        """Links to the other lives."""
        former, self._lives = self._lives, lives
        self._names |= {node: each.name for node, each in machine.lives.items()}
        if machine.me is not None:
            self._node = machine.me.node
        if self._asking is not None:
            anew = {node for node, end in lives.items() if former.get(node, end) is not end}
            self._does(self._asking.reaches(lives.keys(), time.monotonic(), anew))
        self._show()

    def reload(self, setup: Setup) -> None:
        """Backups that run here have other credentials, too; a secret may be in a file."""
        self._setup = setup
        for node, child in self._children.items():
            again = partial(self._again, child, self._for[node])
            self._worker.do(again, partial(self._reloaded, node))

    def tick(self, now: float) -> None:
        if self._asking is not None and now >= self._asking.due:
            self._does(self._asking.tick(now))

    def heard(self, end: End, at: Announcement | None, what: OfBackups) -> None:
        """Of a live; what others say is of no live any more."""
        if at is None or not at.is_live:
            return
        match what:
            case Counts():
                self._say(end, self._hosting.counted(at.node, what.number))
            case Requests():
                self._requested(end, at, what)
            case Releases():
                self._release(at.node)
            case _:
                self._answered(at.node, what)

    def _answered(self, node: Node, what: Counted | Granted | BackupEnds) -> None:
        asking, now = self._asking, time.monotonic()
        if asking is None:
            return
        match what:
            case Counted():
                self._does(asking.counted(node, what, now))
            case Granted():
                self._does(asking.answered(node, what, now))
            case BackupEnds():
                self._does(asking.ended(node, what.why, now))
        self._show()

    # --- ours, at another one -----------------------------------------------------------------

    def _does(self, actions: Iterable[Action]) -> None:
        for action in list(actions):
            if isinstance(action, Count):
                self._tell(action.node, Counts(next(self._numbers)))
            elif isinstance(action, Request):
                self._tell(action.node, self._request(action.count))
            elif isinstance(action, Release):
                self._tell(action.node, Releases())
            else:
                who = self._names.get(action.node, action.node.hex())
                self._log(action.level, action.state, f"{who}: {action.detail}", action.node)

    def _request(self, known: int) -> Requests:
        config, found = self._setup.config, self._setup.colocated
        assert found is not None, "it asks"
        own = (config.store, config.journal or "", config.pages or "")
        store, journal, pages = ("", "", "") if found.member else map(str, own)
        return Requests(
            next(self._numbers), known, config.policy, self._setup.group_name, config.name,
            config.vhost, config.network_vhost, store, journal, pages, found.member,
        )  # fmt: skip

    def _tell(self, node: Node, what: OfBackups) -> None:
        if (end := self._lives.get(node)) is not None:
            self._say(end, what)

    def _say(self, end: End, what: OfBackups) -> None:
        end.say(Talk(encode(what)))

    # --- those of others, here ----------------------------------------------------------------

    def _requested(self, end: End, at: Announcement, what: Requests) -> None:
        answer = self._hosting.requested(at.node, what)
        if isinstance(answer, Begin):
            self._for[at.node] = answer
            work = partial(self._begin, answer)
            self._worker.do(work, partial(self._begun, end, answer))
        else:
            self._answer(end, at.node, answer, what.name)

    def _answer(self, end: End, node: Node, granted: Granted, whom: str) -> None:
        former, self._refused[node] = self._refused.get(node, ""), granted.why
        if granted.why not in ("", former) and not granted.is_old:
            self._log("warning", "refuses a backup", f"{whom}: {granted.why}", node)
        self._say(end, granted)
        self._show()

    def _begin(self, wanted: Begin) -> Child:
        """In the worker."""
        folder, name = self._setup.config.folder, name_of(wanted.number)

        def ended(code: int) -> None:
            self._thread.call(lambda: self._ended(wanted.node, code))

        return hosted.begin(folder, name, wanted.node, self._given(wanted), ended)

    def _given(self, wanted: Begin) -> Mapping[str, object]:
        setup = self._setup
        assert setup.colocated is not None, "it runs none otherwise"
        host = Host(setup.config.folder, setup.cluster.connector, self._node)
        return given_of(setup.colocated, host, wanted.number, wanted.wanted)

    def _begun(self, end: End, wanted: Begin, child: Child | Exception) -> None:
        node, whom = wanted.node, wanted.wanted.name
        if isinstance(child, Exception):
            self._hosting.ended(node)
            if not isinstance(child, (Error, OSError, ValueError)):
                raise child
            why = told(child) if isinstance(child, (Error, OSError)) else str(child)
            granted = Granted(wanted.wanted.number, "", _short(why), is_old=False)
            self._answer(end, node, granted, whom)
            # while it was being started it may have counted as theirs
            self._tell(node, BackupEnds(name_of(wanted.number), granted.why))
            return
        self._hosting.begun(node)
        self._children[node] = child
        name = name_of(wanted.number)
        self._log("info", "runs a backup", f"{name} of {whom}", node)
        self._answer(end, node, Granted(wanted.wanted.number, name, "", is_old=False), whom)
        if child.code is not None:  # it was told when it was not known here yet
            self._ended(node, child.code)
        elif self._hosting.hosted[node].is_released:
            child.stop()

    def _again(self, child: Child, wanted: Begin) -> None:
        """In the worker."""
        child.reload(self._given(wanted))

    def _reloaded(self, node: Node, failed: Exception | None) -> None:
        if failed is None:
            return
        if not isinstance(failed, (Error, OSError, ValueError)):
            raise failed
        why = told(failed) if isinstance(failed, (Error, OSError)) else str(failed)
        whom = self._for[node].wanted.name
        self._log("warning", "does not reload a backup", f"that of {whom}: {why}", node)

    def _release(self, node: Node) -> None:
        child, at = self._children.get(node), self._hosting.hosted.get(node)
        if child is not None:
            child.stop()
        elif at is not None:
            at.is_released = True

    def _ended(self, node: Node, code: int) -> None:
        child = self._children.pop(node, None)
        at = self._hosting.hosted.get(node)
        if child is None or at is None:
            return
        self._hosting.ended(node)
        name, why = name_of(at.number), f"exit code {code}"
        if code and child.why:
            why += f": {child.why}"
        self._log("warning" if code else "info", "runs a backup no more",
                  f"{name} of {self._for[node].wanted.name}: {why}", node)  # fmt: skip
        self._tell(node, BackupEnds(name, _short(why)))
        self._show()

    def end(self) -> None:
        """In another thread: none of them runs when this returns."""

        def step() -> list[Child]:
            self._hosting.is_leaving = True
            children, self._children = list(self._children.values()), {}
            return children

        for each in self._thread.ask(step):
            each.end()

    # --- people -------------------------------------------------------------------------------

    def _show(self) -> None:
        asking, found = self._asking, self._setup.colocated
        if found is None:
            return
        shown: dict[str, Any] = {
            "process": os.getpid(),
            "runs": [
                {"name": name_of(each.number), "for": self._for[node].wanted.name,
                 "node": node.hex()}
                for node, each in sorted(self._hosting.hosted.items()) if each.runs
            ],
        }  # fmt: skip
        if asking is not None:
            host = asking.host
            shown |= {
                "backup": "" if host is None else asking.backup,
                "at": "" if host is None else self._names.get(host, host.hex()),
                "why": asking.why,
            }
        if shown != self._shown:
            self._shown = shown
            self._shows(FILE, shown)


def _short(why: str) -> str:
    return why.encode()[:WHY_BYTES_MAX].decode(errors="ignore")
