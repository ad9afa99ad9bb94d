"""Selectors once more, as plainly as Python can say it: expressions, their text, their value.

None is what is unknown.  The text has the fewest parentheses that the precedence allows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

Scalar = bool | int | float | str


class Other:
    """A value that selectors can do nothing with."""


OTHER = Other()
Value = Scalar | Other | None

LOOSEST, DISJUNCTION, CONJUNCTION, NEGATION, CONDITION, SUM, PRODUCT, SIGNED, ATOM = range(9)


def is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def of_property(value: Any) -> Value:
    """What a property is to a selector."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 63:
        return float(value)
    return value if value is None or isinstance(value, Scalar) else OTHER


def calculate(operator: str, left: Value, right: Value) -> Value:
    if not is_number(left) or not is_number(right):
        return None
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    if isinstance(left, int) and isinstance(right, int):
        if operator == "/" and right == 0:
            return None
        exact = {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "/": lambda: (abs(left) // abs(right)) * (1 if (left < 0) == (right < 0) else -1),
        }[operator]()
        if -(1 << 63) <= exact < 1 << 63:
            return exact
    first, second = float(left), float(right)
    if operator == "/":
        return divide(first, second)
    return {"+": first + second, "-": first - second, "*": first * second}[operator]


def divide(first: float, second: float) -> float:
    if second:
        return first / second
    if math.isnan(first) or first == 0:
        return math.nan
    return math.copysign(math.inf, first) * math.copysign(1, second)


def compare(operator: str, left: Value, right: Value) -> bool | None:
    if is_number(left) and is_number(right):
        assert isinstance(left, int | float)
        assert isinstance(right, int | float)
        if not (isinstance(left, int) and isinstance(right, int)):
            left, right = float(left), float(right)
        return {
            "=": left == right,
            "<>": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[operator]
    if operator in ("=", "<>") and isinstance(left, str | bool) and type(left) is type(right):
        return (left == right) == (operator == "=")
    return None


def negate(value: Value) -> bool | None:
    return not value if isinstance(value, bool) else None


def all_of(*values: Value) -> bool | None:
    if any(value is False for value in values):
        return False
    return True if all(value is True for value in values) else None


def any_of(*values: Value) -> bool | None:
    return negate(all_of(*(negate(value) for value in values)))


class Node:
    precedence: ClassVar[int] = ATOM

    def text(self) -> str:
        raise NotImplementedError

    def value(self, known: Mapping[str, Value]) -> Value:
        raise NotImplementedError

    def within(self, precedence: int) -> str:
        """The text, as part of something that binds its parts so strongly."""
        return self.text() if self.precedence >= precedence else f"({self.text()})"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Constant(Node):
    constant: Scalar

    def text(self) -> str:
        if isinstance(self.constant, str):
            return quoted(self.constant)
        return repr(self.constant)

    def value(self, known: Mapping[str, Value]) -> Value:
        return self.constant


@dataclass(frozen=True)
class Name(Node):
    name: str

    def text(self) -> str:
        if re.fullmatch(r"[A-Za-z$]\w*", self.name):
            return self.name
        return '"' + self.name.replace('"', '""') + '"'

    def value(self, known: Mapping[str, Value]) -> Value:
        return known.get(self.name)


@dataclass(frozen=True)
class Sign(Node):
    sign: str
    operand: Node
    precedence = SIGNED

    def text(self) -> str:
        return f"{self.sign} {self.operand.within(SIGNED)}"

    def value(self, known: Mapping[str, Value]) -> Value:
        value = self.operand.value(known)
        if isinstance(value, float):
            return -value if self.sign == "-" else value
        return calculate(self.sign, 0, value)


@dataclass(frozen=True)
class Calculation(Node):
    left: Node
    operator: str
    right: Node

    @property
    def precedence(self) -> int:  # type: ignore[override]  # of this operator
        return SUM if self.operator in "+-" else PRODUCT

    def text(self) -> str:
        left, right = self.left.within(self.precedence), self.right.within(self.precedence + 1)
        return f"{left} {self.operator} {right}"

    def value(self, known: Mapping[str, Value]) -> Value:
        return calculate(self.operator, self.left.value(known), self.right.value(known))


@dataclass(frozen=True)
class Comparison(Node):
    left: Node
    operator: str
    right: Node
    precedence = CONDITION

    def text(self) -> str:
        return f"{self.left.within(SUM)} {self.operator} {self.right.within(SUM)}"

    def value(self, known: Mapping[str, Value]) -> Value:
        return compare(self.operator, self.left.value(known), self.right.value(known))


@dataclass(frozen=True)
class Question(Node):
    """BETWEEN, IN, LIKE, IS NULL, or the contrary."""

    operand: Node
    contrary: bool
    precedence = CONDITION

    def text(self) -> str:
        no = "NOT " if self.contrary else ""
        return f"{self.operand.within(SUM)} {self.asked(no)}"

    def asked(self, no: str) -> str:
        raise NotImplementedError

    def answer(self, value: Value, known: Mapping[str, Value]) -> bool | None:
        raise NotImplementedError

    def value(self, known: Mapping[str, Value]) -> Value:
        answer = self.answer(self.operand.value(known), known)
        return negate(answer) if self.contrary else answer


@dataclass(frozen=True)
class Between(Question):
    lowest: Node
    highest: Node

    def asked(self, no: str) -> str:
        return f"{no}BETWEEN {self.lowest.within(SUM)} AND {self.highest.within(SUM)}"

    def answer(self, value: Value, known: Mapping[str, Value]) -> bool | None:
        lowest, highest = self.lowest.value(known), self.highest.value(known)
        return all_of(compare(">=", value, lowest), compare("<=", value, highest))


@dataclass(frozen=True)
class In(Question):
    constants: tuple[Constant, ...]

    def asked(self, no: str) -> str:
        return f"{no}IN ({', '.join(each.text() for each in self.constants)})"

    def answer(self, value: Value, known: Mapping[str, Value]) -> bool | None:
        return any_of(*(compare("=", value, each.constant) for each in self.constants))


@dataclass(frozen=True)
class Like(Question):
    pattern: str
    escape: str

    def asked(self, no: str) -> str:
        escape = f" ESCAPE {quoted(self.escape)}" if self.escape else ""
        return f"{no}LIKE {quoted(self.pattern)}{escape}"

    def answer(self, value: Value, known: Mapping[str, Value]) -> bool | None:
        return bool(self.expression().fullmatch(value)) if isinstance(value, str) else None

    def expression(self) -> re.Pattern[str]:
        parts, characters = [], iter(self.pattern)
        for each in characters:
            if each == self.escape:
                parts.append(re.escape(next(characters)))
            else:
                parts.append({"%": ".*", "_": "."}.get(each) or re.escape(each))
        return re.compile("".join(parts), re.DOTALL)


@dataclass(frozen=True)
class IsNull(Question):
    def asked(self, no: str) -> str:
        return f"IS {no}NULL"

    def answer(self, value: Value, known: Mapping[str, Value]) -> bool | None:
        return value is None


@dataclass(frozen=True)
class Not(Node):
    operand: Node
    precedence = NEGATION

    def text(self) -> str:
        return f"NOT {self.operand.within(NEGATION)}"

    def value(self, known: Mapping[str, Value]) -> Value:
        return negate(self.operand.value(known))


@dataclass(frozen=True)
class Chain(Node):
    """All of them, or any of them."""

    operator: str
    operands: tuple[Node, ...]

    @property
    def precedence(self) -> int:  # type: ignore[override]  # of this operator
        return CONJUNCTION if self.operator == "AND" else DISJUNCTION

    def text(self) -> str:
        parts = [each.within(self.precedence + 1) for each in self.operands]
        return f" {self.operator} ".join(parts)

    def value(self, known: Mapping[str, Value]) -> Value:
        values = [each.value(known) for each in self.operands]
        return all_of(*values) if self.operator == "AND" else any_of(*values)
