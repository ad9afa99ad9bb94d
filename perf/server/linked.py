"""Two brokers and a link from one to the other: what is published at one is taken at the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from shmbroker.perf.server.connection import Connection
from shmbroker.perf.server.server import Place

FAR: Final = "far"
FAR_PORT: Final = "far-port"
LINKED_QUEUE: Final = "linked"
"""It is there at both."""


def far_beside(place: Place, port: int) -> Place:
    """The other broker's place, in the folder of the first."""
    far = Place(place.folder / f"{place.folder.name}-{FAR}", port)
    far.folder.mkdir()
    (place.folder / FAR_PORT).write_text(str(port))
    return far


def far_of(place: Place) -> Place:
    port = int((place.folder / FAR_PORT).read_text())
    return Place(place.folder / f"{place.folder.name}-{FAR}", port)


class Linked(Connection):
    """A publish is confirmed by the near broker."""

    def __init__(self, near: Connection, far: Connection) -> None:
        self._near, self._far = near, far

    def publish(self, body: bytes) -> None:
        self._near.publish(body)

    def publish_many(self, bodies: Sequence[bytes]) -> None:
        self._near.publish_many(bodies)

    def take(self, count: int) -> list[bytes]:
        return self._far.take(count)

    def close(self) -> None:
        self._near.close()
        self._far.close()
