"""Who is still in a vhost that was deleted changes nothing in the one that has its name now."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import shmbroker
from shmbroker import Broker, NotFound
from shmbroker.core.layout import PARTICIPANT_LIST
from shmbroker.ipc.vhost import vhost as vhosts

QUEUES = ("a", "b", "c")
CALLS: dict[str, Callable[[Broker], object]] = {
    "declare": lambda program: program.declare_queue("new"),
    "temporary": lambda program: program.temporary_queue(),
    "delete": lambda program: program.delete_queue("q"),
    "exchange": lambda program: program.declare_exchange("e", "fanout"),
}


def made_anew(vhost: str, remove: Callable[[], object]) -> None:
    """Its queues have the same rows as those before."""
    remove()
    vhosts.create(vhost, arena_bytes=1 << 20)
    with shmbroker.connect(f"shm://{vhost}") as broker:
        for name in QUEUES:
            broker.declare_queue(name).publish(name.encode())


def whole(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        found = [broker.queue(name).receive(timeout=0) for name in QUEUES]
    assert found == [name.encode() for name in QUEUES]


@pytest.mark.parametrize("call", CALLS)
def test_what_it_changes_is_refused(vhost: str, call: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as program:
        program.declare_queue("q")
        made_anew(vhost, lambda: vhosts.delete(vhost, force=True))
        with pytest.raises(NotFound, match="was deleted meanwhile"):
            CALLS[call](program)
        whole(vhost)


def test_a_temporary_queue_of_its_own_stays_there(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as program:
        program.temporary_queue()
        made_anew(vhost, lambda: vhosts.delete(vhost, force=True))
    whole(vhost)


def test_so_does_what_it_has_had_in_a_retired_one(vhost: str) -> None:
    """With so many queues its end looks through all of the catalog."""
    with shmbroker.connect(f"shm://{vhost}") as program:
        had = [program.declare_queue(f"q{each}", slots=4) for each in range(PARTICIPANT_LIST + 1)]
        for queue in had:
            queue.publish(b"")
        made_anew(vhost, lambda: vhosts.retire(vhost))
    whole(vhost)
