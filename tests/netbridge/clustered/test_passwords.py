"""Nodes of a cluster go by a password that is changed while they run, as do their queue replicas
and the links to their witnesses (tests/netbridge/queue_replicated, tests/netbridge/replicated)."""

from __future__ import annotations

import time

import pytest

import shmbroker
from shmbroker.ipc.instance import reloading
from shmbroker.ipc.instance.config.config import FILE
from tests.netbridge.clustered.conftest import PASSWORD, PATIENCE, Cluster

NAMES = ("east", "west")
OF_CREDENTIALS: dict[str, object] = {
    "cluster__town__user": None,
    "cluster__town__password": None,
    "cluster__town__credentials": "nodes",
    "credentials__nodes__password": PASSWORD,
    "credentials__nodes__role": "cluster",
}


@pytest.mark.parametrize("key", ["credentials.nodes.password", "cluster.town.password"])
def test_a_password_that_is_changed_at_all(cluster: Cluster, key: str) -> None:
    """What was published meanwhile comes, and whoever is started anew finds the others."""
    settings = OF_CREDENTIALS if key.startswith("credentials") else {}
    for name in NAMES:
        cluster.add(name, cluster__town__max_hops=1,
                    cluster__town__message_load_balancing="strict", **settings).start()  # fmt: skip
    cluster.sees("east", "west")
    cluster.sees("west", "east")
    with shmbroker.connect(f"shm://{cluster.vhosts['west']}", name="test") as there:
        there.declare_queue("orders", durable=True)
    for name in NAMES:
        file = cluster[name].folder / FILE
        file.write_text(file.read_text().replace(PASSWORD, "a newer password"))
        answer = reloading.asked(cluster[name].folder, PATIENCE)
        assert answer is not None
        assert (answer["applied"], answer["ignored"]) == ([key], [])
    late = time.monotonic() + PATIENCE
    while not cluster.bodies("west"):
        assert time.monotonic() < late, cluster.story()
        cluster.publishes("east", b"in turn")
    cluster["west"].kill()
    cluster.sees("east", missing=("west",))
    cluster["west"].start()
    cluster.sees("east", "west")
    cluster.sees("west", "east")


def test_a_backup_that_gives_back_its_role_goes_by_what_was_reloaded(cluster: Cluster) -> None:
    """It joins anew then.  Until a restart it goes by its former credentials, as by any other key
    that needs one."""
    former = {**OF_CREDENTIALS, "credentials__nodes__user": "town"}
    for name in NAMES:
        cluster.add(name, **former).start().becomes("live")
    cluster.add("west2", "backup", shares="west", **former).start().becomes("passive")
    cluster["west"].kill()
    cluster["west2"].becomes("live")
    cluster.sees("west2", "east")
    for run in cluster.runs.values():
        file = run.folder / FILE
        file.write_text(file.read_text().replace("nodes", "members"))
    answer = reloading.asked(cluster["west2"].folder, PATIENCE)
    assert answer is not None
    assert answer["ignored"] == ["cluster.town.credentials"]
    cluster["west"].start().becomes("live")
    cluster["west2"].becomes("passive")
    cluster.sees("west", "east")
    cluster["west"].kill()
    cluster["west2"].becomes("live")
    cluster.sees("west2", "east")
    assert cluster["west2"].stop() == 0
