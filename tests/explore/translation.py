"""The real kernels, as generators that stop at each operation.

The source of a kernel is read, optionally broken on purpose (`Mutation`), and rewritten:

    an atomic                 (_stop_7 := (yield (LOAD_ACQUIRE, address)))
    a kernel that may stop    (_stop_8 := (yield from kernel(...)))
    + - * <<                  the same in 64 bits: what a register would hold
    for i in range(...)       a while loop, so that no iterator hides part of the state
    x += y                    x = x + y

The walrus puts every intermediate result into a named local; so the place where a generator stands
and its live locals (`liveness`) are its whole state.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType, GeneratorType
from typing import Final, TypeAlias, cast

from shmbroker.core import atomics
from shmbroker.core.atomics import load, store
from shmbroker.core.kernel import KERNELS
from tests.explore.liveness import Place, live_names
from tests.explore.operation import IGNORED, YIELDED, Violation, signed

Stop = tuple[int, ...]
Run: TypeAlias = "GeneratorType[Stop, int, int]"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One guard of one kernel, removed."""

    kernel: str
    old: str
    new: str

    def apply(self, source: str) -> str:
        found = source.count(self.old)
        if found != 1:
            raise ValueError(f"{self.kernel} has the snippet {found} times, not once: {self.old!r}")
        return source.replace(self.old, self.new)


class Translation:
    """Kernels and programs, each translated when first asked for."""

    def __init__(self, mutations: Iterable[Mutation] = ()) -> None:
        self._mutations: dict[str, list[Mutation]] = {}
        for mutation in mutations:
            self._mutations.setdefault(mutation.kernel, []).append(mutation)
        self._done: dict[Callable[..., int], Callable[..., object] | None] = {}
        self._calls: dict[Callable[..., object], set[Callable[..., object]]] = {}
        self.live: dict[CodeType, dict[Place, frozenset[str]]] = {}

    def unused(self) -> list[str]:
        """Kernels with a mutation that nobody called: what was explored was not mutated."""
        translated = {each.__name__ for each in self._done}
        return sorted(set(self._mutations) - translated)

    def start(self, program: Callable[..., int], arguments: Iterable[int]) -> Run:
        return cast(Run, self._translated(program)(*arguments))

    def _translated(self, function: Callable[..., int]) -> Callable[..., object]:
        if function not in self._done:
            self._done[function] = None
            whole = _WHOLE._translated(function) if self is not _WHOLE else None
            if whole is None or self._mutations.keys() & _WHOLE._reached(whole):
                self._done[function] = self._translate(cast(FunctionType, function))
            else:
                self._done[function] = whole
        done = self._done[function]
        if done is None:
            raise SyntaxError(f"{function.__name__} calls itself: a kernel cannot")
        return done

    def _reached(self, made: Callable[..., object]) -> set[str]:
        """The names of a translated function and of all that it calls."""
        reached: set[Callable[..., object]] = set()
        left = {made}
        while left:
            reached |= left
            left = {callee for each in left for callee in self._calls.get(each, ())} - reached
        return {each.__name__ for each in reached}

    def live_in(self, code: CodeType) -> dict[Place, frozenset[str]]:
        """The names that matter at each of its stops."""
        found = self.live.get(code)
        return _WHOLE.live[code] if found is None else found

    def _translate(self, function: FunctionType) -> Callable[..., object]:
        name = function.__name__
        source = _source(function)
        for mutation in self._mutations.get(name, ()):
            source = mutation.apply(source)
        tree = ast.parse(source)
        definition = tree.body[0]
        if not isinstance(definition, ast.FunctionDef):
            raise SyntaxError(f"{name} is no function")
        _strip(definition)
        # a mutation may use what its module has not imported
        scope: dict[str, object] = {each: getattr(atomics, each) for each in atomics.ATOMICS}
        scope.update((each.name, each.function) for each in KERNELS.values())
        scope.update(function.__globals__)
        rewriter = _Rewriter(self, scope)
        definition.body = [
            statement for each in definition.body for statement in rewriter.statement(each)
        ]
        ast.fix_missing_locations(tree)
        live = live_names(definition)
        ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
        scope.update(_ARITHMETIC)
        exec(compile(tree, function.__code__.co_filename, "exec"), scope)
        made = cast(FunctionType, scope[name])
        self._calls[made] = rewriter.calls
        first = function.__code__.co_firstlineno - 1
        self.live[made.__code__] = {
            (line + first, column): names for (line, column), names in live.items()
        }
        return made

    def callee(self, function: object, scope: Mapping[str, object]) -> Callable[..., object] | None:
        """The translation of what a kernel calls; None for what is not ours (min, len)."""
        if function is atomics.copy:
            return self._translated(copy)
        if function is atomics.fill:
            return self._translated(fill)
        if function is atomics.load_byte:
            return self._translated(load_byte)
        if function is atomics.highest_bit:
            return highest_bit
        if isinstance(function, FunctionType) and function in _ours(function):
            return self._translated(function)
        return None


_WHOLE: Final = Translation()
"""Without a mutation: what does not reach a mutated kernel is translated once, here."""


def _ours(function: FunctionType) -> tuple[FunctionType, ...]:
    known = KERNELS.get(function.__name__)
    if known is not None and known.function is function:
        return (function,)
    if getattr(function, "explored", False):
        return (function,)
    return ()


def program(function: Callable[..., int]) -> Callable[..., int]:
    """Mark a function that programs call, and that is no kernel of the product."""
    function.explored = True  # type: ignore[attr-defined]
    return function


@program
def copy(target: int, source: int, length: int) -> int:
    """What `atomics.copy` does, word by word: its steps are the explorer's."""
    done = 0
    while done + 8 <= length:
        store(target + done, load(source + done))
        done = done + 8
    if done < length:
        mask = (1 << (8 * (length - done))) - 1
        kept = load(target + done) & ~mask
        store(target + done, kept | (load(source + done) & mask))
    return 0


@program
def fill(target: int, byte: int, length: int) -> int:
    """What `atomics.fill` does, word by word."""
    pattern = byte & 0xFF
    pattern = pattern | (pattern << 8)
    pattern = pattern | (pattern << 16)
    pattern = pattern | (pattern << 32)
    done = 0
    while done + 8 <= length:
        store(target + done, pattern)
        done = done + 8
    if done < length:
        mask = (1 << (8 * (length - done))) - 1
        kept = load(target + done) & ~mask
        store(target + done, kept | (pattern & mask))
    return 0


@program
def load_byte(address: int) -> int:
    """What `atomics.load_byte` does."""
    return (load(address & -8) >> 8 * (address & 7)) & 0xFF


def highest_bit(value: int) -> int:
    """What `atomics.highest_bit` does: no step."""
    return value.bit_length() - 1


@cache
def _source(function: FunctionType) -> str:
    return textwrap.dedent(inspect.getsource(function))


def _strip(definition: ast.FunctionDef) -> None:
    definition.decorator_list = []
    definition.returns = None
    for argument in definition.args.args:
        argument.annotation = None
    first = definition.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        definition.body = definition.body[1:]


class _Rewriter(ast.NodeTransformer):
    def __init__(self, translation: Translation, scope: dict[str, object]) -> None:
        self._translation = translation
        self._scope = scope
        self._stops = 0
        self.calls: set[Callable[..., object]] = set()
        """What it calls, translated."""

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        made = self.visit(node)
        return made if isinstance(made, list) else [made]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        """`for i in range(a, b, step)`, step positive: i runs from a to below b."""
        match node:
            case ast.For(
                target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds)
            ) if len(bounds) <= 3 and not node.orelse:
                pass
            case _:
                raise SyntaxError(f"line {node.lineno}: only `for name in range(...)`")
        self._stops += 1
        index, limit = f"_index_{self._stops}", f"_limit_{self._stops}"
        start = bounds[0] if len(bounds) > 1 else ast.Constant(0)
        step = self.visit(bounds[2]) if len(bounds) == 3 else ast.Constant(1)
        made: list[ast.stmt] = [
            _assign(index, self.visit(start)),
            _assign(limit, self.visit(bounds[min(1, len(bounds) - 1)])),
            ast.While(
                test=ast.Compare(_name(index), [ast.Lt()], [_name(limit)]),
                body=[
                    _assign(name, _name(index)),
                    _assign(index, ast.BinOp(_name(index), ast.Add(), step)),
                    *(statement for each in node.body for statement in self.statement(each)),
                ],
                orelse=[],
            ),
        ]
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in made]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            raise SyntaxError(f"line {node.lineno}: only names are assigned to")
        value = ast.BinOp(_name(node.target.id), node.op, node.value)
        made = _assign(node.target.id, self.visit(ast.copy_location(value, node)))
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        name = _REPLACED.get(type(node.op))
        if name is None:
            return node
        made = ast.Call(_name(name), [node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise SyntaxError(f"line {node.lineno}: kernels call by plain name and position")
        function = self._scope.get(node.func.id)
        try:
            kind = YIELDED.get(function)
            ignored = function in IGNORED
        except TypeError:
            return node
        if ignored:
            return ast.copy_location(ast.Constant(0), node)
        if kind is not None:
            stop = ast.Tuple([ast.Constant(kind), *node.args], ast.Load())
            return self._stop(ast.Yield(stop), node)
        made = self._translation.callee(function, self._scope)
        if made is None:
            return node
        self.calls.add(made)
        alias = "_translated_" + node.func.id
        self._scope[alias] = made
        node.func = ast.copy_location(_name(alias), node.func)
        if not inspect.isgeneratorfunction(made):
            return node
        return self._stop(ast.YieldFrom(node), node)

    def _stop(self, stop: ast.Yield | ast.YieldFrom, node: ast.Call) -> ast.expr:
        self._stops += 1
        ast.copy_location(stop, node)
        made = ast.NamedExpr(ast.Name(f"_stop_{self._stops}", ast.Store()), stop)
        return ast.fix_missing_locations(ast.copy_location(made, node))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _add(left: int, right: int) -> int:
    return signed(left + right)


def _subtract(left: int, right: int) -> int:
    return signed(left - right)


def _multiply(left: int, right: int) -> int:
    return signed(left * right)


def _shift_left(value: int, count: int) -> int:
    _check_shift(count)
    return signed(value << count)


def _shift_right(value: int, count: int) -> int:
    _check_shift(count)
    return value >> count


def _check_shift(count: int) -> None:
    if not 0 <= count < 64:
        raise Violation(f"a shift by {count} bits means nothing")


_ARITHMETIC: Final[dict[str, object]] = {
    "_add": _add,
    "_subtract": _subtract,
    "_multiply": _multiply,
    "_shift_left": _shift_left,
    "_shift_right": _shift_right,
}
_REPLACED: Final[dict[type[ast.operator], str]] = {
    ast.Add: "_add",
    ast.Sub: "_subtract",
    ast.Mult: "_multiply",
    ast.LShift: "_shift_left",
    ast.RShift: "_shift_right",
}
