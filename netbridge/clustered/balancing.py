"""Keeps the balanced sets of the vhost as they are to be; publishers read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shmbroker.core.layout import BALANCE_SELECTOR_SHIFT, BALANCE_SELECTORS_BYTES
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import Error, NotFound, SelectorError
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.selector.selector import Selector
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.cluster.balancing import HERE, Member
from shmbroker.netbridge.clustered.towards import towards
from shmbroker.netbridge.election.question import Node

Which = tuple[str, int]
"""A queue: its name and reference, so that one that is made again is another one."""
Sets = Mapping[Which, tuple[Member, ...]]


class Balancing:
    """Of one thread at a time: it waits for the catalog's lock."""

    def __init__(
        self, broker: Broker, cluster: str, tell: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._broker, self._cluster, self._tell = broker, cluster, tell
        self._there: dict[Which, tuple[Member, ...]] = {}
        self._sets: dict[Which, int] = {}
        """References."""
        self.stands_for: dict[str, str] = {}
        """Whose messages are in a queue, by its name, if they are not its own."""
        self.lacking: frozenset[Which] = frozenset()
        """Those that could not be set, which was told: they are to be tried again."""
        lib.sb_balances_forget(broker._connection, 0)

    def sets(self, wanted: Sets) -> None:
        """From now on these, and no others."""
        for which in self._there.keys() - wanted.keys():
            if (error := self._set(which, ())) is not None:
                self._not_set(which, error)
            del self._there[which]
            if left := self._sets.pop(which, 0):
                lib.sb_balances_forget(self._broker._connection, left)
        lacking = set()
        for which, members in wanted.items():
            if self._there.get(which) == members:
                continue
            if (error := self._set(which, members)) is None:
                self._there[which] = members
            else:
                lacking.add(which)
                if which not in self.lacking:
                    self._not_set(which, error)
        self.lacking = frozenset(lacking)

    def _not_set(self, which: Which, error: Error) -> None:
        self._tell({"event": "cluster", "level": "error", "state": "not balanced",
                    "queue": which[0], "detail": str(error)})  # fmt: skip

    def _set(self, which: Which, members: tuple[Member, ...]) -> Error | None:
        """Why it is not done."""
        name, reference = which
        words: list[int] = []
        eligible, selectors = programs_of(members)
        try:
            queue = serving(self._broker, name)
            if lib.sb_queue_reference(queue._queue) != reference:
                return None  # so was this one
            for each in members:
                way = queue if each.node == HERE else self._way(each.node)
                target = 0 if each.node == HERE else target_of(self.stands_for.get(name, name))
                words += [int(lib.sb_queue_reference(way._queue)), target]
        except NotFound:  # it was deleted: the next look tells
            return None
        except Error as error:
            return error
        given = ffi.new("int64_t[]", words)
        code = lib.sb_queue_balance(
            queue._queue, given, len(members), eligible, selectors, len(selectors)
        )
        if code < 0:
            return queue._error(code, "balancing")
        self._sets[which] = code
        return None

    def _way(self, node: Node) -> Any:
        return serving(self._broker, towards(self._cluster, node))

    def end(self) -> None:
        """What is published from now on stays here."""
        self.sets({})


def programs_of(members: Sequence[Member]) -> tuple[int, bytes]:
    """A bit for each member that takes every message, and the selectors of the others, as
    core/balance.py has them.  Those that have no room, or that this broker does not know how to
    read, count as taking every message: the longest first."""
    eligible, programs = 0, {}
    for index, each in enumerate(members):
        if not each.is_eligible:
            continue
        try:
            programs[index] = b"".join(_entry(index, text) for text in each.selectors)
        except SelectorError:  # of a broker of another version
            programs[index] = b""
    while sum(map(len, programs.values())) > BALANCE_SELECTORS_BYTES:
        programs[max(programs, key=lambda index: len(programs[index]))] = b""
    for index, program in programs.items():
        if not program:
            eligible |= 1 << index
    return eligible, b"".join(programs.values())


def _entry(member: int, text: str) -> bytes:
    program = Selector(text).program
    word = (len(program) << BALANCE_SELECTOR_SHIFT | member).to_bytes(8, "little")
    return word + program + bytes(-len(program) % 8)
