"""What a broker has for others: its queues, as their consumers make them look."""

from __future__ import annotations

from shmbroker.netbridge.cluster.advert import SELECTORS_MAX, Advert, Queue


class Rows:
    def __init__(self, broker: str, queues: int, consumers: int) -> None:
        """`consumers`: of each queue."""
        self.consumers = {
            f"orders.{broker}.{number:05}": [""] * consumers for number in range(queues)
        }
        """Of each queue; each by its selector, empty if it takes everything."""

    @property
    def first(self) -> str:
        return next(iter(self.consumers))

    @property
    def adverts(self) -> list[Advert]:
        return [_advert(name, consumers) for name, consumers in self.consumers.items()]


def _advert(name: str, consumers: list[str]) -> Queue:
    """As `netbridge/clustered/looking.py` tells it."""
    selectors = tuple(sorted(set(consumers)))
    is_told = all(selectors) and len(selectors) <= SELECTORS_MAX
    return Queue(name, True, bool(consumers), True, selectors if is_told else ())
