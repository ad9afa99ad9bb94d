"""Nodes that were scaled down: this one, and those whose place this one takes; kept in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path

from shmbroker.ipc.base.refusal import told
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.cluster.machine import Action, Membership
from shmbroker.netbridge.cluster.said import Left, Replaces
from shmbroker.netbridge.clustered.setup import keep_left
from shmbroker.netbridge.election.question import Node


class LeftNodes:
    """Of the network thread."""

    def __init__(
        self, place: Path, worker: Worker, machine: Membership,
        does: Callable[[Iterable[Action]], None], log: Callable[[str, str, str], None],
    ) -> None:  # fmt: skip
        """`place`: of the file; `does`: what the machine says."""
        self._place, self._worker, self._machine = place, worker, machine
        self._does, self._log = does, log

    def has_left(self, to: Node, done: Future[None]) -> None:
        """All that was here is at that node, which has kept that as well."""
        me = self._machine.me
        if me is not None:
            self._does(self._machine.leaves(Left(me.node, me.epoch, to)))

        def kept(why: str) -> None:
            self._not_kept(why)
            done.set_result(None)

        self._keep(kept)

    def replaces(self, what: Replaces, answer: Callable[[str], None]) -> None:
        """Here is what this node has had."""
        me = self._machine.me
        if me is not None:
            self._does(self._machine.leaves(Left(what.node, what.epoch, me.node)))
        self._keep(answer)

    def keep(self) -> None:
        self._keep(self._not_kept)

    def _not_kept(self, why: str) -> None:
        if why:
            self._log("error", "not kept", why)

    def _keep(self, kept: Callable[[str], None]) -> None:
        """`kept`: why it is not, or nothing."""
        left = tuple(self._machine.left.values())

        def keep() -> str:
            try:
                keep_left(self._place, left)
            except OSError as error:
                return told(error)
            return ""

        def answered(why: str | Exception) -> None:
            if isinstance(why, Exception):
                raise why
            kept(why)

        self._worker.do(keep, answered)
