"""The lock of a store: which instance is live, and which is next.  The interface of all kinds.

    file_lock.py    locks of the kernel on live.lock
    sql_lock.py     leases in a SQL database

There are two places, live and announced, and each has one holder at most.  Who is announced waits
to be live; the others wait to be announced.  Whoever is live says so in the record, with its epoch.

The kernel gives a lock back when its holder dies, and never before.  A lease runs out: its holder
may have to end being live, or announced, and hears of that as news.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any

from shmbroker.ipc.instance.lock.record import Record


class News(Enum):
    CHANGED = "the record, or who is announced, may be another one"
    LOST = "being live has run out"
    UNANNOUNCED = "being announced has run out"
    UNREACHABLE = "nothing can be said about the lock any more"
    REACHABLE = "it can again"


@dataclass(frozen=True, slots=True)
class Told:
    news: News
    why: str = ""


class LiveLock(ABC):
    is_lease = False
    """Whether it may be lost while the holder runs."""
    until: Any = None
    """Until when the holder may be live: a word for its journaler; None: as long as it runs."""

    @property
    @abstractmethod
    def fence(self) -> int:
        """A file that begins with the epoch of the live, for its journaler."""

    @abstractmethod
    def try_live(self) -> bool:
        """Be live if nobody is."""

    @abstractmethod
    def wait_live(self) -> None: ...

    @abstractmethod
    def release_live(self) -> None: ...

    @abstractmethod
    def wait_announced(self) -> None: ...

    @abstractmethod
    def release_announced(self) -> None: ...

    @property
    @abstractmethod
    def is_held(self) -> bool:
        """We hold the place of the live."""

    @property
    @abstractmethod
    def another_is_live(self) -> bool: ...

    @property
    @abstractmethod
    def another_is_announced(self) -> bool: ...

    @abstractmethod
    def record(self) -> Record: ...

    @abstractmethod
    def record_if_whole(self) -> Record | None:
        """None if it is just being written: there will be news."""

    @abstractmethod
    def write(self, record: Record) -> None:
        """Kept when it returns.  Only for who is live; Replaced if that is over."""

    @abstractmethod
    def ask_failback(self, epoch: int) -> bool:
        """Of the one who is live by this epoch.  Only for who is announced.  False: not for now."""

    @abstractmethod
    def is_failback_asked(self, epoch: int) -> bool:
        """By somebody who is still there, and next."""

    @abstractmethod
    def failback_done(self) -> None: ...

    @abstractmethod
    def news(self) -> Told:
        """Wait for the next."""

    @abstractmethod
    def close(self) -> None:
        """Let go of both places."""
