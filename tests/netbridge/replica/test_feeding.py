"""What a live has open for a replica goes with its link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from shmbroker.ipc.base.errors import MessageGone
from shmbroker.ipc.journal.journal import Journal
from shmbroker.netbridge.replica.feed import State
from shmbroker.netbridge.replica.feeding import Feeding
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.wire.frame import Frame, Join, Reached
from shmbroker.netbridge.wire.words import ReplicaAck

JOIN = Join("two", bytes(16), ReplicaAck.RECEIVED, 0, 0, 0, 0, 0, 0, 0, 0)


class Live:
    """Its worker does what it is asked when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.worker, self.terms = folder, self, ReplicationTerms()
        self.thread: Any = None
        self.journaler: Any = None
        self.due = 0.0
        self.anew: set[str] = set()
        self.asked: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
        self.admitted: list[Callable[[], bool]] = []
        self.news: Callable[[], None] = lambda: None

    def watch(self, descriptor: int, news: Callable[[], None]) -> None:
        self.news = news

    def unwatch(self, descriptor: int) -> None: ...

    def works(self) -> None:
        work, told = self.asked.pop()
        told(work())

    def admit(self, feeding: Feeding, then: Callable[[], bool]) -> None:
        self.admitted.append(then)

    def do(self, work: Callable[[], Any], told: Callable[[Any], None]) -> None:
        self.asked.append((work, told))

    def has_place(self, feeding: Feeding) -> bool:
        return True

    def keep(self) -> None: ...

    def became(self, feeding: Feeding) -> None: ...

    def release(self, feeding: Feeding, why: str, then: Callable[[], None]) -> None:
        then()

    def drop(self, feeding: Feeding, why: str) -> None: ...


class Link:
    def __init__(self) -> None:
        self.machine: Any = self
        self.handshake: Any = self
        self.frame_bytes = 1 << 20

    def say(self, frame: Frame) -> None: ...


def test_a_link_that_is_lost_while_files_are_read_leaves_none_open(tmp_path: Path) -> None:
    """Nothing keeps the segment then, so the reader finds it gone."""
    with Journal(tmp_path, epoch=1, segment_bytes=65536) as journal:
        journal.message(7, 0, b"x")
        journal.commit()
        journal.wait()
        live: Any = Live(tmp_path)
        link: Any = Link()
        feeding = Feeding(live, link)
        feeding.heard(JOIN)
        work, told = live.asked.pop()
        told(work())
        _, told = live.asked.pop()
        feeding.gone()
        assert feeding.history is not None, "it is being read"
        told(MessageGone("segment 1 was let go"))
        assert feeding.history is None


def test_who_has_fallen_behind_when_it_is_to_count_is_read_to_out_of_files_again(
    tmp_path: Path,
) -> None:
    """Its end was dropped, and the thread has not looked at that yet."""
    with Journal(tmp_path, epoch=1, segment_bytes=65536) as journal:
        journal.message(7, 0, b"x")
        journal.commit()
        journal.wait()
        live: Any = Live(tmp_path)
        live.thread, live.journaler = live, journal
        live.terms = replace(live.terms, in_flight=4096)
        link: Any = Link()
        feeding = Feeding(live, link)
        feeding.heard(JOIN)
        while live.asked:
            live.works()
        feeding.heard(Reached(feeding.feed.sent))
        [count] = live.admitted
        for number in range(2):
            journal.message(7, 1 + number, bytes(8000))
            journal.commit()
        assert not count()
        assert feeding.feed.state is State.FOLLOWING
        live.news()
        assert feeding.feed.state is State.COPYING
        assert live.asked, "files are read"
        feeding.ends()
