"""What the backup that is next has attached: it is quicker by it, and nobody sees any of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.vhost import vhost as vhosts
from tests.ipc.instance.conftest import Make
from tests.ipc.instance.test_pair import bodies, eventually, is_announced, put
from tests.support.runs import PATIENCE_SECONDS, Run


def maps(run: Run, vhost: str) -> list[str]:
    """The lines of a process's mappings that are of the vhost."""
    assert run.process is not None
    lines = Path(f"/proc/{run.process.pid}/maps").read_text().splitlines()
    return [line for line in lines if f"/shmbroker.{vhost}." in line]


def is_attached(run: Run, vhost: str) -> Run:
    def has_catalog() -> bool:
        return any(line.endswith(".catalog") for line in maps(run, vhost))

    eventually(has_catalog)
    return run


def pair(make: Make, vhost: str) -> tuple[Run, Run]:
    live = make("a").start().becomes("live")
    return live, is_attached(is_announced(make("b", "backup").start()), vhost)


def test_it_takes_no_part(make: Make, vhost: str) -> None:
    pair(make, vhost)
    put(vhost, b"1")
    with shmbroker.connect(f"shm://{vhost}") as broker:
        names = [each.name for each in broker.participants()]
        assert "broker a" in names
        assert "broker b" not in names
        broker.delete_queue("orders")
        assert broker.queues() == []


def test_no_memory_of_a_queue_that_was_deleted_is_kept(make: Make, vhost: str) -> None:
    _, backup = pair(make, vhost)
    put(vhost, b"1")
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.delete_queue("orders")
    assert not [line for line in maps(backup, vhost) if "queue" in line]


def test_it_lets_go_when_its_live_is_stopped(make: Make, vhost: str) -> None:
    live, backup = pair(make, vhost)
    live.stop()
    vhosts.delete(vhost)  # nobody takes part
    eventually(lambda: not maps(backup, vhost))
    live.start().becomes("live")
    is_attached(backup, vhost)


@pytest.mark.parametrize("made_anew", [False, True])
def test_rings_that_were_deleted_are_not_gone_on_with(
    make: Make, vhost: str, made_anew: bool
) -> None:
    live, backup = pair(make, vhost)
    put(vhost, b"1", b"2")
    vhosts.delete(vhost, force=True)
    if made_anew:
        vhosts.create(vhost)
    live.kill()
    backup.becomes("live")
    assert "restored" in backup.events()
    assert bodies(vhost) == [b"1", b"2"]
    put(vhost, b"3")
    assert not [line for line in maps(backup, vhost) if line.endswith("(deleted)")]


def test_rings_that_a_live_has_restored_are_gone_on_with(make: Make, vhost: str) -> None:
    live, backup = pair(make, vhost)
    put(vhost, b"1")
    live.stop()
    vhosts.delete(vhost)
    live.start().becomes("live")
    is_attached(backup, vhost)
    put(vhost, b"2")
    live.kill()
    backup.becomes("live")
    assert "restored" not in backup.events()
    assert bodies(vhost) == [b"1", b"2"]


def test_what_the_former_live_left_is_repaired(make: Make, vhost: str) -> None:
    """By the one that did not wait for that when it took over."""
    live, backup = pair(make, vhost)
    put(vhost, b"1")
    live.kill()
    backup.becomes("live")
    with shmbroker.connect(f"shm://{vhost}") as broker:

        def is_alone() -> bool:
            others = [each.name for each in broker.participants() if each.name != "broker b"]
            return "broker a" not in others

        eventually(is_alone)
        broker.queue("orders").publish(b"2", timeout=PATIENCE_SECONDS)


def exit_helpers(pid: int) -> list[int]:
    """Those that have closed their files: they take their name when they have."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [
        int(each)
        for each in children
        if Path(f"/proc/{each}/comm").read_text().strip() == "exit helper"
    ]


def its_exit_helpers(pid: int) -> list[int]:
    """Once it has any: a live does not wait for the first turn of its exit helper."""
    eventually(lambda: exit_helpers(pid))
    return exit_helpers(pid)


def has_memory(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/maps").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("is_killed", [False, True])
def test_its_memory_is_kept_as_long_as_it_lives(make: Make, is_killed: bool) -> None:
    live = make("a").start().becomes("live")
    assert live.process is not None
    (exit_helper,) = its_exit_helpers(live.process.pid)
    files = [str(each.readlink()) for each in Path(f"/proc/{exit_helper}/fd").iterdir()]
    assert files == ["anon_inode:[pidfd]"], "of ours it has none, or it would keep locks as well"
    if is_killed:
        live.kill()
    else:
        live.stop()
    eventually(lambda: not has_memory(exit_helper))
