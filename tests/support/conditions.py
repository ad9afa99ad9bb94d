"""Each condition of a class, taken away: as if it had always held, or never.

Some test has to fail then.  Tests that take no time are asked, so a class is done in seconds.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import pkgutil
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import product
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

Test = Callable[[], object]
LIMIT_SECONDS: Final = 5.0
ANNOTATIONS: Final = __future__.annotations.compiler_flag


@dataclass(frozen=True, slots=True)
class Cut:
    """A condition that is a constant from here on."""

    owner: type
    function: str
    condition: str
    """Its text.  One that stands twice in a function is cut twice under one name."""
    place: int
    value: bool

    @property
    def name(self) -> str:
        return f"{self.owner.__name__}.{self.function}: {self.condition} -> {self.value}"

    @contextmanager
    def applied(self) -> Iterator[None]:
        whole = vars(self.owner)[self.function]
        plain = _plain(whole)
        tree = _tree(plain)
        cut = _Cutter(_conditions(tree)[self.place], self.value).visit(tree)
        code = compile(
            ast.fix_missing_locations(cut), plain.__code__.co_filename, "exec", ANNOTATIONS, True
        )
        scope: dict[str, Any] = dict(plain.__globals__)
        exec(code, scope)
        setattr(self.owner, self.function, scope[self.function])
        try:
            yield
        finally:
            setattr(self.owner, self.function, whole)


def unneeded(owner: type, tests: Sequence[Test]) -> set[str]:
    """Cuts of it to which none of these objects, by name."""
    reached = _reached(owner, tests)
    return {
        cut.name
        for cut in _cuts_of(owner)
        if not _objects(cut, reached.get(_plain(vars(owner)[cut.function]).__code__, ()))
    }


def all_of(package: str, *, but: Collection[str]) -> list[Test]:
    """Tests of a folder, with each of their parameters; those that need a fixture are left out."""
    found: list[Test] = []
    names = {each.name for each in pkgutil.iter_modules(import_module(package).__path__)}
    for module in sorted(name for name in names - set(but) if name.startswith("test_")):
        for name, test in list(vars(import_module(f"{package}.{module}")).items()):
            if name.startswith("test_") and isinstance(test, FunctionType):
                marks = [each for each in getattr(test, "pytestmark", ())
                         if each.name == "parametrize"]  # fmt: skip
                for chosen in product(*(_sets(*mark.args[:2]) for mark in marks)):
                    given = {key: value for each in chosen for key, value in each.items()}
                    if given.keys() == inspect.signature(test).parameters.keys():
                        found.append(partial(test, **given))
    return found


def _sets(names: Any, values: Any) -> list[dict[str, Any]]:
    several = [each.strip() for each in names.split(",")] if isinstance(names, str) else names
    if len(several) == 1:
        return [{several[0]: each} for each in values]
    return [dict(zip(several, each, strict=True)) for each in values]


def _objects(cut: Cut, tests: Iterable[Test]) -> bool:
    with cut.applied(), _limit():
        for test in tests:
            # again and again: what is raised while garbage is collected goes nowhere
            signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS, LIMIT_SECONDS)
            try:
                test()
            except Exception:  # noqa: BLE001  # whatever a cut breaks
                return True
    return False


@contextmanager
def _limit() -> Iterator[None]:
    """Without a condition a loop may have no end.  What is counted is processor time."""
    former = signal.signal(signal.SIGPROF, _goes_on)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)


def _goes_on(*_: object) -> None:
    raise RuntimeError("it goes on and on")


def _reached(owner: type, tests: Sequence[Test]) -> dict[CodeType, list[Test]]:
    """By function: the tests that call it, the quickest first.  All of them pass."""
    file = inspect.getsourcefile(owner)
    found: dict[CodeType, list[tuple[float, int]]] = {}
    for number, test in enumerate(tests):
        called: set[CodeType] = set()

        def notes(frame: FrameType, event: str, _: object, called: set[CodeType] = called) -> None:
            if event == "call" and frame.f_code.co_filename == file:
                called.add(frame.f_code)

        began = time.process_time()
        sys.setprofile(notes)
        try:
            test()
        finally:
            sys.setprofile(None)
        took = time.process_time() - began
        for each in called:
            found.setdefault(each, []).append((took, number))
    return {code: [tests[number] for _, number in sorted(by)] for code, by in found.items()}


def _cuts_of(owner: type) -> Iterator[Cut]:
    written = inspect.getsourcefile(owner)
    for name, each in vars(owner).items():
        plain = _plain(each)
        if plain is not None and plain.__code__.co_filename == written:  # a dataclass makes some
            for place, condition in enumerate(_conditions(_tree(plain))):
                for value in (True, False):
                    yield Cut(owner, name, ast.unparse(condition), place, value)


def _plain(attribute: Any) -> Any:
    if isinstance(attribute, property):
        return attribute.fget
    if isinstance(attribute, staticmethod | classmethod):
        return attribute.__func__
    return attribute if isinstance(attribute, FunctionType) else None


def _tree(function: Any) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(function)))


def _conditions(tree: ast.AST) -> list[ast.expr]:
    """In the order of the text: what an `if` or a filter looks at, each part of an `and` or `or`,
    and a comparison that is returned or kept."""
    roots: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            roots.append(node.test)
        elif isinstance(node, ast.comprehension):
            roots += node.ifs
        elif isinstance(node, ast.BoolOp):
            roots.append(node)
        elif isinstance(node, ast.Return | ast.Assign) and isinstance(node.value, ast.Compare):
            roots.append(node.value)
    leaves = {id(leaf): leaf for root in roots for leaf in _leaves(root)}
    return sorted(leaves.values(), key=lambda each: (each.lineno, each.col_offset))


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BoolOp):
        for each in node.values:
            yield from _leaves(each)
    else:
        yield node


class _Cutter(ast.NodeTransformer):
    def __init__(self, target: ast.expr, value: bool) -> None:
        self.target = target
        self.value = value

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self.target:
            return ast.copy_location(ast.Constant(self.value), node)
        visited: ast.AST = self.generic_visit(node)
        return visited
