"""A node that gives all that it has to another one and ends, as `netbridge/clustered/departure.py`
does it; and the one that takes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.cluster.said import Answers, Offers
from shmbroker.netbridge.cluster.scale_down import ScaleDown, order_of
from shmbroker.netbridge.election.question import Node as Id
from shmbroker.netbridge.simulation.cluster.cast import Settings
from shmbroker.netbridge.simulation.cluster.node import is_made_by
from shmbroker.netbridge.simulation.network import Message

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.cluster.broker import Broker

LOOK_SECONDS: Final = 0.05
FOUND_SECONDS: Final = 1.0
LOST_SECONDS: Final = 2.0
TOLD_SECONDS: Final = 0.5
"""Then the others know that nothing more is to be sent here: longer than between two looks."""


@dataclass(frozen=True, slots=True)
class MakesQueues:
    number: int
    queues: tuple[tuple[str, Settings], ...]


class Successor:
    """Of every broker: it answers one that leaves, and hears what it is answered itself."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def heard(self, line: str, what: Message) -> bool:
        """False: it is none of these."""
        broker = self._broker
        match what:
            case Offers() | MakesQueues():
                is_there = broker.is_live and broker.listens and broker.leaving is None
                if is_there and isinstance(what, MakesQueues):
                    for name, settings in what.queues:
                        broker.store.declare(name, settings)
                broker.say(line, Answers(what.number, "" if is_there else "it is not there", ""))
            case Answers():
                if broker.leaving is not None:
                    broker.leaving.answered(what)
            case _:
                return False
        return True

    def gone(self, line: str) -> None:
        """Nobody answers over it any more."""
        if self._broker.leaving is not None:
            self._broker.leaving.lost(line)


class Leaving:
    def __init__(
        self, broker: Broker, wanted: ScaleDown, ends: Callable[[Broker, bool], None]
    ) -> None:
        """`ends`: whether everything is elsewhere."""
        self._broker, self._wanted, self._ends = broker, wanted, ends
        self._asked: list[Id] = []
        self._line = ""
        self._number = 0
        self._to: Id = b""
        self._began = self._reached_at = self._parted = broker.host.clock
        self._is_made = self._is_unlistened = False

    def begin(self) -> None:
        self._step()

    @property
    def has_parted(self) -> bool:
        """Its programs are gone."""
        return bool(self._to)

    def _step(self) -> None:
        broker = self._broker
        if not broker.is_live:
            return
        if not self._to:
            if not self._line:
                self._asks()
            if not self._line and broker.host.clock > self._began + FOUND_SECONDS:
                self._ends(broker, False)
                return
        elif self._is_made and self._drains():
            self._ends(broker, True)
            return
        elif self._is_lost():
            self._ends(broker, False)
            return
        broker.host.later(LOOK_SECONDS, self._step)

    # --- to whom ------------------------------------------------------------------------------

    def _asks(self) -> None:
        machine = self._broker.machine
        up = [(node, each.uri) for node, each in machine.lives.items() if machine.is_there(node)]
        for node in order_of(self._wanted, up):
            line = self._broker.talks_with(node)
            if node not in self._asked and line:
                self._asked.append(node)
                self._line, self._number = line, self._number + 1
                self._broker.say(line, Offers(self._number, self._wanted.group))
                return

    def answered(self, what: Answers) -> None:
        if what.number != self._number or not self._line:
            return
        self._line = ""
        if not self._to and not what.why:
            self._parts(self._asked[-1])
        elif self._to and not what.why:
            self._is_made = True

    def lost(self, line: str) -> None:
        if line == self._line:
            self._line = ""

    def _parts(self, to: Id) -> None:
        """Programs go."""
        broker = self._broker
        broker.host.world.tell(f"{broker.name} leaves to {to[:1].decode()}")
        self._to, self._parted = to, broker.host.clock
        broker.admits = False
        broker.node.loses_programs()
        broker.watch.parts(broker.node, to, self._wanted)
        broker.carrying.leaves()
        self._makes()

    def _makes(self) -> None:
        line = self._broker.talks_with(self._to)
        if line:
            self._line, self._number = line, self._number + 1
            queues = tuple(self._broker.store.memory.settings.items())
            self._broker.say(line, MakesQueues(self._number, queues))

    # --- what is moved ------------------------------------------------------------------------

    def _drains(self) -> bool:
        """Nothing is here any more, and nobody sends more."""
        broker, content = self._broker, self._broker.store.memory
        if self._to not in content.towards:  # it was forgotten
            return False
        for name, messages in content.queues.items():
            if messages:
                broker.store.move(name, list(messages.values()), self._to)
        if any(content.queues.values()) or any(each.messages for each in content.towards.values()):
            return False
        if not self._is_unlistened and broker.host.clock >= self._parted + TOLD_SECONDS:
            self._unlisten()
        return self._is_unlistened and not broker.listens and broker.store.is_synced

    def _unlisten(self) -> None:
        """What came is confirmed before the links end."""
        broker = self._broker
        self._is_unlistened = broker.takes_no_more = True

        def close() -> None:
            broker.listens = False
            for line in list(broker.lines):
                if not is_made_by(broker.name, line):
                    broker.lines[line].close()

        broker.store.when_synced(partial(broker.soon, close))

    def _is_lost(self) -> bool:
        """Nobody gets what is here."""
        broker, now = self._broker, self._broker.host.clock
        if not self._is_made and not self._line:
            self._makes()
        towards = broker.store.memory.towards
        waited = {node for node, ring in towards.items() if ring.messages} | {self._to}
        if waited <= broker.carrying.up and self._is_made:
            self._reached_at = now
        return now > self._reached_at + LOST_SECONDS
