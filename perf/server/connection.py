"""A connection: what one program has of one queue of a server, driven call by call."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

BATCH = 1024
"""Messages that go to a server at once, wherever its protocol knows such a thing."""
OUTSTANDING = 8 * BATCH
"""Messages that may wait for their confirm."""


class ConfirmRefused(Exception):
    """The server said that it does not have a message, or said something else."""


class Connection(ABC):
    """Made by Server.connect. Of one thread."""

    @abstractmethod
    def publish(self, body: bytes) -> object:
        """Returns when the server has confirmed it."""

    @abstractmethod
    def publish_many(self, bodies: Sequence[bytes]) -> None:
        """All, in order, many of them outstanding; returns when each is confirmed."""

    @abstractmethod
    def take(self, count: int) -> list[bytes]:
        """Wait for messages, at most so many, and acknowledge them."""

    @abstractmethod
    def close(self) -> None:
        """What is in the queue stays in it."""
