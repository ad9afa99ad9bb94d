"""Containers, as namespaces make them: with a /dev/shm or pid namespace of their own, or shared."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import shmbroker
from shmbroker.ipc.doctor import container
from tests.cli.command import Shell
from tests.support.other_user import in_child, with_own_shm

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="namespaces are root's to make")

MEMBER = """
import sys, shmbroker
broker = shmbroker.connect(f"shm://{sys.argv[1]}", name="contained")
orders = broker.declare_queue("orders")
orders.publish(b"a")
taken = orders.get()
print("ready", flush=True)
sys.stdin.read()
"""
UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


@contextmanager
def contained(vhost: str) -> Iterator[subprocess.Popen[str]]:
    """A participant in a pid namespace of its own; it has taken a message."""
    command = [*UNSHARE, sys.executable, "-c", MEMBER, vhost]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


def test_one_in_another_pid_namespace_lives_and_dies_for_us(vhost: str) -> None:
    """Its lock tells of both."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        with contained(vhost) as child:
            (other,) = (each for each in broker.participants() if each.name == "contained")
            assert other.state == "live"
            assert other.pid < 10  # as it is counted there
            assert broker.repair() == 0
            with pytest.raises(shmbroker.Empty):
                broker.queue("orders").get(timeout=0)
            child.kill()
        with broker.queue("orders").get(timeout=30) as message:
            assert message.body == b"a"
            assert message.deliveries == 1


def test_a_repairer_notices_its_death_soon(vhost: str) -> None:
    """It has no descriptor of the process, and looks every 100 ms."""
    with shmbroker.connect(f"shm://{vhost}") as broker, contained(vhost) as child:
        child.kill()
        child.wait()
        ends_at = time.monotonic() + 30
        while broker.repair_for(1.0) == 0:
            assert time.monotonic() < ends_at


def test_a_vhost_is_not_seen_in_another_dev_shm(vhost: str) -> None:
    def look() -> None:
        with pytest.raises(shmbroker.NotFound):
            shmbroker.connect(f"shm://{vhost}")
        with shmbroker.connect(f"shm://{vhost}", create=True, arena_bytes=1 << 20) as broker:
            assert not broker.queues()  # it has the name only

    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("orders")
        in_child(look, with_own_shm("64m"))


def test_doctor_finds_participants_that_do_not_see_each_other(vhost: str) -> None:
    shell = Shell(vhost)

    def found() -> list[str]:
        return [
            each["problem"]
            for each in shell("doctor", "--json").json
            if each["subject"] == f"vhost {shell.vhost!r}"
        ]

    with contained(shell.vhost):
        assert not found()  # we look from outside, and take no part
        with shmbroker.connect(f"shm://{shell.vhost}", name="outside"):
            (problem,) = found()
            assert "2 pid namespaces" in problem
            assert "contained (1); outside (2)" in problem
    assert not found()


def test_a_container_without_a_vhost_is_told_of_dev_shm() -> None:
    assert not list(container.alone([], container.HOST))
    assert not list(container.alone(["orders"], 1))
    (note,) = container.alone([], 1)
    assert "--ipc=host" in note.remedy
