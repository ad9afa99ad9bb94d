"""What waits until it is synced, with all that stood there by then."""

from __future__ import annotations

from shmbroker.netbridge.link.held import Held, Told


class Ring:
    """It is synced when the test says so."""

    def __init__(self) -> None:
        self.end = self.news = 0
        self.asked: list[Told] = []
        self.held = Held(self.asked.append, lambda: self.end, self._has_news)

    def _has_news(self) -> None:
        self.news += 1

    def comes(self, count: int) -> None:
        first, self.end = self.end, self.end + count
        self.held.hold(first)

    def syncs(self) -> None:
        self.asked.pop(0)()


def test_what_has_come_waits_until_it_is_synced() -> None:
    ring = Ring()
    assert ring.held.limit is None
    ring.comes(3)
    assert ring.held.limit == 0
    ring.syncs()
    assert (ring.held.limit, ring.news, ring.asked) == (None, 1, [])


def test_what_comes_meanwhile_waits_for_the_next_sync_and_holds_up_nothing_before_it() -> None:
    ring = Ring()
    ring.comes(3)
    ring.comes(2)
    ring.comes(2)
    assert (ring.held.limit, len(ring.asked)) == (0, 1), "one sync at a time is asked for"
    ring.syncs()
    assert (ring.held.limit, ring.news, len(ring.asked)) == (3, 1, 1)
    ring.syncs()
    assert (ring.held.limit, ring.news, ring.asked) == (None, 2, [])


def test_what_was_shipped_before_is_not_held() -> None:
    ring = Ring()
    ring.end = 5
    ring.comes(1)
    assert ring.held.limit == 5


def test_what_is_shipped_no_more_asks_for_no_sync() -> None:
    """The queue is not followed any more, so nobody can say where it ends."""
    ring = Ring()
    ring.comes(3)
    ring.comes(2)
    ring.held.drop()
    ring.syncs()
    assert ring.asked == []
