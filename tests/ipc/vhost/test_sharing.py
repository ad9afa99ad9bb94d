"""A vhost that users of a group share: two users, one group, and one who is not in it."""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker.core import codes
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import InUse, InvalidArgument, NotFound, SegmentExists, Untrusted
from shmbroker.ipc.doctor.finding import remove_stale
from shmbroker.ipc.doctor.stale import boot_hash, stale_segments
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.other_user import as_user, become

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")

ALICE, BOB, EVE, GROUP, OTHERS = 61001, 61002, 61003, 61010, 61011
ARENA_BYTES = 1 << 20
SHM = Path("/dev/shm")


@pytest.fixture
def name() -> Iterator[str]:
    with vhost_for_a_while() as made:
        yield made


@pytest.fixture
def shared(name: str) -> str:
    """Of Alice, who shares it with Bob."""

    @as_user(ALICE, GROUP)
    def _() -> None:
        vhosts.create(name, arena_bytes=ARENA_BYTES, group=GROUP)

    return name


def folder(vhost: str) -> Path:
    return SHM / f"shmbroker.{vhost}"


def started_as(
    user: int, prepare: Callable[[], Any], work: Callable[[Any], object] = lambda _: None
) -> int:
    """A child that has prepared when we return, works, and then waits until it is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        become(user, GROUP)
        prepared = prepare()
        os.write(writing, b"1")
        work(prepared)
        signal.pause()
    os.close(writing)
    with os.fdopen(reading, "rb") as ready:
        assert ready.read(1) == b"1"
    return child


def ended(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_what_any_of_them_makes_has_mode_and_group(shared: str) -> None:
    @as_user(BOB, GROUP)
    def _() -> None:
        os.umask(0o077)
        with shmbroker.connect(f"shm://{shared}") as broker:
            orders = broker.declare_queue("orders", dead_letter="dead")
            orders.latency(True)
            orders.publish(b"a", deliver_after=60)

    status = folder(shared).stat()
    assert (status.st_uid, status.st_gid) == (ALICE, GROUP)
    assert stat.S_IMODE(status.st_mode) == 0o2770
    made = {path.name: path.stat() for path in folder(shared).iterdir()}
    assert {each.partition("-")[0] for each in made} == {
        "arena", "catalog", "latency", "participants", "queue", "transactions"
    }  # fmt: skip
    assert {(each.st_gid, stat.S_IMODE(each.st_mode)) for each in made.values()} == {(GROUP, 0o660)}
    assert {each.st_uid for each in made.values()} == {ALICE, BOB}


def test_messages_pass_between_users(shared: str) -> None:
    @as_user(ALICE, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{shared}") as broker:
            broker.declare_queue("orders").publish(b"from Alice")

    @as_user(BOB, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{shared}") as broker:
            orders = broker.queue("orders")
            with orders.get() as message:
                assert message.body == b"from Alice"
            broker.declare_queue("answers").publish(b"from Bob")

    @as_user(ALICE, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{shared}") as broker, broker.queue("answers").get() as got:
            assert got.body == b"from Bob"


def test_one_who_waits_is_woken_by_another_user(shared: str) -> None:
    with_orders = as_user(ALICE, GROUP)

    @with_orders
    def _() -> None:
        with shmbroker.connect(f"shm://{shared}") as broker:
            broker.declare_queue("orders")
            broker.declare_queue("answers")

    def answer(broker: shmbroker.Broker) -> None:
        with broker.queue("orders").get() as order:
            broker.queue("answers").publish(bytes(order.body) * 2)

    child = started_as(BOB, lambda: shmbroker.connect(f"shm://{shared}"), answer)

    @with_orders
    def _() -> None:
        time.sleep(0.1)  # so that Bob sleeps
        with shmbroker.connect(f"shm://{shared}") as broker:
            broker.queue("orders").publish(b"ab")
            with broker.queue("answers").get(timeout=30) as message:
                assert message.body == b"abab"

    ended(child)


def test_what_another_user_left_at_its_death_is_repaired(shared: str) -> None:
    """The lock tells of the death; the ring of Bob's temporary queue is removed by Alice."""

    def take() -> object:
        broker = shmbroker.connect(f"shm://{shared}", name="bob")
        orders = broker.declare_queue("orders")
        orders.publish(b"a")
        return broker, orders.get(), broker.temporary_queue()

    child = started_as(BOB, take)
    rings = set(folder(shared).glob("queue-*"))
    assert len(rings) == 2

    @as_user(ALICE, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{shared}") as broker:
            (bob,) = (each for each in broker.participants() if each.name == "bob")
            assert bob.state == "live"
            with pytest.raises(shmbroker.Empty):
                broker.queue("orders").get(timeout=0)

    ended(child)

    @as_user(ALICE, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{shared}") as broker:
            broker.repair()
            with broker.queue("orders").get(timeout=30) as message:
                assert message.body == b"a"
            assert [queue.name for queue in broker.queues()] == ["orders"]

    assert len(set(folder(shared).glob("queue-*"))) == 1


def test_a_queue_of_another_user_is_deleted_with_its_memory(shared: str) -> None:
    @as_user(BOB, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{shared}") as broker:
            broker.declare_queue("orders")

    @as_user(ALICE, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{shared}") as broker:
            broker.delete_queue("orders")

    assert not list(folder(shared).glob("queue-*"))


@pytest.mark.parametrize("user", [EVE, OTHERS])
def test_one_who_is_not_in_the_group_is_told_owner_and_mode(shared: str, user: int) -> None:
    @as_user(user, OTHERS)
    def _() -> None:
        for create, observe in ((False, False), (True, False), (False, True)):
            with pytest.raises(Untrusted, match=f"user {ALICE} and group {GROUP}.*2770.*{user}"):
                shmbroker.connect(f"shm://{shared}", create=create, observe=observe)
        with pytest.raises(Untrusted, match=f"user {ALICE} and group {GROUP}"):
            vhosts.delete(shared)
        with pytest.raises(Untrusted, match=f"user {ALICE}"):
            vhosts.delete(shared, force=True)
        assert shared not in vhosts.names()

    assert folder(shared).exists()


def test_root_does_not_take_part_in_another_users_but_looks(shared: str) -> None:
    with pytest.raises(Untrusted, match=f"run this as user {ALICE}"):
        shmbroker.connect(f"shm://{shared}")
    with shmbroker.connect(f"shm://{shared}", observe=True) as broker:
        assert not broker.queues()
    assert shared in vhosts.names()


def test_root_shares_what_is_its_own(name: str) -> None:
    vhosts.create(name, arena_bytes=ARENA_BYTES, group=GROUP, mode=0o660)

    @as_user(BOB, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{name}") as broker:
            broker.declare_queue("orders").publish(b"a")

    with shmbroker.connect(f"shm://{name}") as broker, broker.queue("orders").get() as message:
        assert message.body == b"a"


def test_only_the_owner_deletes_it(shared: str) -> None:
    @as_user(BOB, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{shared}") as broker:
            broker.declare_queue("orders")
        with pytest.raises(Untrusted, match=f"user {ALICE}, group {GROUP}, mode 2770.*or root"):
            vhosts.delete(shared, force=True)

    assert len(list(folder(shared).iterdir())) == 5

    @as_user(ALICE, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{shared}"), pytest.raises(InUse):
            vhosts.delete(shared)
        vhosts.delete(shared)
        with pytest.raises(NotFound):
            vhosts.delete(shared)

    assert not folder(shared).exists()


@pytest.mark.parametrize("mode", [0o2777, 0o770, 0o700])
def test_a_folder_with_another_mode_is_not_entered(shared: str, mode: int) -> None:
    folder(shared).chmod(mode)

    @as_user(ALICE, GROUP)
    def _() -> None:
        with pytest.raises(Untrusted, match=f"{mode:04o}, not 2770.*chmod 2770"):
            shmbroker.connect(f"shm://{shared}")


@pytest.mark.parametrize(("mode", "group"), [(0o666, GROUP), (0o660, OTHERS)])
def test_a_segment_of_others_in_it_is_not_entered(shared: str, mode: int, group: int) -> None:
    arena = folder(shared) / "arena"
    os.chown(arena, ALICE, group)
    arena.chmod(mode)

    @as_user(ALICE, GROUP, OTHERS)
    def _() -> None:
        with pytest.raises(Untrusted, match=rf"arena belongs to user {ALICE}.*{mode:04o}"):
            shmbroker.connect(f"shm://{shared}")


def test_a_folder_does_not_stand_before_a_vhost_of_our_own(name: str) -> None:
    """Eve is in a group with Alice, and puts it there when Alice's vhost is there already."""

    @as_user(ALICE, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{name}", create=True, arena_bytes=ARENA_BYTES) as broker:
            broker.declare_queue("orders")

    folder(name).mkdir()
    os.chown(folder(name), EVE, GROUP)
    folder(name).chmod(0o2770)

    @as_user(ALICE, GROUP)
    def _() -> None:
        with shmbroker.connect(f"shm://{name}") as broker:
            assert [queue.name for queue in broker.queues()] == ["orders"]


def test_deleting_follows_no_link(name: str, tmp_path: Path) -> None:
    """Root deletes what Eve has left, and Eve has left a link to what is root's."""
    (tmp_path / "catalog").touch()
    folder(name).symlink_to(tmp_path)
    try:
        with pytest.raises(shmbroker.Error):
            vhosts.delete(name, force=True)
        with pytest.raises(shmbroker.Error):
            vhosts.create(name, arena_bytes=ARENA_BYTES)
        assert [path.name for path in tmp_path.iterdir()] == ["catalog"]
    finally:
        folder(name).unlink()


def test_a_vhost_has_one_home(shared: str) -> None:
    @as_user(ALICE, GROUP)
    def _() -> None:
        for group in (None, GROUP):
            with pytest.raises(SegmentExists):
                vhosts.create(shared, arena_bytes=ARENA_BYTES, group=group)

    assert not list(SHM.glob(f"shmbroker.{shared}.*"))


def test_what_a_creator_left_that_was_killed_is_replaced(name: str) -> None:
    @as_user(ALICE, GROUP)
    def _() -> None:
        folder(name).mkdir()
        (folder(name) / "arena").touch()
        assert not vhosts.exists(name)
        vhosts.create(name, arena_bytes=ARENA_BYTES, group=GROUP)
        shmbroker.connect(f"shm://{name}").close()


def test_doctor_removes_what_a_creator_left(name: str) -> None:
    folder(name).mkdir()
    (folder(name) / "arena").touch()
    later = time.time() + 3600
    found = [
        each
        for each in stale_segments(SHM, later, set(), boot_hash())
        if each.subject == f"vhost {name!r}"
    ]
    assert [each.stale for each in found] == [(folder(name) / "arena", folder(name))]
    remove_stale(found, found[0].stale)
    assert not folder(name).exists()


def test_modes_and_groups_that_cannot_be(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"0600.*0660"):
        vhosts.create(name, mode=0o666)
    with pytest.raises(InvalidArgument, match="its user's alone"):
        vhosts.create(name, mode=0o600, group=GROUP)
    with pytest.raises(InvalidArgument, match=r"no group 'nobodys-group'"):
        vhosts.create(name, group="nobodys-group")

    @as_user(EVE)
    def _() -> None:
        with pytest.raises(Untrusted, match=f"user {EVE} is not in group {GROUP}"):
            vhosts.create(name, group=GROUP)

    assert not folder(name).exists()


def test_a_mode_without_a_group_is_for_the_users_own(name: str) -> None:
    @as_user(ALICE)
    def _() -> None:
        vhosts.create(name, arena_bytes=ARENA_BYTES, mode=0o660)

    assert folder(name).stat().st_gid == ALICE


def test_c_programs_create_and_delete_one(name: str) -> None:
    vhost, group = name.encode(), str(GROUP).encode()
    assert lib.sb_vhost_create_with(vhost, ARENA_BYTES, group, 0o660) == codes.OK
    assert folder(name).stat().st_gid == GROUP
    with shmbroker.connect(f"shm://{name}"):
        assert lib.sb_vhost_delete(vhost, 0) == codes.IN_USE
        assert "participants" in detail_of(codes.IN_USE)
        assert lib.sb_vhost_delete(vhost, 1) == codes.OK
    assert lib.sb_vhost_delete(vhost, 0) == codes.NO_VHOST
    assert lib.sb_vhost_delete(b"a/b", 0) == codes.BAD_NAME
    assert not folder(name).exists()
