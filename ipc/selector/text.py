"""The text of a selector: its grammar and its error messages.

The parser is LALR(1) and keeps its stack on the heap: no text, however nested, makes it recurse.
"""

from __future__ import annotations

from functools import cache

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken

from shmbroker.ipc.base.errors import SelectorError

TEXT_BYTES_MAX = 16 << 10

GRAMMAR = r"""
?start: any
?any: all (_OR all)*
?all: inverse (_AND inverse)*
?inverse: NOT inverse -> invert
    | condition
?condition: sum
    | sum COMPARISON sum -> compare
    | sum [NOT] "BETWEEN"i sum _AND sum -> between
    | sum [NOT] "IN"i "(" constant ("," constant)* ")" -> within
    | sum [NOT] "LIKE"i TEXT ["ESCAPE"i TEXT] -> like
    | sum "IS"i [NOT] "NULL"i -> is_null
?sum: product (SIGN product)*
?product: signed (FACTOR signed)*
?signed: SIGN signed -> sign
    | number
    | NAME -> name
    | QUOTED -> quoted
    | TEXT -> text
    | (TRUE | FALSE) -> truth
    | OPEN any ")" -> nested
?constant: TEXT -> text
    | number
    | SIGN number -> sign
?number: EXACT -> exact
    | APPROXIMATE -> approximate

_AND: "AND"i
_OR: "OR"i
NOT: "NOT"i
TRUE: "TRUE"i
FALSE: "FALSE"i
OPEN: "("
COMPARISON: "=" | "<>" | "<=" | "<" | ">=" | ">"
SIGN: "+" | "-"
FACTOR: "*" | "/"
NAME: /(?:[^\W\d]|\$)[\w$]*/i
QUOTED: /"[^"]*+(?:""[^"]*+)*+"/
TEXT: /'[^']*+(?:''[^']*+)*+'/
APPROXIMATE.2: /(?:\d+\.\d*|\.\d+)(?:e[+-]?\d+)?|\d+e[+-]?\d+/i
EXACT: /\d+L?/i
%ignore /[ \t\f\r\n]+/
"""

A_VALUE = {"NAME", "QUOTED", "TEXT", "EXACT", "APPROXIMATE", "SIGN", "TRUE", "FALSE", "OPEN"}
AN_OPERATOR = {"COMPARISON", "FACTOR", "BETWEEN", "IN", "LIKE", "IS"}
WORDS = {"RPAR": "')'", "OPEN": "'('", "COMMA": "','", "TEXT": "a text", "$END": "the end"}
ROOM = 60
"""Characters of the text that an error shows, at most, before and after the place."""


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer="basic", maybe_placeholders=True)


def complaint(text: str, at: int, what: str) -> SelectorError:
    """The error that shows the place, the character with the index `at`."""
    start = max(text.rfind("\n", 0, at) + 1, at - ROOM)
    line = text[start : at + ROOM].partition("\n")[0]
    shown = "".join(each if each.isprintable() else " " for each in line)
    return SelectorError(
        f"selector, character {at + 1}: {what}\n    {shown}\n    {' ' * (at - start)}^"
    )


def parse(text: str) -> Tree[Token]:
    """The tree of a text; SelectorError if it is none that the grammar knows."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise complaint(text, error.start, "this is no Unicode character") from None
    if size > TEXT_BYTES_MAX:
        raise SelectorError(f"this selector has {size} bytes, and may have {TEXT_BYTES_MAX}")
    try:
        return _parser().parse(text)
    except UnexpectedCharacters as error:
        raise complaint(text, error.pos_in_stream or 0, _strange(error.char)) from None
    except UnexpectedToken as error:
        raise _unexpected(text, error) from None


def _strange(character: str) -> str:
    if character in "'\"":
        return f"what is quoted from here on has no end: expected another {character}"
    return f"expected a name, a value or an operator, found {character!r}"


def _unexpected(text: str, error: UnexpectedToken) -> SelectorError:
    at, found = len(text), "the end"
    if error.token.type != "$END":
        at, found = error.token.start_pos or 0, f"{' '.join(error.token.split()):.40}"
    return complaint(text, at, f"expected {_expected(set(error.accepts or ()))}, found {found}")


def _expected(accepted: set[str]) -> str:
    """The terminals that would have been right, as people call them."""
    words = []
    if "NAME" in accepted:
        words.append("a name or a value")
        accepted -= A_VALUE
    if "COMPARISON" in accepted:
        words.append("a comparison or another operator")
        accepted -= AN_OPERATOR | {"SIGN", "NOT"}
    elif "FACTOR" in accepted:
        words.append("an arithmetic operator")
        accepted -= {"FACTOR", "SIGN"}
    elif "EXACT" in accepted:
        words.append("a text or a number")
        accepted -= A_VALUE
    words += sorted(WORDS.get(each, each.lstrip("_")) for each in accepted)
    return " or ".join(words)
