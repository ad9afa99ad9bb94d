"""An actor: one process, as an automaton that is discovered while it is explored.

What an actor does next depends on its program and on the results of its operations so far, and on
nothing else.  A `Node` is one such local state: where the kernels on its stack stand, their live
locals, its private memory, and the operation that it waits for.  Each result leads to another node.
Histories that come to the same local state share the node, and a node's successors are computed
once, so exploring millions of global states runs each piece of kernel only once per local state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FrameType
from typing import Final, cast

from tests.explore import operation
from tests.explore.memory import BLIND, BULK, CONSTANT, Memory, is_private
from tests.explore.operation import Violation, signed
from tests.explore.translation import Run, Stop, Translation

STOPS_MAX: Final = 10_000
"""Private operations between two steps: more is a kernel that does not end."""

NOWHERE: Final = ("", "", 0)


class Node:
    """One local state of an actor, and the operation that it waits to perform."""

    __slots__ = (
        "_live",
        "address",
        "edges",
        "expected",
        "index",
        "kind",
        "parent",
        "salt",
        "silent",
        "value",
        "via",
        "where",
    )

    def __init__(self, stop: Stop, index: int, silent: bool, salt: int) -> None:
        self.kind = stop[0]
        self.index = index
        """Of the word in the states' memory; -1 if the operation is on none."""
        self.silent = silent
        """Performed at once with the step before it."""
        self.salt = salt
        self.address = stop[1] if len(stop) > 1 else 0
        self.expected = signed(stop[2]) if len(stop) > 3 else 0
        self.value = signed(stop[-1]) if len(stop) > 2 else 0
        self.edges: dict[int, Node] = {}
        self.parent: Node | None = None
        self.via = 0
        self.where: tuple[str, str, int] = NOWHERE
        self._live: tuple[Run, dict[int, int]] | None = None

    @property
    def ended(self) -> bool:
        return self.kind >= operation.DONE


class Actor:
    """One process and its program."""

    def __init__(
        self,
        name: str,
        program: Callable[..., int],
        arguments: Sequence[int],
        memory: Memory,
        translation: Translation,
        salt: Callable[[], int],
        private: Mapping[int, int],
    ) -> None:
        self.name = name
        self._program = program
        self._arguments = tuple(arguments)
        self._memory = memory
        self._translation = translation
        self._salt = salt
        self._private = dict(private)
        self.left: dict[int, int] = {}
        """The private memory with which the program last ended."""
        self._nodes: dict[object, Node] = {}
        self._places: dict[tuple[CodeType, int], tuple[str, ...]] = {}
        self.done = Node((operation.DONE,), -1, False, salt())
        self.killed = Node((operation.KILLED,), -1, False, salt())
        self.stopped = Node((operation.STOPPED,), -1, False, salt())

    @property
    def nodes(self) -> int:
        return len(self._nodes)

    def start(self) -> Node:
        run = self._translation.start(self._program, self._arguments)
        private = dict(self._private)
        return self._settle(run, private, next(run), None, 0)

    def follow(self, node: Node, result: int) -> Node:
        """Where the actor stands after this result of the operation that it waited for."""
        run, private = self._resume(node)
        try:
            stop = run.send(result)
        except StopIteration:
            self.left = private
            node.edges[result] = self.done
            return self.done
        except (ZeroDivisionError, UnboundLocalError, NameError, TypeError) as error:
            raise Violation(f"{node.where[0]}: {type(error).__name__}: {error}") from error
        reached = self._settle(run, private, stop, node, result)
        node.edges[result] = reached
        return reached

    def _resume(self, node: Node) -> tuple[Run, dict[int, int]]:
        """A run of the program that stands at this node: the one that made it, or a replay."""
        if node._live is not None:
            live, node._live = node._live, None
            return live
        results: list[int] = []
        each = node
        while each.parent is not None:
            results.append(each.via)
            each = each.parent
        run = self._translation.start(self._program, self._arguments)
        private = dict(self._private)
        stop = self._through_private(run, private, next(run))
        for result in reversed(results):
            assert stop is not None
            stop = self._through_private(run, private, run.send(result))
        return run, private

    def _settle(
        self, run: Run, private: dict[int, int], stop: Stop, parent: Node | None, via: int
    ) -> Node:
        reached = self._through_private(run, private, stop)
        if reached is None:
            self.left = private
            return self.done
        frames, innermost = self._stack(run)
        key = (frames, reached, tuple(sorted(private.items())))
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = self._node(reached)
            node.parent, node.via = parent, via
            code = innermost.f_code
            node.where = (code.co_name, code.co_filename, innermost.f_lineno)
            node._live = run, private
        return node

    def _node(self, stop: Stop) -> Node:
        kind = stop[0]
        if kind == operation.ASK:
            return Node(stop, -1, False, self._salt())
        if kind == operation.TELL:
            return Node((*stop, 0, 0)[:4], -1, True, self._salt())
        role = self._memory.role(stop[1])
        silent = role == BULK and kind in operation.PLAIN
        return Node(stop, self._memory.index[stop[1]], silent, self._salt())

    def _through_private(self, run: Run, private: dict[int, int], stop: Stop) -> Stop | None:
        """Perform what concerns nobody else; the first operation that does, None at the end."""
        for _ in range(STOPS_MAX):
            kind = stop[0]
            if kind in (operation.ASK, operation.TELL):
                return stop
            address = stop[1]
            if is_private(address):
                result = _perform_private(private, stop)
            else:
                role = self._memory.role(address)
                if role == CONSTANT and not self._memory.frozen:
                    return stop  # the set-up is still writing them
                if role == CONSTANT:
                    if kind not in (operation.LOAD, operation.LOAD_ACQUIRE):
                        raise Violation(f"{self._memory.name(address)} is written")
                    result = self._memory.constants[address]
                elif role == BLIND:
                    result = 0
                else:
                    return stop
            try:
                stop = run.send(result)
            except StopIteration:
                return None
        raise Violation(f"more than {STOPS_MAX} private operations without a step")

    def _stack(self, run: Run) -> tuple[tuple[object, ...], FrameType]:
        """Where each kernel on the stack stands, with the locals that still matter."""
        parts: list[object] = []
        each: Run | None = run
        while each is not None:
            frame = cast(FrameType, each.gi_frame)
            code, at = frame.f_code, frame.f_lasti
            names = self._live_at(code, at)
            local = frame.f_locals
            parts.append(id(code))
            parts.append(at)
            for name in names:
                parts.append(local.get(name))
            each = cast("Run | None", each.gi_yieldfrom)
        return tuple(parts), frame

    def _live_at(self, code: CodeType, at: int) -> tuple[str, ...]:
        found = self._places.get((code, at))
        if found is None:
            line, _, column, _ = list(code.co_positions())[at // 2]
            assert line is not None
            assert column is not None
            names = self._translation.live_in(code)[line, column]
            found = self._places[code, at] = tuple(
                sorted(name for name in names if name in code.co_varnames)
            )
        return found


def _perform_private(private: dict[int, int], stop: Stop) -> int:
    kind, address = stop[0], stop[1]
    former = private.get(address, 0)
    if kind in (operation.LOAD, operation.LOAD_ACQUIRE):
        return former
    value = signed(stop[-1])
    if kind == operation.FETCH_ADD:
        value = signed(former + value)
    if kind == operation.COMPARE_EXCHANGE and former != signed(stop[2]):
        return former
    if value:
        private[address] = value
    else:
        private.pop(address, None)
    return former
