"""What a scrape says of links."""

from __future__ import annotations

from shmbroker.cli.metrics.exposition import text
from tests.cli.command import eventually
from tests.cli.metrics.samples import Samples
from tests.netbridge.broker.conftest import SOURCE, Two


def test_a_link_that_ships_and_is_lost(two: Two) -> None:
    near, _ = two.started()
    two.becomes("up")
    labels = {"link": "to-far", "kind": "bridge"}
    for _ in range(3):
        near.queue(SOURCE).publish(b"x")
    eventually(lambda: two.link()["confirmed"] == 3)
    samples = Samples(text(two.near.folder))
    assert samples.of("link_up", **labels) == 1
    assert samples.of("link_waiting", **labels) == 0
    for counter in ("messages", "confirmed"):
        assert samples.of(f"link_{counter}_total", **labels) == 3
    assert samples.of("link_sent_bytes_total", **labels) > 0
    assert samples.of("link_attempts_total", **labels) >= 1
    assert samples.of("link_losses_total", **labels) == 0
    assert samples.of("link_confirm_seconds_count", **labels) == 3
    assert samples.of("link_confirm_seconds_sum", **labels) > 0
    assert Samples(text(near.vhost)).of("link_up", **labels) == 1
    assert not Samples(text(two.far.folder)).all("link_up")
    two.far.kill()
    eventually(lambda: Samples(text(two.near.folder)).of("link_up", **labels) == 0)
    eventually(lambda: Samples(text(two.near.folder)).of("link_losses_total", **labels) == 1)
