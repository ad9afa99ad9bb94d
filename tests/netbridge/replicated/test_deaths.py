"""Processes of members whose death the kernel would tell."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from shmbroker.ipc.instance import process
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.member.codec import Here
from shmbroker.netbridge.replicated.deaths import Deaths


def test_a_process_for_which_no_file_can_be_opened_is_not_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: Any) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    me = process.this()
    here = Here("", me.pid, me.started, me.boot, me.namespace)
    monkeypatch.setattr(os, "pidfd_open", refused)
    with NetworkThread() as thread:
        deaths = Deaths(thread, lambda _: None)
        thread.ask(lambda: deaths.watch("b", here))
        monkeypatch.undo()
        thread.ask(lambda: deaths.watch("b", here))
        thread.ask(lambda: deaths._unwatch("b"))
