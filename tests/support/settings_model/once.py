"""Of which messages one counts: the last ids of a queue, and the numbers of named producers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False)
class OnceModel:
    capacity: int
    ids: list[str] = field(default_factory=list)
    """All that ever counted; the last `capacity` are known."""
    numbers: dict[str, int] = field(default_factory=dict)

    def knows(self, message_id: str | None, producer: tuple[str, int] | None) -> bool:
        if producer is not None:
            name, number = producer
            return self.numbers.get(name, 0) >= number
        if message_id is None or self.capacity == 0:
            return False
        return message_id in self.ids[-self.capacity :]

    def note(self, message_id: str | None, producer: tuple[str, int] | None) -> None:
        if producer is not None:
            name, number = producer
            self.numbers[name] = number
        elif message_id is not None and self.capacity > 0:
            self.ids.append(message_id)
