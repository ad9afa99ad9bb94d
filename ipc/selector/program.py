"""From the tree of a selector to its program: names are numbered, types checked where known.

Trees are gone through without recursion.  Each node becomes the code that leaves its value on the
stack; core/opcodes.py describes it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from lark import Token, Transformer_NonRecursive, v_args
from lark.exceptions import VisitError

from shmbroker.core import opcodes as op
from shmbroker.ipc.base.errors import SelectorError
from shmbroker.ipc.selector.text import complaint, parse

NESTING_MAX = 100

Kind = Literal["anything", "a truth value", "a number", "a text"]

HEADERS: dict[str, tuple[int, Kind]] = {
    "JMSPriority": (op.FROM_PRIORITY, "a number"),
    "JMSTimestamp": (op.FROM_PUBLISHED, "a number"),
    "JMSExpiration": (op.FROM_EXPIRY, "a number"),
    "JMSDeliveryCount": (op.FROM_DELIVERY_COUNT, "a number"),
    "JMSMessageID": (op.FROM_PROPERTY, "a text"),
    "JMSCorrelationID": (op.FROM_PROPERTY, "a text"),
    "JMSType": (op.FROM_PROPERTY, "a text"),
    "JMSXGroupID": (op.FROM_PROPERTY, "a text"),
}
OURS: dict[str, tuple[int, Kind]] = {
    "$key": (op.FROM_KEY, "a text"),
    "$size": (op.FROM_SIZE, "a number"),
    "$priority": (op.FROM_PRIORITY, "a number"),
    "$deliveries": (op.FROM_DELIVERIES, "a number"),
}
COMPARISONS = {
    "=": op.EQUAL,
    "<>": op.UNEQUAL,
    "<": op.LESS,
    "<=": op.AT_MOST,
    ">": op.GREATER,
    ">=": op.AT_LEAST,
}
ARITHMETIC = {"+": op.ADD, "-": op.SUBTRACT, "*": op.MULTIPLY, "/": op.DIVIDE}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the expression: code that leaves one value, and what is known of that."""

    kind: Kind
    code: bytes
    at: int
    nesting: int = 0
    is_name: bool = False
    number: int | float | None = None  # that it is, so that a sign before it is part of it


def _limit(length: int, longest: int) -> None:
    if length > longest:
        raise SelectorError(f"this selector takes more than {op.PROGRAM_BYTES_MAX} bytes compiled")


def _short(number: int) -> bytes:
    _limit(number, 0xFFFF)
    return struct.pack("<H", number)


def _sized(opcode: int, content: bytes) -> bytes:
    return bytes([opcode]) + _short(len(content)) + content


def _unquoted(token: Token) -> str:
    quote = token[0]
    return token[1:-1].replace(2 * quote, quote)


def _constant(number: int | float) -> bytes:
    """An integer that does not fit into 64 bits is approximate."""
    if isinstance(number, int) and -(1 << 63) <= number < 1 << 63:
        return struct.pack("<Bq", op.INTEGER, number)
    return struct.pack("<Bd", op.DOUBLE, number)


TIMES_ONE = _constant(1) + bytes([op.MULTIPLY])


def compile_text(text: str) -> bytes:
    """The program of a selector; SelectorError says where its text is wrong."""
    tree = parse(text)
    pieces = Pieces(text)
    try:
        whole = pieces.transform(tree)
        pieces.demand(whole, "a truth value")
    except VisitError as error:
        raise error.orig_exc from None
    program = bytes([op.VERSION, len(pieces.names)]) + pieces.table() + whole.code
    _limit(len(program), op.PROGRAM_BYTES_MAX)
    return program


@v_args(inline=True)
class Pieces(Transformer_NonRecursive[Token, Piece]):
    """A method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        super().__init__(visit_tokens=False)
        self.whole = text
        self.names: dict[tuple[int, str], int] = {}
        self.likes = 0

    def table(self) -> bytes:
        return b"".join(_sized(source, name.encode()) for source, name in self.names)

    # --- checks -----------------------------------------------------------------------------------

    def demand(self, piece: Piece, kind: Kind, why: str = "") -> None:
        if piece.kind not in (kind, "anything"):
            raise complaint(self.whole, piece.at, f"expected {kind}, found {piece.kind}{why}")

    def demand_name(self, piece: Piece, what: str) -> None:
        if not piece.is_name:
            raise complaint(self.whole, piece.at, f"expected a name, which {what} asks about")

    def deeper(self, piece: Piece, at: int) -> Piece:
        if piece.nesting == NESTING_MAX:
            raise complaint(self.whole, at, f"expected at most {NESTING_MAX} levels of nesting")
        return replace(piece, at=at, nesting=piece.nesting + 1)

    # --- values -----------------------------------------------------------------------------------

    def name(self, token: Token) -> Piece:
        name, source = str(token), op.FROM_PROPERTY
        kind: Kind = "anything"
        if name in HEADERS:
            source, kind = HEADERS[name]
        elif name in OURS:
            (source, kind), name = OURS[name], ""
        elif name.startswith("$"):
            what = f'expected {", ".join(OURS)}; a property of this name is written "{name}"'
            raise complaint(self.whole, token.start_pos or 0, what)
        return self._named(token, source, name, kind)

    def quoted(self, token: Token) -> Piece:
        if len(token) == 2:
            raise complaint(self.whole, token.start_pos or 0, "expected a name between the quotes")
        return self._named(token, op.FROM_PROPERTY, _unquoted(token), "anything")

    def _named(self, token: Token, source: int, name: str, kind: Kind) -> Piece:
        at = token.start_pos or 0
        index = self.names.setdefault((source, name), len(self.names))
        if index == op.NAMES_MAX:
            raise complaint(self.whole, at, f"expected at most {op.NAMES_MAX} different names")
        return Piece(kind, bytes([op.NAME, index]), at, is_name=True)

    def text(self, token: Token) -> Piece:
        code = _sized(op.TEXT, _unquoted(token).encode())
        return Piece("a text", code, token.start_pos or 0)

    def exact(self, token: Token) -> Piece:
        digits = token.rstrip("lL").lstrip("0") or "0"
        return self._number(token, int(digits) if len(digits) <= 19 else float(digits))

    def approximate(self, token: Token) -> Piece:
        return self._number(token, float(token))

    def _number(self, token: Token, number: int | float) -> Piece:
        at = token.start_pos or 0
        if math.isinf(number):
            raise complaint(self.whole, at, "expected a number that is less than 1.8e308")
        return Piece("a number", _constant(number), at, number=number)

    def truth(self, token: Token) -> Piece:
        opcode = op.TRUE if token.type == "TRUE" else op.FALSE
        return Piece("a truth value", bytes([opcode]), token.start_pos or 0)

    def nested(self, opening: Token, inner: Piece) -> Piece:
        return self.deeper(inner, opening.start_pos or 0)

    # --- arithmetic -------------------------------------------------------------------------------

    def sign(self, sign: Token, operand: Piece) -> Piece:
        self.demand(operand, "a number")
        made = self.deeper(operand, sign.start_pos or 0)
        if operand.number is not None:
            number = -operand.number if sign == "-" else operand.number
            return replace(made, code=_constant(number), number=number)
        # a text with a + is no text: it is unknown
        code = operand.code + (bytes([op.NEGATE]) if sign == "-" else TIMES_ONE)
        return replace(made, code=code, kind="a number", is_name=False)

    def sum(self, first: Piece, *rest: Piece | Token) -> Piece:
        self.demand(first, "a number")
        parts, nesting = [first.code], first.nesting
        operators, operands = cast(Sequence[Token], rest[::2]), cast(Sequence[Piece], rest[1::2])
        for operator, operand in zip(operators, operands, strict=True):
            self.demand(operand, "a number")
            parts += [operand.code, bytes([ARITHMETIC[operator]])]
            nesting = max(nesting, operand.nesting)
        return Piece("a number", b"".join(parts), first.at, nesting)

    product = sum

    # --- conditions -------------------------------------------------------------------------------

    def compare(self, left: Piece, operator: Token, right: Piece) -> Piece:
        if operator in ("=", "<>"):
            if left.kind != "anything":
                self.demand(right, left.kind, ": only like can be equal")
        else:
            for each in (left, right):
                self.demand(each, "a number", ": only numbers have an order")
        return _condition(left, right, code=bytes([COMPARISONS[operator]]))

    def between(self, value: Piece, no: Token | None, lowest: Piece, highest: Piece) -> Piece:
        for each in (value, lowest, highest):
            self.demand(each, "a number", ": only numbers have an order")
        return _condition(value, lowest, highest, code=bytes([op.BETWEEN]), no=no)

    def within(self, value: Piece, no: Token | None, *constants: Piece) -> Piece:
        self.demand_name(value, "IN")
        for each in constants:
            self.demand(each, constants[0].kind, ": all in one list are alike")
        self.demand(value, constants[0].kind, ": the list has others")
        code = _sized(op.IN, b"".join(each.code for each in constants))
        return _condition(value, code=code, no=no)

    def like(self, value: Piece, no: Token | None, pattern: Token, escape: Token | None) -> Piece:
        self.demand_name(value, "LIKE")
        self.demand(value, "a text", ": only texts are like a pattern")
        self.likes += 1
        if self.likes > op.LIKES_MAX:
            raise complaint(self.whole, value.at, f"expected at most {op.LIKES_MAX} LIKEs")
        code = _sized(op.LIKE, self._pattern(pattern, escape))
        return _condition(value, code=code, no=no)

    def _pattern(self, token: Token, escape_token: Token | None) -> bytes:
        escape = _unquoted(escape_token) if escape_token else ""
        if escape_token and len(escape) != 1:
            raise complaint(self.whole, escape_token.start_pos or 0, "expected one character")
        special = {"%": bytes([op.ANY_TEXT]), "_": bytes([op.ANY_CHARACTER])}
        code, characters = bytearray(), iter(_unquoted(token))
        for each in characters:
            if each != escape:
                code += special.get(each) or each.encode()
            elif escaped := next(characters, ""):
                code += escaped.encode()
            else:
                what = "expected a character behind the last escape character"
                raise complaint(self.whole, token.start_pos or 0, what)
        for part in code.split(bytes([op.ANY_TEXT]))[1:-1]:
            if op.ANY_CHARACTER in part and len(part) > op.PART_BYTES_MAX:
                what = f"expected at most {op.PART_BYTES_MAX} bytes between two % if there is a _"
                raise complaint(self.whole, token.start_pos or 0, what)
        return bytes(code)

    def is_null(self, value: Piece, no: Token | None) -> Piece:
        self.demand_name(value, "IS NULL")
        return _condition(value, code=bytes([op.IS_NULL]), no=no)

    # --- logic ------------------------------------------------------------------------------------

    def invert(self, operator: Token, operand: Piece) -> Piece:
        self.demand(operand, "a truth value")
        made = self.deeper(operand, operator.start_pos or 0)
        code = operand.code + bytes([op.NOT])
        return replace(made, code=code, kind="a truth value", is_name=False)

    def all(self, *operands: Piece) -> Piece:
        return self._chain(op.SKIP_IF_FALSE, op.AND, operands)

    def any(self, *operands: Piece) -> Piece:
        return self._chain(op.SKIP_IF_TRUE, op.OR, operands)

    def _chain(self, skip: int, operator: int, operands: Sequence[Piece]) -> Piece:
        """Each operand is followed by a skip to the end of all, which is written backwards."""
        for each in operands:
            self.demand(each, "a truth value")
        parts: list[bytes] = []
        length = 0
        for each in reversed(operands[1:]):
            part = each.code + bytes([operator])
            length += len(part)
            parts += [part, bytes([skip]) + _short(length)]
            length += 3
        code = b"".join([operands[0].code, *reversed(parts)])
        nesting = max(each.nesting for each in operands)
        return Piece("a truth value", code, operands[0].at, nesting)


def _condition(*operands: Piece, code: bytes, no: Token | None = None) -> Piece:
    """What is asked of the operands, or the contrary of it."""
    whole = b"".join(each.code for each in operands) + code + (bytes([op.NOT]) if no else b"")
    nesting = max(each.nesting for each in operands)
    return Piece("a truth value", whole, operands[0].at, nesting)
