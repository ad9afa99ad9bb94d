"""What a vhost should do, in plain Python: lists, who holds what, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

DELIVERIES_MAX = 15
"""As many as the word of a message can count."""


@dataclass(eq=False)
class MessageModel:
    position: int
    body: bytes
    key: str | None
    properties: dict[str, Any]
    state: str = "ready"
    deliveries: int = 0
    holder: int | None = None

    def given_back(self) -> None:
        self.state, self.holder = "ready", None
        self.deliveries = min(DELIVERIES_MAX, self.deliveries + 1)

    def done(self) -> None:
        self.state, self.holder = "done", None


@dataclass(eq=False)
class QueueModel:
    name: str
    slots: int
    log: list[MessageModel] = field(default_factory=list)
    """Every message that there ever was, by position."""
    paused: bool = False
    is_deleted: bool = False
    gates: dict[int, int] = field(default_factory=dict)
    """Where each gating subscriber stands, by its number."""
    users: set[int] = field(default_factory=set)
    consumers: set[int] = field(default_factory=set)
    producers: set[int] = field(default_factory=set)
    acked: int = 0
    given_back: int = 0
    rejected: int = 0
    dropped: int = 0

    @property
    def head(self) -> int:
        """All below is done with: by who took it, and by who watches."""
        head = 0
        while head < len(self.log) and self.log[head].state == "done":
            head += 1
        return min([head, *self.gates.values()])

    @property
    def room(self) -> int:
        return self.slots - (len(self.log) - self.head)

    def publish(self, body: bytes, key: str | None, properties: dict[str, Any]) -> int:
        assert self.room > 0
        self.log.append(MessageModel(len(self.log), body, key or None, properties))
        return len(self.log) - 1

    def ready(self) -> list[MessageModel]:
        return [message for message in self.log if message.state == "ready"]

    def held(self) -> list[MessageModel]:
        return [message for message in self.log if message.state == "held"]

    def there(self) -> list[MessageModel]:
        return [message for message in self.log if message.state != "done"]

    def next_run(self, count: int) -> list[MessageModel]:
        """What taking so many at once takes: messages that follow each other."""
        if self.paused:
            return []
        run: list[MessageModel] = []
        for message in self.ready():
            if len(run) == count or (run and message.position != run[-1].position + 1):
                break
            run.append(message)
        return run

    def leave(self, connection: int) -> None:
        """The connection is closed: what it held comes back."""
        for message in self.held():
            if message.holder == connection:
                message.given_back()
                self.given_back += 1
        for users in (self.users, self.consumers, self.producers):
            users.discard(connection)


@dataclass(eq=False)
class ExchangeModel:
    name: str
    kind: str
    alternate: ExchangeModel | None
    is_deleted: bool = False


@dataclass(eq=False)
class BindingModel:
    source: ExchangeModel
    destination: QueueModel | ExchangeModel
    key: str
    arguments: dict[str, Any]
    match: str

    def is_same(self, other: BindingModel) -> bool:
        return (
            self.source is other.source
            and self.destination is other.destination
            and (self.key, self.match) == (other.key, other.match)
            # the order matters: it is the packed bytes that are compared
            and list(self.arguments.items()) == list(other.arguments.items())
        )

    def takes(self, key: str, properties: dict[str, Any]) -> bool:
        match self.source.kind:
            case "fanout":
                return True
            case "direct":
                return self.key == key
            case "topic":
                return topic_takes(self.key, key)
            case _:
                return headers_take(self.arguments, self.match, properties)


def topic_takes(pattern: str, key: str) -> bool:
    words, wanted = key.split(".") if key else [], pattern.split(".") if pattern else []
    text = "".join(f"{word}." for word in words)
    expression = "".join(
        {"*": r"[^.]*\.", "#": r"(?:[^.]*\.)*"}.get(word, re.escape(word) + r"\.")
        for word in wanted
    )
    return re.fullmatch(expression, text) is not None


def headers_take(arguments: dict[str, Any], match: str, properties: dict[str, Any]) -> bool:
    holds = [
        name in properties and (value is None or same(properties[name], value))
        for name, value in arguments.items()
        if not name.startswith("x-")
    ]
    return any(holds) if match == "any" else all(holds)


def same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


class VhostModel:
    def __init__(self) -> None:
        self.queues: dict[str, QueueModel] = {}
        self.exchanges: dict[str, ExchangeModel] = {}
        self.bindings: list[BindingModel] = []

    def route(
        self, exchange: ExchangeModel, key: str, properties: dict[str, Any]
    ) -> list[QueueModel]:
        """The queues that get the message, each once."""
        found: list[QueueModel] = []
        seen, pending = {exchange}, [exchange]
        while pending:
            source = pending.pop()
            taken = [
                binding.destination
                for binding in self.bindings
                if binding.source is source and binding.takes(key, properties)
            ]
            if not taken and source.alternate is not None and not source.alternate.is_deleted:
                taken = [source.alternate]
            for destination in taken:
                if isinstance(destination, QueueModel):
                    if destination not in found:
                        found.append(destination)
                elif destination not in seen:
                    seen.add(destination)
                    pending.append(destination)
        return found

    def bindings_of(self, what: QueueModel | ExchangeModel) -> Iterator[BindingModel]:
        return (each for each in self.bindings if what in (each.source, each.destination))

    def is_alternate(self, exchange: ExchangeModel) -> bool:
        return any(each.alternate is exchange for each in self.exchanges.values())

    def forget(self, what: QueueModel | ExchangeModel) -> None:
        """A queue or exchange is deleted, and its bindings with it."""
        what.is_deleted = True
        gone = list(self.bindings_of(what))
        self.bindings = [each for each in self.bindings if each not in gone]
        if isinstance(what, QueueModel):
            del self.queues[what.name]
        else:
            del self.exchanges[what.name]
