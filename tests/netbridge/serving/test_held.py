"""Programs that come while a node that leaves tells what it knows wait; those that are here do
not."""

from __future__ import annotations

import threading
from pathlib import Path

import shmbroker
from shmbroker.netbridge.link.times import LinkTimes
from tests.support.serving import Site
from tests.support.until import until

PATIENCE = 60.0


def test_who_comes_waits_and_who_is_here_goes_on(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}", create=True, name="test") as broker:
        queue = broker.declare_queue("orders")
        # a program that is lost, as on a busy machine, comes again, and waits
        at = Site(broker, tmp_path, times=LinkTimes(heartbeat_interval=PATIENCE))
        url = f"tcp://127.0.0.1:{at.port}"
        came = threading.Event()

        def comes() -> None:
            with shmbroker.connect(url, user="site", password="correct horse battery") as late:
                came.set()
                late.queue("orders").publish(b"late")

        with (
            at.served() as audience,
            shmbroker.connect(url, user="site", password="correct horse battery") as here,
        ):
            service = audience._service
            service.hold(True)
            program = threading.Thread(target=comes)
            program.start()
            until(lambda: any(service._held.values()))
            here.queue("orders").publish(b"here")
            assert not came.is_set()
            service.hold(False)
            program.join(PATIENCE)
            assert came.is_set()
            assert not service._held
        assert [bytes(each.body) for each in queue.browse()] == [b"here", b"late"]
