"""Each condition of a class, taken away: as if it had always held, or never."""

from __future__ import annotations
import __future__

import ast
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

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


def cuts_of(owner: type) -> Iterator[Cut]:
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
