"""The kernels in users' own @njit loops."""

from __future__ import annotations

import numpy as np

from shmbroker import Ring


def test_users_own_compiled_code_publishes_and_takes(ring_name: str) -> None:
    from tests.ipc.build.echo import echo

    with Ring.create(ring_name, slots=16) as ring:
        producer, consumer = ring.port(1), ring.port(2)
        body, message = np.zeros(8, np.int64), np.zeros(8, np.int64)
        total = echo(producer.address, consumer.address, 1000, body, message)
        assert total == 499500
        assert producer.tail == 1000
