"""Settings in shared memory and over a link, with threads and asyncio."""

from __future__ import annotations

from typing import Any

import pytest

from shmbroker import DeclaredDifferently
from tests.support.client_api import Api, in_each_way, it


@in_each_way
async def test_none_is_a_setting_like_any_other(api: Api, broker: Any) -> None:
    """Also for what has another default, or a pattern that gives it."""
    await it(broker.settings("q", ttl=60))
    queue = await it(broker.declare_queue("q", max_deliveries=None, ttl=None))
    told = await it(queue.explain())
    for name in ("max_deliveries", "ttl"):
        assert (told[name].value, told[name].source) == (None, "declared")
    with pytest.raises(DeclaredDifferently):
        await it(broker.declare_queue("q", max_deliveries=10))
    await it(broker.declare_queue("q.limited", max_deliveries=10))
    with pytest.raises(DeclaredDifferently):
        await it(broker.declare_queue("q.limited", max_deliveries=None))
    made = await it(broker.temporary_queue(max_deliveries=None))
    assert (await it(made.explain()))["max_deliveries"].value is None
