"""A link that is made anew goes on with what was on its way."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import shmbroker
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.networked.links import NetworkLinks
from shmbroker.netbridge.networked.supplying import made, ring_of
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.wire.words import NETWORK_LINK, Standing
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.support.host import journaling
from tests.support.link import PATIENCE, SITE

NEAR, FAR = (
    Identity(name[:1].encode() * 16, os.urandom(16), name, Standing.LIVE, 1)
    for name in ("near", "far")
)


def test_it_comes_before_anything_is_said_to_be_wanted(tmp_path: Path) -> None:
    """The near end of this link says nothing but what each link says."""
    address = f"tcp://127.0.0.1:{free_port()}"
    with ExitStack() as opened:
        names = [opened.enter_context(vhost_for_a_while()) for _ in range(2)]
        near, far = (
            opened.enter_context(shmbroker.connect(f"shm://{name}", create=True)) for name in names
        )
        here, source = (each.declare_queue("orders", slots=64) for each in (near, far))
        source.publish(b"x")
        ring = made(far, ring_of(NEAR.node, "fetch"))
        for name in names:
            opened.enter_context(journaling(name, tmp_path / name))
        towards = target_of("orders")
        assert pass_over(source, ring, None, None, 0, copies=False, towards=towards).messages == 1
        there, dials = (opened.enter_context(NetworkThread(each)) for each in (far, near))
        dials.serve(near, NEAR.node)
        networked = opened.enter_context(NetworkLinks(there, lambda _: None))
        networked.serve(far, FAR)
        opened.enter_context(
            Listener(there, address, SITE.keys[0], Credentials([SITE]), FAR, networks=networked)
        )
        opened.enter_context(Link(dials, f"{NETWORK_LINK}fetch", address, SITE, NEAR, ()))
        assert here.receive(timeout=PATIENCE) == b"x"
