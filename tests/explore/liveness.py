"""Which local variables still matter where an interpreted kernel stops.

Two states that differ only in a variable that is never read again behave alike; leaving such
variables out of the state's key merges them.  Too large an answer is safe, too small is not: so a
stop keeps every name that its own expression reads (it may wait on the operand stack) beside
what is read after the statement.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

Place = tuple[int, int]
"""Line and column of a stop."""


def live_names(function: ast.FunctionDef) -> dict[Place, frozenset[str]]:
    """For each yield of the function: the names that may be read once it goes on."""
    return _Liveness().of(function)


class _Liveness:
    def __init__(self) -> None:
        self._at: dict[Place, frozenset[str]] = {}
        self._loops: list[tuple[frozenset[str], frozenset[str]]] = []

    def of(self, function: ast.FunctionDef) -> dict[Place, frozenset[str]]:
        self._block(function.body, frozenset())
        return self._at

    def _block(self, statements: Sequence[ast.stmt], after: frozenset[str]) -> frozenset[str]:
        for statement in reversed(statements):
            after = self._statement(statement, after)
        return after

    def _statement(self, node: ast.stmt, after: frozenset[str]) -> frozenset[str]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return self._expression(value, after - {name})
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                return self._expression(value, after - {name})
            case ast.Expr(value=value):
                return self._expression(value, after)
            case ast.Return(value=value):
                return frozenset() if value is None else self._expression(value, frozenset())
            case ast.If(test=test, body=body, orelse=orelse):
                return self._expression(test, self._block(body, after) | self._block(orelse, after))
            case ast.While(test=test, body=body, orelse=[]):
                return self._while(test, body, after)
            case ast.Break():
                return self._loops[-1][1]
            case ast.Continue():
                return self._loops[-1][0]
            case ast.Pass():
                return after
        raise SyntaxError(f"line {node.lineno}: a kernel has no {type(node).__name__} statement")

    def _while(
        self, test: ast.expr, body: Sequence[ast.stmt], after: frozenset[str]
    ) -> frozenset[str]:
        top: frozenset[str] = frozenset()
        while True:
            self._loops.append((top, after))
            grown = self._expression(test, after | self._block(body, top))
            self._loops.pop()
            if grown == top:
                return top
            top = grown

    def _expression(self, node: ast.expr, after: frozenset[str]) -> frozenset[str]:
        names = frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
        for each in ast.walk(node):
            if isinstance(each, ast.Yield | ast.YieldFrom):
                self._at[each.lineno, each.col_offset] = names | after
        # a temporary of the expression is never read in another one
        return frozenset(name for name in names if not name.startswith("_stop_")) | after
