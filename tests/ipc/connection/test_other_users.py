"""What other users of the host may do to a vhost: nothing that we would believe.

B made the vhost first; B put a link where a segment is opened; B keeps a place that we need.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import NotFound, SegmentExists, SystemRefused, Untrusted
from shmbroker.ipc.doctor.stale import boot_hash, stale_segments
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.compiler import compile_program
from tests.support.other_user import OTHER, as_other, in_child, segments, with_own_shm

ARENA_BYTES = 1 << 20
WE = os.getuid()

PROGRAM = """
#include <shmbroker.h>
#include <stdio.h>
int main(int count, char **arguments)
{
    sb_connection *connection;
    int64_t code = sb_connect(arguments[1], "us", &connection);
    printf("%s", code == SB_UNTRUSTED ? sb_detail(code) : "it was believed");
    return count != 2;
}
"""


@pytest.fixture
def name() -> Iterator[str]:
    """Of a vhost that is not made yet."""
    with vhost_for_a_while() as made:
        yield made


def made_by_other(name: str, mode: int = 0o666) -> None:
    def make() -> None:
        with shmbroker.connect(f"shm://{name}", create=True, arena_bytes=ARENA_BYTES) as broker:
            broker.declare_queue("orders", slots=8)
        for path in segments(name):
            path.chmod(mode)

    as_other(make)


@pytest.mark.parametrize("mode", [0o666, 0o600])
@pytest.mark.parametrize("create", [False, True])
def test_a_vhost_of_another_user_is_not_entered(name: str, mode: int, create: bool) -> None:
    made_by_other(name, mode)
    there = {path: path.stat() for path in segments(name)}
    with pytest.raises(Untrusted) as refused:
        shmbroker.connect(f"shm://{name}", create=create)
    said = str(refused.value)
    assert f"/dev/shm/shmbroker.{name}." in said
    assert f"user {OTHER}" in said
    assert f"{mode:04o}" in said
    assert "run this as user" in said
    assert {path: path.stat() for path in segments(name)} == there


def test_a_c_program_does_not_enter_it_either(name: str, tmp_path: Path) -> None:
    made_by_other(name)
    source = tmp_path / "enter.c"
    source.write_text(PROGRAM)
    program = compile_program(source, tmp_path / "enter")
    said = subprocess.check_output([program, name], text=True)
    assert f"user {OTHER}" in said


@pytest.mark.parametrize("kind", ["catalog", "arena", "participants", "transactions"])
def test_a_vhost_that_others_may_write_is_not_entered(name: str, kind: str) -> None:
    vhosts.create(name, arena_bytes=ARENA_BYTES)
    path = Path(f"/dev/shm/shmbroker.{name}.{kind}")
    path.chmod(0o602)
    with pytest.raises(Untrusted, match=re.escape(f"chmod 600 {path}")):
        shmbroker.connect(f"shm://{name}")
    path.chmod(0o600)
    shmbroker.connect(f"shm://{name}").close()


@pytest.mark.parametrize("kind", ["catalog", "arena", "participants", "transactions", "queue-0-1"])
def test_no_segment_is_found_through_a_link(name: str, kind: str) -> None:
    with shmbroker.connect(f"shm://{name}", create=True, arena_bytes=ARENA_BYTES) as broker:
        broker.declare_queue("orders", slots=8)
    path = Path(f"/dev/shm/shmbroker.{name}.{kind}")
    path.symlink_to(path.rename(f"{path}.moved"))
    with (
        pytest.raises(Untrusted, match="is a link"),
        shmbroker.connect(f"shm://{name}") as broker,
    ):
        broker.queue("orders")


def test_a_queue_of_another_user_in_our_vhost_is_not_opened(name: str) -> None:
    with shmbroker.connect(f"shm://{name}", create=True, arena_bytes=ARENA_BYTES) as broker:
        broker.declare_queue("orders", slots=8)
        broker.declare_queue("ours", slots=8)
    path = Path(f"/dev/shm/shmbroker.{name}.queue-0-1")
    os.chown(path, OTHER, OTHER)
    with shmbroker.connect(f"shm://{name}") as broker:
        with pytest.raises(Untrusted, match=f"user {OTHER}"):
            broker.queue("orders")
        broker.queue("ours").publish(b"1")


def test_root_may_look_at_a_vhost_of_another_user(name: str) -> None:
    made_by_other(name, 0o600)
    with shmbroker.connect(f"shm://{name}", observe=True) as broker:
        assert [queue.name for queue in broker.queues()] == ["orders"]


def test_nobody_looks_at_a_vhost_that_all_may_write(name: str) -> None:
    made_by_other(name, 0o666)
    with pytest.raises(Untrusted, match="0666"):
        shmbroker.connect(f"shm://{name}", observe=True)


def test_another_user_is_told_whose_vhost_it_is(name: str) -> None:
    vhosts.create(name, arena_bytes=ARENA_BYTES)

    def enter() -> None:
        with pytest.raises(SystemRefused, match=f"user {WE}.*0600"):
            shmbroker.connect(f"shm://{name}")

    as_other(enter)


def test_a_place_that_another_user_keeps_is_named(name: str) -> None:
    """B cannot be made to give it up, but we can say who it is."""
    path = Path(f"/dev/shm/shmbroker.{name}.arena")
    path.touch(0o600)

    def make() -> None:
        with pytest.raises(Untrusted, match=f"{path.name}.*user {WE}"):
            vhosts.create(name, arena_bytes=ARENA_BYTES)

    as_other(make)
    assert segments(name) == [path]


def test_segments_do_not_follow_the_umask(name: str) -> None:
    def make() -> None:
        os.umask(0o277)
        with shmbroker.connect(f"shm://{name}", create=True, arena_bytes=ARENA_BYTES) as broker:
            broker.declare_queue("orders", slots=8)

    in_child(make)
    assert {stat.S_IMODE(path.stat().st_mode) for path in segments(name)} == {0o600}


# --- vhosts that were not made to the end ---------------------------------------------------------


def test_a_vhost_that_could_not_be_made_leaves_nothing(name: str) -> None:
    def make() -> None:
        for _ in range(2):
            with pytest.raises(shmbroker.Error, match="/dev/shm"):
                vhosts.create(name, arena_bytes=ARENA_BYTES)
            assert not segments(name)

    in_child(make, with_own_shm("64k"))


@pytest.mark.parametrize("size", range(1, 6))
def test_it_leaves_nothing_whichever_segment_has_no_room(name: str, size: int) -> None:
    """The first ones fit."""

    def make() -> None:
        try:
            vhosts.create(name, arena_bytes=ARENA_BYTES)
        except shmbroker.Error:
            assert not segments(name)
        else:
            vhosts.delete(name)

    in_child(make, with_own_shm(f"{64 << size}k"))


def test_what_is_left_of_a_vhost_can_be_deleted(name: str) -> None:
    """As one leaves it who is killed while it makes or deletes it."""
    vhosts.create(name, arena_bytes=ARENA_BYTES)
    Path(f"/dev/shm/shmbroker.{name}.catalog").unlink()
    assert not vhosts.exists(name)
    vhosts.delete(name)
    assert not segments(name)
    with pytest.raises(NotFound):
        vhosts.delete(name)


@pytest.mark.parametrize("pattern", ["*", "?", "[t]*", "test-*"])
def test_deleting_takes_a_name_and_no_pattern(name: str, pattern: str) -> None:
    vhosts.create(name, arena_bytes=ARENA_BYTES)
    with pytest.raises((NotFound, shmbroker.InvalidName)):
        vhosts.delete(pattern, force=True)
    assert vhosts.exists(name)


def test_another_user_cannot_be_deleted(name: str) -> None:
    vhosts.create(name, arena_bytes=ARENA_BYTES)

    def delete() -> None:
        with pytest.raises(SystemRefused, match=f"user {WE}"):
            vhosts.delete(name, force=True)

    as_other(delete)
    assert len(segments(name)) == 4


def test_one_who_keeps_the_lock_of_the_folder_does_not_stop_us_for_ever(name: str) -> None:
    """Any user may take it.  In a /dev/shm of its own: it would stop all others, too."""

    def make() -> None:
        folder = os.open("/dev/shm", os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        with pytest.raises(SystemRefused, match="lslocks"):
            vhosts.create(name, arena_bytes=ARENA_BYTES)
        os.close(folder)
        vhosts.create(name, arena_bytes=ARENA_BYTES)
        with pytest.raises(SegmentExists):
            vhosts.create(name, arena_bytes=ARENA_BYTES)

    in_child(make, with_own_shm("16m"))


def test_doctor_leaves_a_vhost_of_root_to_root(name: str) -> None:
    """In good order, it is no error that another user may not enter it."""
    shmbroker.connect(f"shm://{name}", create=True, arena_bytes=ARENA_BYTES).close()

    def examine() -> None:
        found = stale_segments(Path("/dev/shm"), time.time(), set(), boot_hash())
        assert [each for each in found if name in each.subject] == []

    as_other(examine)


def test_a_file_of_ours_without_rights_is_not_called_that_of_another_user(name: str) -> None:
    path = Path(f"/dev/shm/shmbroker.{name}.x")

    def look() -> None:
        path.touch(0)
        try:
            with pytest.raises(Untrusted, match=r"is ours .*: chmod u\+rw"):
                trust.opened(path, os.O_RDONLY)
        finally:
            path.unlink()

    as_other(look)
